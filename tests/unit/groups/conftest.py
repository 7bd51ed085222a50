"""Members who talk to a coordinator's machine."""

import pytest

from barnabas.testing.classic_talk import ClassicTalk


@pytest.fixture
def talk() -> ClassicTalk:
    return ClassicTalk()
