"""The values of a share consumer: partitions, records, acknowledgements and their outcomes."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.wire.share_session import ShareSession


class Place(NamedTuple):
    """A partition, by the id of its topic."""

    topic_id: bytes
    partition: int


class AckKind(IntEnum):
    """What a member says of a record, with the numbers of the protocol (KIP-932, KIP-1222)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Outcome(Enum):
    """What became of an acknowledgement."""

    STORED = "stored"
    LOST = "lost"
    """The member did not hold the record any more: its lock or its session was over."""
    UNKNOWN = "unknown"
    """The connection broke before the answer; the broker may have stored it or not."""


class Verdict(NamedTuple):
    """The outcome of one acknowledgement, with Kafka's code; NONE if no broker gave one."""

    outcome: Outcome
    code: ErrorCode = ErrorCode.NONE


STORED = Verdict(Outcome.STORED)


@dataclass(slots=True, eq=False)
class Ack:
    """One acknowledgement of one record, and who wants to know its outcome."""

    place: Place
    offset: int
    kind: AckKind
    on_verdict: Callable[[Verdict], None] | None = None

    def settle(self, verdict: Verdict) -> None:
        """Report the outcome."""
        if self.on_verdict is not None:
            self.on_verdict(verdict)


@dataclass(slots=True, kw_only=True, eq=False)
class ShareRecord:
    """One record that this member holds until its deadline; a renewal moves the deadline."""

    session: "ShareSession"
    """The session that acquired it, which also takes its acknowledgement."""
    place: Place
    topic: str
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    deliveries: int
    """How often a member has got it, this time included."""
    lock_s: float
    """How long the broker gives a member for a record."""
    deadline_s: float
    """When the broker gives it to another member, on the monotonic clock of this process."""
    is_renewing: bool = False
    """Whether a renewal is under way."""


class FetchLimits(NamedTuple):
    """How much one ShareFetch asks for."""

    records: int
    max_wait_ms: int = 500
    max_bytes: int = 8 << 20
    is_exact: bool = True
    """Never more records than asked for (KIP-1206, version 2); else whole batches."""
