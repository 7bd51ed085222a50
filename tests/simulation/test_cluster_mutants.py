"""Tests that the simulation of a cluster detects each disabled reliability rule.

A mutant is a patch that disables one rule; patches exist only in tests. A limited number of
seeds must catch it, and the seed that catches it must pass without it. `test_raft.py` has more
mutants of the quorum, and `test_mutants.py` those of a single broker's coordinators.
"""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.controller import brokers, isr_decisions, partition_change
from barnabas.model.endings import Endings
from barnabas.model.errors import ApiError
from barnabas.node.cluster.controlling import Controlling
from barnabas.node.cluster.local_replicas import Replicas
from barnabas.node.coordination.transaction_endings import Ending
from barnabas.node.partitions.follower_replica import FollowerReplica
from barnabas.node.partitions.partition import Partition
from barnabas.raft.quorum_state import QuorumStateFile
from barnabas.replication import in_sync as replication
from barnabas.replication.in_sync import InSync
from barnabas.sim.cluster_run import run_cluster
from barnabas.sim.faults.cluster_fault_rates import ClusterFaults
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.scenario import Theme
from barnabas.storage.log import Log
from barnabas.storage.producers import ProducerStates
from barnabas.transactions.transitions import LAST_EPOCH
from tests.support.shared_mutants import epoch_stays_at_end, retry_answers_newest_offset

SEEDS = 200

Patch = Callable[[pytest.MonkeyPatch], None]


def truncate_to_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A follower truncates its log to its own high watermark (KIP-101)."""
    original = FollowerReplica.begin

    def begin(self: Any) -> None:
        self._log.truncate_to(self._partition.high_watermark)
        original(self)

    patch.setattr(FollowerReplica, "begin", begin)


def leader_ignores_divergence(patch: pytest.MonkeyPatch) -> None:
    """The leader ignores the epoch of a follower's last batch (KIP-279)."""
    patch.setattr(Partition, "diverges", lambda *_: None)


def high_watermark_ignores_proposed_isr(patch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for replicas that the leader has proposed for the ISR."""
    patch.setattr(InSync, "maximal_isr", property(lambda self: self.isr))


def high_watermark_advances_under_min_isr(patch: pytest.MonkeyPatch) -> None:
    """The high watermark advances below the minimum ISR: eligible leaders lack records."""
    original = InSync.high_watermark

    def high_watermark(self: Any, local_safe: int) -> int:
        before, self.min_isr = self.min_isr, 1
        try:
            return original(self, local_safe)
        finally:
            self.min_isr = before

    patch.setattr(InSync, "high_watermark", high_watermark)


def acks_all_accepted_under_min_isr(patch: pytest.MonkeyPatch) -> None:
    """A leader below the minimum ISR accepts acks=all and advances the high watermark."""
    patch.setattr(InSync, "is_under_min_isr", property(lambda _: False))


def joins_below_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A replica that lacks acknowledged records joins the ISR."""
    patch.setattr(replication, "reaches_high_watermark", lambda *_: True)
    patch.setattr(replication, "reaches_epoch", lambda *_: True)


def joins_before_epoch_start(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR at the high watermark of a new leader, which may be outdated."""
    patch.setattr(replication, "reaches_epoch", lambda *_: True)


def joins_before_first_fetch(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR of a new leader before it fetched in this epoch.

    It may have truncated what it had in an earlier epoch.
    """
    original = InSync.may_join

    def may_join(self: Any, replica: int, follower: Any, high: int, broker_epochs: Any) -> bool:
        if follower.has_fetched:
            return original(self, replica, follower, high, broker_epochs)
        follower.broker_epoch = broker_epochs(replica) or follower.broker_epoch
        return broker_epochs(replica) is not None

    patch.setattr(InSync, "may_join", may_join)


def leader_assumes_followers_have_everything(patch: pytest.MonkeyPatch) -> None:
    """A new leader assumes that in-sync replicas have its whole log before they fetch."""
    original = InSync.place

    def place(self: Any, *rest: Any) -> None:
        original(self, *rest)
        for follower in self._followers.values():
            follower.end_offset = max(follower.end_offset, self.epoch_start)

    patch.setattr(InSync, "place", place)


def partition_epochs_ignored(patch: pytest.MonkeyPatch) -> None:
    """The controller accepts an AlterPartition request although the partition has changed since."""
    patch.setattr(isr_decisions, "knows_this_partition", lambda *_: None)


def leader_epochs_ignored(patch: pytest.MonkeyPatch) -> None:
    """The controller accepts an AlterPartition request of a previous leader."""
    patch.setattr(isr_decisions, "leads_in_this_epoch", lambda *_: None)
    patch.setattr(isr_decisions, "knows_this_partition", lambda *_: None)
    patch.setattr(isr_decisions, "_check_members", lambda *_: None)


def broker_epochs_ignored(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR although it restarted and lost records since it fetched (KIP-903)."""
    patch.setattr(
        isr_decisions,
        "may_be_in_sync",
        lambda image, _, member: isr_decisions.is_available(image, member.broker_id),
    )
    patch.setattr(replication, "lives_as_it_fetched", lambda _, epoch: epoch is not None)


def fenced_replicas_join(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR although its broker is fenced or stopping (KAFKA-14154)."""
    patch.setattr(isr_decisions, "is_available", lambda *_: True)


def stopping_replicas_join(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR although its broker is stopping."""
    patch.setattr(isr_decisions, "is_available", lambda image, node: not image.brokers[node].fenced)
    patch.setattr(
        Replicas,
        "_active_epoch",
        lambda self, broker: self._host.image.brokers[broker].broker_epoch,
    )


def eligible_leaders_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """The controller forgets replicas that leave the ISR below its minimum as eligible leaders."""
    patch.setattr(partition_change, "eligible_leaders", lambda *_, **__: [])


def unclean_restarts_are_trusted(patch: pytest.MonkeyPatch) -> None:
    """A broker that lost power stays in the ISR, whatever it lost (KIP-966)."""
    patch.setattr(brokers, "has_all_acknowledged", lambda *_: True)


def followers_ignore_producer_state(patch: pytest.MonkeyPatch) -> None:
    """A follower does not keep producer state: after a failover, a retry is appended again."""
    original = Log.append_replicated

    def append(self: Any, *rest: Any) -> Any:
        before = self.producers
        self.producers = ProducerStates()
        try:
            return original(self, *rest)
        finally:
            self.producers = before

    patch.setattr(Log, "append_replicated", append)


def late_markers_accepted(patch: pytest.MonkeyPatch) -> None:
    """A late marker ends the producer's next transaction (KAFKA-17754)."""
    patch.setattr(ProducerStates, "check_marker", lambda *_: None)


def old_marker_fails_pending_writes(patch: pytest.MonkeyPatch) -> None:
    """The marker of a producer's last transaction fails pending writes of the next (KIP-890)."""
    original = Endings.ended

    def ended(self: Any, writer: Any, _: int) -> None:
        original(self, writer, LAST_EPOCH)

    patch.setattr(Endings, "ended", ended)


def markers_dropped_for_moved_replicas(patch: pytest.MonkeyPatch) -> None:
    """A partition whose replica moved to another broker is handled like a deleted one."""
    original = Ending._refused

    def refused(self: Any, partition: Any, delay_ms: int, error: Exception) -> None:
        if isinstance(error, ApiError) and partition not in self._host.partitions:
            self._written(partition)
        else:
            original(self, partition, delay_ms, error)

    patch.setattr(Ending, "_refused", refused)


def votes_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    """A broker answers before vote and epoch are on disk."""
    patch.setattr(QuorumStateFile, "synced", lambda _: False)


def missing_replicas_not_added(patch: pytest.MonkeyPatch) -> None:
    """Topics that are created while brokers are down never get their missing replicas."""
    patch.setattr(Controlling, "grow", lambda _: None)


def leader_with_full_disk_does_not_resign(patch: pytest.MonkeyPatch) -> None:
    """A leader whose disk has refused every append for long does not resign."""
    patch.setattr(InSync, "resigns", property(lambda _: False, lambda *_: None))


KILLS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, kill_gap_ms=3_000, power_cut_gap_ms=4_000),
    targeted=0.9,
    down_ms_max=1_500,
    triggered=0.5,
)
"""Leaders are killed, most of them at critical moments."""
UNSYNCED = ClusterFaults(
    flush_on_ack=False,
    machine=Faults(delay_ms_max=20, sync_ms_max=10, power_cut_gap_ms=1_500),
    targeted=0.5,
    down_ms_max=1_500,
    triggered=0.3,
    isolation_gap_ms=2_000,
    machine_pause_gap_ms=3_000,
)
"""One machine loses power repeatedly, and topics are not synced on every write."""
CUTS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, late_ms_max=3_000, break_gap_ms=1_000),
    targeted=0.9,
    triggered=0.2,
    isolation_gap_ms=1_500,
    cut_gap_ms=1_500,
    lane_gap_ms=300,
)
"""Brokers are cut off from each other, and requests come late; random kills do not happen."""

LATE_MESSAGES = ClusterFaults(
    machine=Faults(delay_ms_max=60, sync_ms_max=10, late_ms_max=1_000),
    lane_gap_ms=20,
)
"""Requests between brokers arrive late, or twice."""
STOPS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, stop_gap_ms=1_000),
    targeted=0.5,
    cut_gap_ms=3_000,
    slow_gap_ms=2_000,
)
"""Brokers shut down cleanly on a slow network."""

FULL = ClusterFaults(
    flush_on_ack=False,
    machine=Faults(delay_ms_max=20, sync_ms_max=10, full_disk_gap_ms=2_000),
    full_ms_max=8_000,
)
"""The disk of one machine is full for long, and there are no other faults."""

QUICK: list[tuple[Patch, Theme, ClusterFaults | None]] = [
    (truncate_to_high_watermark, Theme.LOG, KILLS),
    (leader_ignores_divergence, Theme.LOG, KILLS),
    (joins_before_first_fetch, Theme.LOG, KILLS),
    (stopping_replicas_join, Theme.LOG, STOPS),
    (followers_ignore_producer_state, Theme.LOG, KILLS),
    (retry_answers_newest_offset, Theme.LOG, KILLS),
    (votes_are_not_synced, Theme.LOG, None),
    (leader_with_full_disk_does_not_resign, Theme.LOG, FULL),
]
"""Caught within a few seeds."""
MUTANTS = [
    *QUICK,
    (high_watermark_ignores_proposed_isr, Theme.LOG, KILLS),
    (leader_assumes_followers_have_everything, Theme.LOG, KILLS),
    (missing_replicas_not_added, Theme.LOG, KILLS),
    (high_watermark_advances_under_min_isr, Theme.LOG, KILLS),
    (acks_all_accepted_under_min_isr, Theme.LOG, KILLS),
    (joins_below_high_watermark, Theme.LOG, KILLS),
    (joins_before_epoch_start, Theme.LOG, KILLS),
    (partition_epochs_ignored, Theme.LOG, CUTS),
    (leader_epochs_ignored, Theme.LOG, CUTS),
    (broker_epochs_ignored, Theme.GROUPS, KILLS),
    (fenced_replicas_join, Theme.LOG, None),
    (eligible_leaders_not_recorded, Theme.LOG, UNSYNCED),
    (unclean_restarts_are_trusted, Theme.LOG, UNSYNCED),
    (epoch_stays_at_end, Theme.TRANSACTIONS, None),
    (late_markers_accepted, Theme.TRANSACTIONS, LATE_MESSAGES),
    (old_marker_fails_pending_writes, Theme.TRANSACTIONS, LATE_MESSAGES),
    (markers_dropped_for_moved_replicas, Theme.TRANSACTIONS, KILLS),
]


@pytest.mark.parametrize(
    ("mutant", "theme", "faults"),
    [
        pytest.param(*row, id=row[0].__name__, marks=[] if row in QUICK else [pytest.mark.slow])
        for row in MUTANTS
    ],
)
def test_mutant_is_caught(
    mutant: Patch, theme: Theme, faults: ClusterFaults | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(seed: int) -> str | None:
        return run_cluster(seed, theme=theme, faults=faults).problem

    with monkeypatch.context() as patch:
        mutant(patch)
        caught = next((seed for seed in range(SEEDS) if problem(seed) is not None), None)
    assert caught is not None
    assert problem(caught) is None
