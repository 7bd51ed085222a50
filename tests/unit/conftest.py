"""Fixtures that several folders of unit tests share."""

import socket
from collections.abc import Iterator

import pytest

from tests.support.log_streams import logged
from tests.support.talk.markers import Markers

log = pytest.fixture(logged)


@pytest.fixture
def markers(monkeypatch: pytest.MonkeyPatch) -> Markers:
    """Replace the writing of transaction markers, so that a test can hold or refuse them."""
    made = Markers()
    monkeypatch.setattr("barnabas.node.coordination.marker_writing.write_marker", made.write)
    return made


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port that another program listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])
