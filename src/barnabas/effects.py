"""What the node asks of the edge. It cannot wait, sync or delete by itself.

Effects gather in the node's outbox while an event is handled; the driver carries them out and
reports back through the callbacks, on the same thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.model.steps import Steps
from barnabas.storage.changes import Sync
from barnabas.storage.compaction import Cleaned, CleaningPlan
from barnabas.storage.flush import FlushTask


@dataclass(frozen=True, slots=True)
class Flush:
    """Sync files off the loop, then report. A failure stops the process."""

    task: FlushTask
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class MakeDurable:
    """Sync files and folders off the loop where no producer waits for it, then report.

    Changes of several logs share the sync of a folder. A failed sync stops the process.
    """

    sync: Sync
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete retired files and folders, after a while, off the loop."""

    paths: tuple[str, ...]
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Clean:
    """Compact segments off the loop, then report; None says that it failed."""

    plan: CleaningPlan
    done: Callable[[Cleaned | None], None]


@dataclass(frozen=True, slots=True)
class Verify:
    """Check every checksum in log files off the loop, then report path and byte of damage."""

    files: tuple[tuple[str, int], ...]
    """Each with how many bytes of it count."""
    done: Callable[[list[tuple[str, int]]], None]


@dataclass(frozen=True, slots=True)
class Scan:
    """Do work that takes long, each step in an event of its own (`model/steps.py`).

    Scans of one lane and one owner are done one after the other; those of several owners take
    turns, and lanes do not wait for each other.
    """

    lane: str
    owner: str
    steps: Steps[None]


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request to another broker, and report its answer.

    Requests of one lane go over one connection and are answered in order; lanes do not wait for
    each other. Where the answer does not come in time the connection is given up, with everything
    else that was asked on it: each is told None, and whether it was carried out is not known.
    """

    address: Address
    lane: str
    api_key: int
    api_version: int
    body: bytes
    """The request without its header."""
    timeout_ms: int
    done: Callable[[memoryview | None], None]
    """Hears the answer without its header; what it is shown is valid during the call alone."""
    for_versions: Callable[[int, int], "Ask | None"] | None = None
    """Returns the same request for a broker that serves only versions from a low to a high one.

    Where no such version exists it tells the asker, and returns None.
    """


@dataclass(frozen=True, slots=True)
class Notice:
    """Something an operator should read. A critical one is the last: to go on would do harm."""

    level: str
    event: str
    facts: dict[str, Any] = field(default_factory=dict)


Effect = Flush | MakeDurable | Remove | Clean | Verify | Scan | Ask | Notice
