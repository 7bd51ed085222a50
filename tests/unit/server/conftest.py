"""Fixtures: two brokers that can connect to each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.talk.peer_pair import Pair


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()
