"""Fixtures that several folders of unit tests share."""

import logging
import socket
from collections.abc import Iterator
from io import StringIO

import pytest

from barnabas import logs
from tests.support.talk.markers import Markers


@pytest.fixture
def markers(monkeypatch: pytest.MonkeyPatch) -> Markers:
    """Replace the writing of transaction markers, so that a test can hold them or refuse them."""
    made = Markers()
    monkeypatch.setattr("barnabas.node.coordination.marker_writing.write_marker", made.write)
    return made


@pytest.fixture
def log() -> Iterator[StringIO]:
    """Return the stream that the log is written to as JSON lines."""
    stream = StringIO()
    logs.configure(json=True, stream=stream)
    yield stream
    logging.getLogger().removeHandler(logs._forward)


@pytest.fixture
def taken() -> Iterator[int]:
    """Return a port that another program listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])
