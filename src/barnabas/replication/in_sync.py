"""What a leader knows of its followers, and who of them counts.

A follower's fetch says how far it got: it asks for an offset only once everything below it is as
safe as its topic wants. The in-sync replicas (ISR) are those without whom no record is committed.
The controller says who they are; the leader proposes. Until it knows what became of a proposal
it must reckon with either outcome, so the high watermark counts the maximal ISR, the union of the
committed and the proposed one: whoever may be elected has everything that was acknowledged.

    leaves   has not caught up with the leader's end for too long, or lost what it had
    joins    has everything below the high watermark and reaches into this epoch, fetched in
             this epoch, and is alive in the life in which it fetched (KIP-903)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

BrokerEpochs = Callable[[int], int | None]
"""The epoch in which a broker may be in sync, None where it is fenced, stopping or unknown."""

UNKNOWN = -1


class LagLimits(NamedTuple):
    """How far a follower may be behind before it is out of sync."""

    duration_ms: int
    records: int = 0
    """0 is no limit."""


class Follower:
    """One other replica, as far as it told in this leader epoch."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetched_at_end",
        "fetched_ms",
    )

    def __init__(self, caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN
        """Everything below this it has; not known before it fetched."""
        self.broker_epoch = UNKNOWN
        self.caught_up_ms = caught_up_ms
        """When it last had everything that the leader had."""
        self.fetched_ms = caught_up_ms
        self.fetched_at_end = UNKNOWN
        """Where the leader's log ended when it last fetched."""

    @property
    def has_fetched(self) -> bool:
        """Whether it fetched in this leader epoch: what it said before, it may have truncated."""
        return self.end_offset != UNKNOWN

    def fetched(self, offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        """Take note of a fetch."""
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif self.fetched_at_end != UNKNOWN and offset >= self.fetched_at_end:
            self.caught_up_ms = self.fetched_ms  # it had everything there was back then
        self.end_offset, self.broker_epoch = offset, broker_epoch
        self.fetched_at_end, self.fetched_ms = leader_end, now_ms


class InSync:
    """The followers of one partition during one leader epoch."""

    __slots__ = (
        "_followers",
        "epoch_start",
        "gives_up",
        "isr",
        "me",
        "min_isr",
        "partition_epoch",
        "proposed",
        "replicas",
        "resigns",
        "seen",
    )

    def __init__(self, me: int, epoch_start: int) -> None:
        self.me = me
        self.epoch_start = epoch_start
        """Where the leader's log ended when it began to lead."""
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        """As committed by the controller."""
        self.proposed: Sequence[int] | None = None
        """What the controller was asked for and has not answered."""
        self.seen: Sequence[tuple[int, int]] = ()
        """Who was proposed, each with the broker epoch in which it fetched; -1 is not checked."""
        self.partition_epoch = -1
        self.min_isr = 1
        self.gives_up = False
        """Whether the leader's own log is damaged, so that another replica should lead."""
        self.resigns = False
        """Whether the leader's disk refuses appends, so that another replica should lead."""
        self._followers: dict[int, Follower] = {}

    def place(
        self, replicas: Sequence[int], isr: Sequence[int], partition_epoch: int, now_ms: int
    ) -> None:
        """Take on who holds copies and who of them is in sync, as the controller decided."""
        if partition_epoch < self.partition_epoch:
            return
        if partition_epoch > self.partition_epoch:
            self.proposed = None  # decided, or made moot by another decision
        self.replicas, self.isr, self.partition_epoch = replicas, isr, partition_epoch
        others = [replica for replica in replicas if replica != self.me]
        known = self._followers
        # Members get their full time to be heard of, as a new leader knows nothing of them.
        self._followers = {each: known.get(each) or Follower(now_ms) for each in others}

    @property
    def followers(self) -> Mapping[int, Follower]:
        """Every other replica."""
        return self._followers

    @property
    def maximal_isr(self) -> Sequence[int]:
        """Everybody who is in sync, or may be once a proposal is known to be accepted."""
        if self.proposed is None:
            return self.isr
        return [*self.isr, *(each for each in self.proposed if each not in self.isr)]

    @property
    def effective_min_isr(self) -> int:
        """How many must be in sync: never more than there are copies."""
        return max(1, min(self.min_isr, len(self.replicas)))

    @property
    def is_short(self) -> bool:
        """Whether too few are in sync for anything to be committed."""
        return len(self.isr) < self.effective_min_isr

    def fetched(
        self, replica: int, broker_epoch: int, offset: int, leader_end: int, now_ms: int
    ) -> bool:
        """Take note of a fetch whose offset was found good; tell whether it counts.

        One of an earlier life of the broker may have been under way for long.
        """
        follower = self._followers.get(replica)
        if follower is None or broker_epoch < follower.broker_epoch:
            return False
        follower.fetched(offset, broker_epoch, leader_end, now_ms)
        return True

    def high_watermark(self, local_safe: int) -> int:
        """Return up to where everybody who counts has the log; -1 while that must not move."""
        if self.is_short:
            return UNKNOWN
        lowest = local_safe
        for replica in self.maximal_isr:
            if replica != self.me:
                follower = self._followers.get(replica)
                lowest = min(lowest, UNKNOWN if follower is None else follower.end_offset)
        return lowest

    def proposal(
        self,
        high_watermark: int,
        leader_end: int,
        now_ms: int,
        limits: LagLimits,
        broker_epochs: BrokerEpochs,
    ) -> list[int] | None:
        """Return the ISR that the controller is to be asked for, if another one is due."""
        if self.proposed is not None:
            return None
        kept = [
            each
            for each in self.isr
            if each == self.me or not self._leaves(each, high_watermark, leader_end, now_ms, limits)
        ]
        if (self.gives_up or self.resigns) and len(kept) > 1:
            return [each for each in kept if each != self.me]
        joining = [
            each
            for each, follower in self._followers.items()
            if each not in self.isr and self.may_join(each, follower, high_watermark, broker_epochs)
        ]
        wanted = [*kept, *joining]
        return None if wanted == list(self.isr) else wanted

    def propose(self, members: Sequence[int]) -> None:
        """Ask for an ISR, of the processes that were seen by now (KIP-903).

        It may be a while until the controller is reached: one that starts anew meanwhile fetches,
        too, and has less.
        """
        self.proposed = members
        self.seen = [(each, self._broker_epoch(each)) for each in members]

    def may_join(
        self, replica: int, follower: Follower, high_watermark: int, broker_epochs: BrokerEpochs
    ) -> bool:
        """Tell whether a replica that is out of sync has what it takes to be in."""
        return (
            follower.has_fetched
            and reaches_high_watermark(follower, high_watermark)
            and reaches_epoch(follower, self.epoch_start)
            and lives_as_it_fetched(follower, broker_epochs(replica))
        )

    def _leaves(
        self, replica: int, high_watermark: int, leader_end: int, now_ms: int, limits: LagLimits
    ) -> bool:
        follower = self._followers.get(replica)
        return (
            follower is None
            or lost_records(follower, high_watermark)
            or lags(follower, leader_end, now_ms, limits)
        )

    def look(self, leader_end: int, now_ms: int) -> None:
        """Take note of who has everything as of now: nobody fetches what does not change."""
        for follower in self._followers.values():
            if follower.end_offset >= leader_end:
                follower.caught_up_ms = now_ms

    def _broker_epoch(self, replica: int) -> int:
        follower = self._followers.get(replica)
        return UNKNOWN if follower is None else follower.broker_epoch


def reaches_high_watermark(follower: Follower, high_watermark: int) -> bool:
    """Tell whether a follower has all that was acknowledged."""
    return follower.end_offset >= high_watermark


def reaches_epoch(follower: Follower, epoch_start: int) -> bool:
    """Tell whether a follower has all that the leader had when it began to lead.

    The high watermark a new leader knows may be old: below its epoch's start there may be more
    that was acknowledged.
    """
    return follower.end_offset >= epoch_start


def lives_as_it_fetched(follower: Follower, broker_epoch: int | None) -> bool:
    """Tell whether a follower's broker is alive, and still the process that fetched."""
    return broker_epoch is not None and broker_epoch == follower.broker_epoch


def lags(follower: Follower, leader_end: int, now_ms: int, limits: LagLimits) -> bool:
    """Tell whether a follower has been behind for too long, or is behind by too many records."""
    missing = leader_end - follower.end_offset
    if limits.records and follower.has_fetched and missing > limits.records:
        return True
    return follower.end_offset < leader_end and now_ms - follower.caught_up_ms > limits.duration_ms


def lost_records(follower: Follower, high_watermark: int) -> bool:
    """Tell whether an in-sync follower no longer has what was committed, for its disk failed it.

    While it counted, nothing was committed that it did not have.
    """
    return follower.has_fetched and follower.end_offset < high_watermark
