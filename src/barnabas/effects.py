"""The effects that the node asks the edge to carry out: it does no I/O itself.

The node puts effects into its outbox while it handles an event. Afterwards the driver carries them
out, and calls their callbacks on the event loop's thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.model.steps import Steps
from barnabas.storage.changes import Sync
from barnabas.storage.compacting.compaction import Cleaned, CleaningPlan
from barnabas.storage.flush import FlushTask


@dataclass(frozen=True, slots=True)
class Flush:
    """Sync files off the event loop, then report. A failure stops the process."""

    task: FlushTask
    done: Callable[[], None]
    appends: int = 1
    """How many appends wait for it."""


@dataclass(frozen=True, slots=True)
class MakeDurable:
    """Sync files and folders that no producer waits for, off the event loop, then report.

    Changes of several logs share the sync of a folder. A failed sync stops the process.
    """

    sync: Sync
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete retired files and folders after a delay, off the event loop."""

    paths: tuple[str, ...]
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Clean:
    """Compact segments off the event loop, then report; None if compaction failed."""

    plan: CleaningPlan
    done: Callable[[Cleaned | None], None]


@dataclass(frozen=True, slots=True)
class Verify:
    """Check every checksum in log files off the event loop, then report where they are damaged."""

    files: tuple[tuple[str, int], ...]
    """Paths, each with how many bytes of the file to check."""
    done: Callable[[list[tuple[str, int]]], None]


@dataclass(frozen=True, slots=True)
class Scan:
    """Do long work in steps, each in an event of its own (`model/steps.py`).

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
    each other. If the answer does not arrive in time the connection is closed. Then all requests
    that wait on it get None as their answer; the other broker may have carried them out or not.
    """

    address: Address
    lane: str
    api_key: int
    api_version: int
    body: bytes
    """The request without its header."""
    timeout_ms: int
    done: Callable[[memoryview | None], None]
    """Called with the answer without its header; the memory is valid during the call only."""
    for_versions: Callable[[int, int], "Ask | None"] | None = None
    """Returns the same request for a broker that serves only versions from a low to a high one.

    Where no such version exists it reports that to its caller, and returns None.
    """
    envelope: Callable[["Ask"], "Ask"] | None = None
    """Returns a client's request, in the version that is to be sent, in an Envelope request that
    names the client. Not for a broker that does not serve Envelope."""
    needs_envelope: bool = False
    """Whether the request must not be sent without it: the other broker would carry it out with
    the rights of this one. Then a broker that does not serve Envelope counts as lost."""

    def enveloped(self) -> "Ask":
        """Return what is sent to a broker that serves Envelope."""
        return self if self.envelope is None else self.envelope(self)


@dataclass(frozen=True, slots=True)
class Notice:
    """A log line for the operator. A critical one stops the process: to go on would do harm."""

    level: str
    event: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A line for the audit log."""

    text: str


Effect = Flush | MakeDurable | Remove | Clean | Verify | Scan | Ask | Notice | AuditLine
