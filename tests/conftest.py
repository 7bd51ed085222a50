"""What holds for every test."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def own_garbage() -> Iterator[None]:
    """Collect what a module left, so that a warning it raises (an error here) names its culprit.

    Else the collector meets a forgotten socket in the middle of some other test.
    """
    yield
    gc.collect()
