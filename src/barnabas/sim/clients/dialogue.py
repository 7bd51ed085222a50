"""The steps of a dialogue: what a client's generator yields, and what it is sent back."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

REQUEST_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for a while."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for the next answer; None where the connection broke or nothing came in time."""

    timeout_ms: int = REQUEST_TIMEOUT_MS


Answer = Any
"""A generated message; who asked knows which."""
Talk = Generator[Sleep | Receive, Answer, None]
Asking = Generator[Sleep | Receive, Answer, Answer]
