"""Decides which alerts are sent to one endpoint next: a state machine without I/O.

    restore(notice)               a record that was sent before this start: it is only remembered
    announce(partition, offset)   a first start: send the open alerts of a partition
    take(notice)                  a record to send
    due(now_s, now_ms, silences)  -> the alerts of the next request, or None
    succeeded, failed             how that request ended
    settled()                     -> offsets that may be committed

At least once: an offset is settled when its alert was accepted by the endpoint, is silenced, or was
given up; alerts that are given up are counted and returned, so that the caller can log them. There
is one request at a time. A failed one is repeated with growing delays, until `give_up_after_s` is
over; one that the endpoint rejects as invalid (400, 413, 422) is repeated alert by alert, so that
only an invalid alert is lost.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from barnabas.telemetry.notify.endpoints import Endpoint, Identity
from barnabas.telemetry.notify.notice import Notice, Place
from barnabas.telemetry.notify.silences import Silence, silencing

ALERTS_MAX = 64
"""The number of alerts in a request."""


class Failure(Enum):
    """The kinds of failures of a request."""

    TROUBLE = auto()
    """It may succeed later."""
    REFUSED = auto()
    """The endpoint says that the request itself is wrong."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to retry."""

    first_wait_s: float = 1.0
    wait_max_s: float = 60.0
    give_up_after_s: float = 3600.0

    def wait_s(self, failures: int) -> float:
        """Return how long to wait after a number of failures in a row."""
        return float(min(self.wait_max_s, self.first_wait_s * 2 ** min(failures - 1, 30)))


class Attempt(NamedTuple):
    """One request to send."""

    notices: tuple[Notice, ...]
    taken: int
    """How many alerts of the queue it has; 0 if firing alerts are only sent again."""


class Queued(NamedTuple):
    """A waiting alert, and the offset that may be committed once it is settled."""

    notice: Notice
    commit: Place | None


class SentAlert(NamedTuple):
    """An open alert, and when the endpoint last accepted it."""

    notice: Notice
    partition: int
    sent_at_s: float | None


@dataclass
class Outbox:
    """The state of one endpoint."""

    endpoint: Endpoint
    patience: Patience = field(default_factory=Patience)
    counts: Counter[str] = field(default_factory=Counter)
    """delivered, silenced, given_up, resent: alerts of this run."""

    def __post_init__(self) -> None:
        """Begin with an empty state."""
        self._open: dict[str, SentAlert] = {}
        self._news: list[Queued] = []
        self._settled: dict[int, int] = {}
        self._limit = ALERTS_MAX
        self._failures = 0
        self._failing_since_s: float | None = None
        self._again_at_s = 0.0

    @property
    def has_news(self) -> bool:
        """Whether alerts wait to be sent."""
        return bool(self._news)

    @property
    def standing(self) -> list[Notice]:
        """The open alerts, as they were last sent."""
        return [each.notice for each in self._open.values()]

    def restore(self, notice: Notice) -> None:
        """Remember a record that was sent before."""
        self._remember(notice)

    def announce(self, partition: int, offset: int) -> None:
        """Queue the open alerts of a newly read partition, up to an offset."""
        standing = [each.notice for each in self._open.values() if each.partition == partition]
        if not standing:
            self._settled[partition] = offset
            return
        self._news += [Queued(each, None) for each in standing[:-1]]
        self._news.append(Queued(standing[-1], Place(partition, offset)))

    def take(self, notice: Notice) -> None:
        """Queue a record to send."""
        before = self._open.get(notice.alert_id)
        if before is not None and self._identity(before.notice) != self._identity(notice):
            # The receiver has it under other labels: clear that alert.
            self._news.append(Queued(before.notice.cleared(), None))
        self._remember(notice)
        place = notice.place
        commit = None if place is None else Place(place.partition, place.offset + 1)
        self._news.append(Queued(notice, commit))

    def forget(self, partition: int) -> None:
        """Drop the state of a partition that was assigned to another member of the group."""
        self._open = {k: each for k, each in self._open.items() if each.partition != partition}
        self._news = [n for n in self._news if not (n.commit and n.commit.partition == partition)]
        self._settled.pop(partition, None)

    def due(self, now_s: float, now_ms: int, silences: Iterable[Silence]) -> Attempt | None:
        """Return the next request; None if nothing is due."""
        if now_s < self._again_at_s:
            return None
        known = list(silences)
        while self._news:
            front = self._news[: self._limit]
            loud = [n for n, _ in front if silencing(known, n, now_ms) is None]
            if loud:
                return Attempt(tuple(loud), len(front))
            self.counts["silenced"] += len(front)
            self._settle(len(front))
        again = [
            each.notice
            for each in self._open.values()
            if self._is_stale(each, now_s) and silencing(known, each.notice, now_ms) is None
        ]
        return Attempt(tuple(again[: self._limit]), 0) if again else None

    def wait_s(self, now_s: float, most_s: float) -> float:
        """Return how long nothing will be due, at most `most_s`, unless a record arrives."""
        wait = self._again_at_s - now_s
        if wait <= 0 and self._news:
            return 0.0
        return min(most_s, wait) if wait > 0 else most_s

    def succeeded(self, attempt: Attempt, now_s: float) -> None:
        """Record that the endpoint has accepted a request."""
        self._failures, self._failing_since_s, self._again_at_s = 0, None, 0.0
        for notice in attempt.notices:
            sent = self._open.get(notice.alert_id)
            if sent is not None:
                self._open[notice.alert_id] = sent._replace(sent_at_s=now_s)
        if attempt.taken:
            self.counts["silenced"] += attempt.taken - len(attempt.notices)
            self._settle(attempt.taken)
        self.counts["delivered" if attempt.taken else "resent"] += len(attempt.notices)

    def failed(self, attempt: Attempt, failure: Failure, now_s: float) -> tuple[Notice, ...]:
        """Record a failure; return the alerts that are given up for it."""
        if failure is Failure.REFUSED and len(attempt.notices) > 1:
            self._limit = 1
            return ()
        self._failures += 1
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        is_over = now_s - self._failing_since_s >= self.patience.give_up_after_s
        if failure is Failure.REFUSED or (attempt.taken and is_over):
            return self._give_up(attempt, now_s)
        self._again_at_s = now_s + self.patience.wait_s(self._failures)
        return ()

    def settled(self) -> dict[int, int]:
        """Return the next offset of each partition with offsets to commit."""
        return dict(self._settled)

    def committed(self, offsets: dict[int, int]) -> None:
        """Record that offsets are committed."""
        for partition, offset in offsets.items():
            if self._settled.get(partition) == offset:
                del self._settled[partition]

    def _give_up(self, attempt: Attempt, now_s: float) -> tuple[Notice, ...]:
        self._failing_since_s = None
        if not attempt.taken:
            # It is still open: try it again when it would be sent again anyway.
            for notice in attempt.notices:
                sent = self._open[notice.alert_id]
                self._open[notice.alert_id] = sent._replace(sent_at_s=now_s)
            return ()
        self.counts["given_up"] += len(attempt.notices)
        self.counts["silenced"] += attempt.taken - len(attempt.notices)
        self._settle(attempt.taken)
        return attempt.notices

    def _settle(self, count: int) -> None:
        for _, commit in self._news[:count]:
            if commit is not None:
                self._settled[commit.partition] = commit.offset
        del self._news[:count]
        if not self._news:
            self._limit = ALERTS_MAX

    def _remember(self, notice: Notice) -> None:
        if notice.is_cleared:
            self._open.pop(notice.alert_id, None)
            return
        before = self._open.get(notice.alert_id)
        sent_at_s = before.sent_at_s if before else None
        partition = notice.place.partition if notice.place else -1
        self._open[notice.alert_id] = SentAlert(notice, partition, sent_at_s)

    def _is_stale(self, sent: SentAlert, now_s: float) -> bool:
        every_s = self.endpoint.resend_s
        if every_s is None:
            return False
        return sent.sent_at_s is None or now_s - sent.sent_at_s >= every_s

    def _identity(self, notice: Notice) -> Identity:
        return self.endpoint.identity(notice)
