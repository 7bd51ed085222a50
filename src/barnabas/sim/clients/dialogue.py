"""Defines the steps of a client's dialogue: what its generator yields, and what it gets back."""

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
    """Wait for the next response; None if the connection broke or the wait timed out."""

    timeout_ms: int = REQUEST_TIMEOUT_MS


Answer = Any
"""A generated message; the client knows its type from its request."""
Talk = Generator[Sleep | Receive, Answer, None]
Asking = Generator[Sleep | Receive, Answer, Answer]
