"""Waiting for something to become true, for tests that never sleep blindly."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 30.0
PAUSE_S = 0.01


def eventually(look: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Return the first true thing that a look finds; fail once patience is over."""
    deadline = time.monotonic() + patience_s
    pause = threading.Event()
    while not (found := look()):
        assert time.monotonic() < deadline, f"nothing came of {look} within {patience_s} s"
        pause.wait(PAUSE_S)
    return found
