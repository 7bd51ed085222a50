"""The answers that a queue's messages got: sends them, and keeps those that came too late."""

import threading
import time
from collections.abc import Callable

from barnabas.client.errors import BrokerUnreachableError, LockLostError
from barnabas.logs import get
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.share_client import ShareConsumer
from barnabas.wire.share_values import AckKind, Outcome, ShareRecord, Verdict

EXTEND_TIMEOUT_S = 30.0
NAMED_MAX = 1000
"""How many lost acknowledgements are kept by offset until the program asks."""

REASONS = {
    Outcome.LOST: "its lock was over, or its connection had ended",
    Outcome.UNKNOWN: "the connection broke before the broker answered",
}

log = get("barnabas.client")


class QueueAcks:
    """Sends the answers of one member; safe to use from several threads."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self._lock = threading.Lock()
        self._lost: list[tuple[ShareRecord, AckKind, Verdict]] = []
        self._lost_count = 0

    def send(self, record: ShareRecord, kind: AckKind) -> None:
        """Send an answer with the next request."""
        self._consumer.acknowledge(record, kind, self._noting(record, kind))

    def extend(self, record: ShareRecord) -> None:
        """Renew a lock, and wait for the answer."""
        done = threading.Event()
        verdicts: list[Verdict] = []

        def told(verdict: Verdict) -> None:
            verdicts.append(verdict)
            done.set()

        self._consumer.renew(record, told)
        if not done.wait(EXTEND_TIMEOUT_S):
            raise BrokerUnreachableError(
                f"no broker answered within {EXTEND_TIMEOUT_S:.0f} s whether the message is still "
                "held; another member may get it"
            )
        if verdicts[0].outcome is not Outcome.STORED:
            raise _error([(record, AckKind.RENEW, verdicts[0])], 1)

    def keep(self, record: ShareRecord) -> None:
        """Renew a lock of which half is over, without waiting."""
        left_s = record.deadline_s - time.monotonic()
        if not record.is_renewing and 0 < left_s < record.lock_s / 2:
            self._consumer.renew(record)

    def flush(self, timeout_s: float | None) -> None:
        """Wait until all answers are stored; raise if one was not."""
        if not self._consumer.flush(timeout_s):
            raise BrokerUnreachableError(
                f"not all acknowledgements were stored within {timeout_s} s; call flush again, "
                "or let members get these messages again"
            )
        self.raise_lost()

    def raise_lost(self) -> None:
        """Raise if answers were lost since the last time; forget them."""
        with self._lock:
            lost, count = self._lost, self._lost_count
            self._lost, self._lost_count = [], 0
        if lost:
            raise _error(lost, count)

    def _noting(self, record: ShareRecord, kind: AckKind) -> Callable[[Verdict], None]:
        def told(verdict: Verdict) -> None:
            if verdict.outcome is Outcome.STORED:
                return
            # A message that was to be given back is given back, in either case.
            if kind is AckKind.RELEASE:
                return
            log.warning("an acknowledgement was lost", topic=record.topic, offset=record.offset)
            with self._lock:
                self._lost_count += 1
                if len(self._lost) < NAMED_MAX:
                    self._lost.append((record, kind, verdict))

        return told


def _error(lost: list[tuple[ShareRecord, AckKind, Verdict]], count: int) -> LockLostError:
    record, kind, verdict = lost[0]
    others = f" and {count - 1} more" if count > 1 else ""
    code = verdict.code
    error = LockLostError(
        f"{kind.name.lower()} of {record.topic}-{record.place.partition} offset {record.offset}"
        f"{others}: {REASONS[verdict.outcome]}; a member gets the message again. Answer sooner, "
        "call extend() in long work, or raise share.record.lock.duration.ms of the group",
        None if code == ErrorCode.NONE else int(code),
    )
    for each, _, _ in lost:
        place = TopicPartition(each.topic, each.place.partition)
        error.offsets.setdefault(place, []).append(each.offset)
    return error
