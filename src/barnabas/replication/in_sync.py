"""What a leader knows of its followers, and which of them are in sync.

A follower's fetch offset says how far it is: it fetches from an offset only once everything below
it is as durable as its topic's `flush` setting asks for. A record is committed once all in-sync
replicas (ISR) have it. The leader proposes changes of the ISR, and the controller decides. Until
the leader knows the decision it must allow for both outcomes, so the high watermark waits for the
maximal ISR, the union of the committed and the proposed one. Any replica that may be elected then
has every record that was acknowledged.

    leaves   has not caught up with the leader's end for too long, or lost records
    joins    has everything below the high watermark and below the start of this leader epoch,
             fetched in this epoch, and is alive in the broker epoch in which it fetched (KIP-903)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

BrokerEpochs = Callable[[int], int | None]
"""The broker epoch of a broker, None if it is fenced, stopping or unknown."""

UNKNOWN = -1


class LagLimits(NamedTuple):
    """How far a follower may be behind before it is out of sync."""

    duration_ms: int
    records: int = 0
    """0 is no limit."""


class Follower:
    """One follower, as its fetches in this leader epoch show it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetched_at_end",
        "fetched_ms",
    )

    def __init__(self, caught_up_ms: int) -> None:
        self.end_offset = UNKNOWN
        """The follower has everything below this offset; unknown before its first fetch."""
        self.broker_epoch = UNKNOWN
        self.caught_up_ms = caught_up_ms
        """When it last had everything that the leader had then."""
        self.fetched_ms = caught_up_ms
        self.fetched_at_end = UNKNOWN
        """The end of the leader's log at the follower's last fetch."""

    @property
    def has_fetched(self) -> bool:
        """Whether it fetched in this leader epoch; it may have truncated what it had before."""
        return self.end_offset != UNKNOWN

    def fetched(self, offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        """Record a fetch."""
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif self.fetched_at_end != UNKNOWN and offset >= self.fetched_at_end:
            self.caught_up_ms = self.fetched_ms  # it has everything that the leader had then
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
        """The end of the leader's log when it began to lead."""
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        """The ISR that the controller committed."""
        self.proposed: Sequence[int] | None = None
        """The ISR that the leader proposed, until it knows the controller's decision."""
        self.seen: Sequence[tuple[int, int]] = ()
        """The proposed replicas with the broker epochs in which they fetched; -1 is not checked."""
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
        """Apply the replicas and the ISR that the controller decided on."""
        if partition_epoch < self.partition_epoch:
            return
        if partition_epoch > self.partition_epoch:
            self.proposed = None  # accepted, or outdated by another decision
        self.replicas, self.isr, self.partition_epoch = replicas, isr, partition_epoch
        others = [replica for replica in replicas if replica != self.me]
        known = self._followers
        # A new leader knows nothing of its followers: each gets the full time to fetch.
        self._followers = {each: known.get(each) or Follower(now_ms) for each in others}

    @property
    def followers(self) -> Mapping[int, Follower]:
        """Every other replica."""
        return self._followers

    @property
    def maximal_isr(self) -> Sequence[int]:
        """The replicas that are in sync, or will be if the controller accepts the proposal."""
        if self.proposed is None:
            return self.isr
        return [*self.isr, *(each for each in self.proposed if each not in self.isr)]

    @property
    def effective_min_isr(self) -> int:
        """How many replicas must be in sync: never more than there are."""
        return max(1, min(self.min_isr, len(self.replicas)))

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few replicas are in sync to commit records."""
        return len(self.isr) < self.effective_min_isr

    def fetched(
        self, replica: int, broker_epoch: int, offset: int, leader_end: int, now_ms: int
    ) -> bool:
        """Record a fetch whose offset is in the log; return whether it counts.

        A fetch that the broker sent before it restarted may arrive late, and does not count.
        """
        follower = self._followers.get(replica)
        if follower is None or broker_epoch < follower.broker_epoch:
            return False
        follower.fetched(offset, broker_epoch, leader_end, now_ms)
        return True

    def high_watermark(self, local_safe: int) -> int:
        """Return up to where the maximal ISR has the log; -1 while too few are in sync."""
        if self.is_under_min_isr:
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
        """Return the ISR that the leader should propose, if another one is due."""
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
        """Propose an ISR, with the broker epochs in which its members fetched (KIP-903).

        The request may reach the controller late. A broker that restarts until then fetches again,
        and may have lost records.
        """
        self.proposed = members
        self.seen = [(each, self._broker_epoch(each)) for each in members]

    def may_join(
        self, replica: int, follower: Follower, high_watermark: int, broker_epochs: BrokerEpochs
    ) -> bool:
        """Tell whether a replica that is out of sync may join the ISR."""
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
        """Record that followers at the end are caught up now: without new records none fetches."""
        for follower in self._followers.values():
            if follower.end_offset >= leader_end:
                follower.caught_up_ms = now_ms

    def _broker_epoch(self, replica: int) -> int:
        follower = self._followers.get(replica)
        return UNKNOWN if follower is None else follower.broker_epoch


def reaches_high_watermark(follower: Follower, high_watermark: int) -> bool:
    """Tell whether a follower has every committed record."""
    return follower.end_offset >= high_watermark


def reaches_epoch(follower: Follower, epoch_start: int) -> bool:
    """Tell whether a follower has every record that the leader had when it began to lead.

    The high watermark that a new leader knows may be old: more records may have been acknowledged
    below the start of its epoch.
    """
    return follower.end_offset >= epoch_start


def lives_as_it_fetched(follower: Follower, broker_epoch: int | None) -> bool:
    """Tell whether a follower's broker is alive and has not restarted since it fetched."""
    return broker_epoch is not None and broker_epoch == follower.broker_epoch


def lags(follower: Follower, leader_end: int, now_ms: int, limits: LagLimits) -> bool:
    """Tell whether a follower has been behind for too long, or is behind by too many records."""
    missing = leader_end - follower.end_offset
    if limits.records and follower.has_fetched and missing > limits.records:
        return True
    return follower.end_offset < leader_end and now_ms - follower.caught_up_ms > limits.duration_ms


def lost_records(follower: Follower, high_watermark: int) -> bool:
    """Tell whether an in-sync follower lost committed records, as after a disk failure.

    While it is in sync, no record is committed that it does not have.
    """
    return follower.has_fetched and follower.end_offset < high_watermark
