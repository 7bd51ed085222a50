"""Each starred rule of a cluster switched off in turn: the simulation must notice.

A mutant is a patch that lives here alone. It must be caught within so many seeds, by one that
passes without it. What concerns the quorum alone is also in `test_raft.py`, what concerns a lone
broker's coordinators in `test_mutants.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.controller import brokers, in_sync, partition_change
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
from barnabas.transactions import transitions
from barnabas.transactions.transitions import LAST_EPOCH

SEEDS = 200

Patch = Callable[[pytest.MonkeyPatch], None]


def cut_to_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A follower gives up everything above its own high watermark (KIP-101)."""
    original = FollowerReplica.begin

    def begin(self: Any) -> None:
        self._log.truncate_to(self._partition.high_watermark)
        original(self)

    patch.setattr(FollowerReplica, "begin", begin)


def nobody_diverges(patch: pytest.MonkeyPatch) -> None:
    """A leader does not look at the epoch of the last batch that a follower has (KIP-279)."""
    patch.setattr(Partition, "diverges", lambda *_: None)


def committed_isr_counts_alone(patch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for who may be in sync by now, for all the leader knows."""
    patch.setattr(InSync, "maximal_isr", property(lambda self: self.isr))


def watermark_moves_while_short(patch: pytest.MonkeyPatch) -> None:
    """The high watermark moves though too few are in sync: who left is eligible, and lacks it."""
    original = InSync.high_watermark

    def high_watermark(self: Any, local_safe: int) -> int:
        before, self.min_isr = self.min_isr, 1
        try:
            return original(self, local_safe)
        finally:
            self.min_isr = before

    patch.setattr(InSync, "high_watermark", high_watermark)


def one_copy_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A leader alone in its ISR takes acks=all, and moves the high watermark."""
    patch.setattr(InSync, "is_under_min_isr", property(lambda _: False))


def joins_below_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR that lacks what was acknowledged."""
    patch.setattr(replication, "reaches_high_watermark", lambda *_: True)
    patch.setattr(replication, "reaches_epoch", lambda *_: True)


def joins_before_epoch_start(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR at the high watermark of a new leader that knows an old one."""
    patch.setattr(replication, "reaches_epoch", lambda *_: True)


def joins_before_it_fetches(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR of a new leader that has not heard of it in this epoch: what it had
    in an earlier one it may have truncated."""
    original = InSync.may_join

    def may_join(self: Any, replica: int, follower: Any, high: int, broker_epochs: Any) -> bool:
        if follower.has_fetched:
            return original(self, replica, follower, high, broker_epochs)
        follower.broker_epoch = broker_epochs(replica) or follower.broker_epoch
        return broker_epochs(replica) is not None

    patch.setattr(InSync, "may_join", may_join)


def counts_before_it_fetches(patch: pytest.MonkeyPatch) -> None:
    """A new leader takes it that who is in sync has all that it has itself, unheard."""
    original = InSync.place

    def place(self: Any, *rest: Any) -> None:
        original(self, *rest)
        for follower in self._followers.values():
            follower.end_offset = max(follower.end_offset, self.epoch_start)

    patch.setattr(InSync, "place", place)


def partition_epochs_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """AlterPartition is carried out although the partition has changed since it was made."""
    patch.setattr(in_sync, "knows_this_partition", lambda *_: None)


def leader_epochs_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """AlterPartition of a leader that was deposed is carried out."""
    patch.setattr(in_sync, "leads_in_this_epoch", lambda *_: None)
    patch.setattr(in_sync, "knows_this_partition", lambda *_: None)
    patch.setattr(in_sync, "_check_members", lambda *_: None)


def broker_epochs_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR that was restarted, and lost records, since it fetched (KIP-903)."""
    patch.setattr(
        in_sync,
        "may_be_in_sync",
        lambda image, _, member: in_sync.is_available(image, member.broker_id),
    )
    patch.setattr(replication, "lives_as_it_fetched", lambda _, epoch: epoch is not None)


def fenced_replicas_join(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR although its broker is fenced or stopping (KAFKA-14154)."""
    patch.setattr(in_sync, "is_available", lambda *_: True)


def stopping_replicas_join(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the ISR although its broker is about to stop."""
    patch.setattr(in_sync, "is_available", lambda image, node: not image.brokers[node].fenced)
    patch.setattr(
        Replicas,
        "_active_epoch",
        lambda self, broker: self._host.image.brokers[broker].broker_epoch,
    )


def nobody_is_eligible(patch: pytest.MonkeyPatch) -> None:
    """Who leaves the ISR below its minimum is forgotten: the last replica stands alone."""
    patch.setattr(partition_change, "eligible_leaders", lambda *_, **__: [])


def unclean_restarts_are_trusted(patch: pytest.MonkeyPatch) -> None:
    """A broker that lost power keeps its place, whatever it lost (KIP-966)."""
    patch.setattr(brokers, "has_all_acknowledged", lambda *_: True)


def copies_know_no_producers(patch: pytest.MonkeyPatch) -> None:
    """A follower does not remember producers: after a failover, a retry is appended again."""
    original = Log.append_replicated

    def append(self: Any, *rest: Any) -> Any:
        before = self.producers
        self.producers = ProducerStates()
        try:
            return original(self, *rest)
        finally:
            self.producers = before

    patch.setattr(Log, "append_replicated", append)


def epoch_stays_at_end(patch: pytest.MonkeyPatch) -> None:
    """Transactions end without a larger epoch, and markers do not carry one (KIP-890)."""
    original = transitions._ended

    def ended(before: Any, *rest: Any) -> Any:
        return replace(original(before, *rest), producer_epoch=before.producer_epoch)

    patch.setattr(transitions, "_ended", ended)
    patch.setattr(ProducerStates, "check_marker", lambda *_: None)


def late_markers_are_taken(patch: pytest.MonkeyPatch) -> None:
    """A marker ends what its own epoch has open: one that comes late ends the next transaction
    (KAFKA-17754)."""
    patch.setattr(ProducerStates, "check_marker", lambda *_: None)


def retry_answers_newest_offset(patch: pytest.MonkeyPatch) -> None:
    """A repeated batch is answered with an offset that is not its own, across failover too."""
    original = ProducerStates.check

    def check(self: Any, header: Any) -> Any:
        found = original(self, header)
        return found and self.by_id[header.producer_id].batches[-1]

    patch.setattr(ProducerStates, "check", check)


def any_marker_ends_what_waits(patch: pytest.MonkeyPatch) -> None:
    """The marker of a producer's last transaction voids what it writes in the next (KIP-890)."""
    original = Endings.ended

    def ended(self: Any, writer: Any, _: int) -> None:
        original(self, writer, LAST_EPOCH)

    patch.setattr(Endings, "ended", ended)


def markers_of_moved_copies_are_given_up(patch: pytest.MonkeyPatch) -> None:
    """A partition whose copy here is gone is taken for one that was deleted."""
    original = Ending._refused

    def refused(self: Any, partition: Any, delay_ms: int, error: Exception) -> None:
        if isinstance(error, ApiError) and partition not in self._host.partitions:
            self._written(partition)
        else:
            original(self, partition, delay_ms, error)

    patch.setattr(Ending, "_refused", refused)


def votes_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Vote and epoch are answered before they are on disk."""
    patch.setattr(QuorumStateFile, "synced", lambda _: False)


def topics_do_not_grow(patch: pytest.MonkeyPatch) -> None:
    """Topics that are made while brokers are down keep the few copies they got."""
    patch.setattr(Controlling, "grow", lambda _: None)


def leader_keeps_leading_on_a_full_disk(patch: pytest.MonkeyPatch) -> None:
    """A leader goes on to lead whose disk has refused every append for long."""
    patch.setattr(InSync, "resigns", property(lambda _: False, lambda *_: None))


KILLS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, kill_gap_ms=3_000, power_cut_gap_ms=4_000),
    targeted=0.9,
    down_ms_max=1_500,
    triggered=0.5,
)
"""Leaders die, most of them just when it matters."""
WEAK = ClusterFaults(
    flush_on_ack=False,
    machine=Faults(delay_ms_max=20, sync_ms_max=10, power_cut_gap_ms=1_500),
    targeted=0.5,
    down_ms_max=1_500,
    triggered=0.3,
    isolation_gap_ms=2_000,
    standstill_gap_ms=3_000,
)
"""One machine loses power again and again, and topics are not synced on every write."""
CUTS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, late_ms_max=3_000, break_gap_ms=1_000),
    targeted=0.9,
    triggered=0.2,
    isolation_gap_ms=1_500,
    cut_gap_ms=1_500,
    lane_gap_ms=300,
)
"""Nobody dies by chance; brokers are cut off from each other, and requests come late."""

ECHOES = ClusterFaults(
    machine=Faults(delay_ms_max=60, sync_ms_max=10, late_ms_max=1_000),
    lane_gap_ms=20,
)
"""What brokers ask of each other arrives late, or twice."""
STOPS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, stop_gap_ms=1_000),
    targeted=0.5,
    cut_gap_ms=3_000,
    slow_gap_ms=2_000,
)
"""Brokers stop as they should, on a network that is slow."""

FULL = ClusterFaults(
    flush_on_ack=False,
    machine=Faults(delay_ms_max=20, sync_ms_max=10, full_disk_gap_ms=2_000),
    full_ms_max=8_000,
)
"""The disk of one machine is full for long, and nothing else goes wrong."""

QUICK: list[tuple[Patch, Theme, ClusterFaults | None]] = [
    (cut_to_high_watermark, Theme.LOG, KILLS),
    (nobody_diverges, Theme.LOG, KILLS),
    (joins_before_it_fetches, Theme.LOG, KILLS),
    (stopping_replicas_join, Theme.LOG, STOPS),
    (copies_know_no_producers, Theme.LOG, KILLS),
    (retry_answers_newest_offset, Theme.LOG, KILLS),
    (votes_are_not_synced, Theme.LOG, None),
    (leader_keeps_leading_on_a_full_disk, Theme.LOG, FULL),
]
"""Caught within a few seeds."""
MUTANTS = [
    *QUICK,
    (committed_isr_counts_alone, Theme.LOG, KILLS),
    (counts_before_it_fetches, Theme.LOG, KILLS),
    (topics_do_not_grow, Theme.LOG, KILLS),
    (watermark_moves_while_short, Theme.LOG, KILLS),
    (one_copy_is_enough, Theme.LOG, KILLS),
    (joins_below_high_watermark, Theme.LOG, KILLS),
    (joins_before_epoch_start, Theme.LOG, KILLS),
    (partition_epochs_do_not_matter, Theme.LOG, CUTS),
    (leader_epochs_do_not_matter, Theme.LOG, CUTS),
    (broker_epochs_do_not_matter, Theme.GROUPS, KILLS),
    (fenced_replicas_join, Theme.LOG, None),
    (nobody_is_eligible, Theme.LOG, WEAK),
    (unclean_restarts_are_trusted, Theme.LOG, WEAK),
    (epoch_stays_at_end, Theme.TRANSACTIONS, None),
    (late_markers_are_taken, Theme.TRANSACTIONS, ECHOES),
    (any_marker_ends_what_waits, Theme.TRANSACTIONS, ECHOES),
    (markers_of_moved_copies_are_given_up, Theme.TRANSACTIONS, KILLS),
]


@pytest.mark.parametrize(
    ("mutant", "theme", "faults"),
    [
        pytest.param(*row, id=row[0].__name__, marks=[] if row in QUICK else [pytest.mark.slow])
        for row in MUTANTS
    ],
)
def test_a_mutant_is_caught(
    mutant: Patch, theme: Theme, faults: ClusterFaults | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(seed: int) -> str | None:
        return run_cluster(seed, theme=theme, faults=faults).problem

    with monkeypatch.context() as patch:
        mutant(patch)
        caught = next((seed for seed in range(SEEDS) if problem(seed) is not None), None)
    assert caught is not None
    assert problem(caught) is None
