"""What the node asks of the edge. It cannot wait, sync or delete by itself.

Effects gather in the node's outbox while an event is handled; the driver carries them out and
reports back through the callbacks, on the same thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.storage.compaction import Cleaned, CleaningPlan
from barnabas.storage.flush import FlushTask


@dataclass(frozen=True, slots=True)
class Flush:
    """Sync files off the loop, then report. A failure stops the process."""

    task: FlushTask
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
    """Check every checksum in sealed files off the loop, then report path and byte of damage."""

    paths: tuple[str, ...]
    done: Callable[[list[tuple[str, int]]], None]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something an operator should read."""

    level: str
    event: str
    facts: dict[str, Any] = field(default_factory=dict)


Effect = Flush | Remove | Clean | Verify | Notice
