"""Fixtures that every test uses."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# Processes that tests start, and the workers of Spark, import `tests.support` as well.
_ROOT = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(
    dict.fromkeys((_ROOT, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))))
)


@pytest.fixture(autouse=True, scope="session")
def handled_interrupts() -> None:
    """Handle Ctrl-C: a shell ignores it for background processes, which their children inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def own_garbage() -> Iterator[None]:
    """Collect what a module left, so that a warning it raises (an error here) names its culprit.

    Else the collector meets a forgotten socket in the middle of some other test.
    """
    yield
    gc.collect()
