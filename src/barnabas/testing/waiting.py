"""Wait for a condition, for tests that must not sleep for a fixed time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 30.0
PAUSE_S = 0.01


def eventually(look: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Call `look` until it returns a true value, and return it; fail after `patience_s`."""
    deadline = time.monotonic() + patience_s
    pause = threading.Event()
    while not (found := look()):
        assert time.monotonic() < deadline, f"{look} found nothing within {patience_s} s"
        pause.wait(PAUSE_S)
    return found
