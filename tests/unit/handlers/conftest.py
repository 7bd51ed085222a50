"""Fixtures: a node that tests send requests to, without sockets."""

from pathlib import Path

import pytest

from tests.support.talk.dialogue import Dialogue


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    return Dialogue(tmp_path)
