"""A message of a queue, which this program holds until it says what became of it."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from barnabas.client.errors import UnsupportedError, UsageError
from barnabas.wire.share_values import AckKind, ShareRecord

if TYPE_CHECKING:
    from barnabas.client.queue_acks import QueueAcks


class QueueMessage:
    """One message; answer it with `ack`, `nack` or `reject` before its deadline."""

    __slots__ = ("_acks", "_answer", "_record")

    def __init__(self, record: ShareRecord, acks: "QueueAcks") -> None:
        self._record, self._acks = record, acks
        self._answer: AckKind | None = None

    @property
    def value(self) -> bytes | None:
        """What was put."""
        return self._record.value

    @property
    def text(self) -> str:
        """The value as UTF-8 text; an empty string if it is null."""
        return (self.value or b"").decode()

    @property
    def key(self) -> bytes | None:
        """The key, if it was put with one."""
        return self._record.key

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """The headers, in order."""
        return self._record.headers

    @property
    def topic(self) -> str:
        """The topic of the queue."""
        return self._record.topic

    @property
    def partition(self) -> int:
        """The partition that holds it."""
        return self._record.place.partition

    @property
    def offset(self) -> int:
        """Its offset in the partition."""
        return self._record.offset

    @property
    def timestamp_ms(self) -> int:
        """When it was put, in milliseconds since 1970."""
        return self._record.timestamp_ms

    @property
    def deliveries(self) -> int:
        """How often a member has got it, this time included."""
        return self._record.deliveries

    @property
    def seconds_left(self) -> float:
        """How long this program still holds it; 0 once others may get it."""
        return max(0.0, self._record.deadline_s - time.monotonic())

    @property
    def deadline(self) -> datetime:
        """When the broker gives it to another member, if it is not answered by then."""
        left_s = self._record.deadline_s - time.monotonic()
        return datetime.now(UTC) + timedelta(seconds=left_s)

    @property
    def is_answered(self) -> bool:
        """Whether the program has said what became of it."""
        return self._answer is not None

    def ack(self) -> None:
        """It is done: no member gets it again. Returns at once; `Queue.flush` waits."""
        self._say(AckKind.ACCEPT)

    def nack(self, delay: float | None = None) -> None:
        """Give it back: a member gets it again, unless it has had its last delivery.

        It comes at once, or after `share.retry.backoff.ms` of the group. The protocol has no delay
        of one message, so a `delay` raises `UnsupportedError`.
        """
        if delay is not None:
            raise UnsupportedError(
                "the broker cannot hold a message back for a time of its own yet; call nack() "
                "without a delay, and set share.retry.backoff.ms on the group"
            )
        self._say(AckKind.RELEASE)

    def reject(self) -> None:
        """It can never be done: no member gets it again."""
        self._say(AckKind.REJECT)

    def extend(self) -> None:
        """Hold it for the whole time of the lock again; raise `LockLostError` if it is too late."""
        self._require_unanswered()
        self._acks.extend(self._record)

    def keep(self) -> None:
        """Extend the lock if half of it is over; return at once. Workers call this for you."""
        if self._answer is None:
            self._acks.keep(self._record)

    def __repr__(self) -> str:
        return (
            f"QueueMessage({self.topic}-{self.partition} offset {self.offset}, "
            f"delivery {self.deliveries}, value {self.value!r})"
        )

    def _say(self, kind: AckKind) -> None:
        self._require_unanswered()
        self._answer = kind
        self._acks.send(self._record, kind)

    def _require_unanswered(self) -> None:
        if self._answer is not None:
            raise UsageError(
                f"{self!r} was answered already ({self._answer.name.lower()}); a message has one "
                "answer"
            )
