"""Tests that the simulation of a single broker detects each disabled rule.

A mutant is a patch that disables one rule; patches exist only in tests. A limited number of
seeds must catch it, and the seed that catches it must pass without it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.groups.classic.classic_group import ClassicGroup
from barnabas.groups.consumer import reconciliation
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.offset_store import OffsetStore
from barnabas.groups.offsets import Offsets
from barnabas.model.pending import Pending
from barnabas.node.coordination import coordinator_shard as shard
from barnabas.node.coordination.transaction_endings import Ending
from barnabas.node.partitions.partition import Partition
from barnabas.node.partitions.watermark import Watermark
from barnabas.server.connection import Connection
from barnabas.sim.clients.transactional_producer import TransactionalProducer
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.run import run
from barnabas.sim.scenario import Theme
from barnabas.storage import producer_snapshots
from barnabas.storage.producers import Producer, ProducerStates
from barnabas.transactions import transitions
from tests.support.shared_mutants import epoch_stays_at_end, retry_answers_newest_offset

SEEDS = 100

Patch = Callable[[pytest.MonkeyPatch], None]


def reply_before_commit(patch: pytest.MonkeyPatch) -> None:
    """A coordinator answers before its records are replicated."""

    def run_unsafely(self: Any, operation: Any) -> Any:
        outcome = operation()
        if outcome.records:
            self._append(outcome)
        answer: Pending[Any] = Pending()
        shard._respond(outcome, answer)
        return answer

    patch.setattr(shard.Shard, "run", run_unsafely)


def acknowledge_before_sync(patch: pytest.MonkeyPatch) -> None:
    """A broker acknowledges records before they are synced."""
    patch.setattr(Watermark, "when_safe", lambda self, offset, action, cancelled=None: action())


def markers_before_prepare(patch: pytest.MonkeyPatch) -> None:
    """Markers are written although the decision may still be lost."""
    original = shard.Shard.run

    def run_early(self: Any, operation: Any) -> Any:
        early = []

        def decided() -> Any:
            outcome = operation()
            if outcome.committed is not None:
                early.append(outcome.committed)
                outcome.committed = None
            return outcome

        answer = original(self, decided)
        for action in early:
            action()
        return answer

    patch.setattr(shard.Shard, "run", run_early)


def any_generation_may_commit(patch: pytest.MonkeyPatch) -> None:
    """OffsetCommit of a classic group does not check the generation."""
    patch.setattr(ClassicGroup, "check_commit", lambda *_, **__: None)


def old_generations_may_commit(patch: pytest.MonkeyPatch) -> None:
    """A member of an earlier generation may commit although its partitions were reassigned."""
    patch.setattr(ClassicGroup, "_keeps_assignment", lambda *_: True)


def any_member_epoch_may_commit(patch: pytest.MonkeyPatch) -> None:
    """OffsetCommit of a `consumer` group does not check the member and its epoch (KIP-848)."""
    patch.setattr(ConsumerGroup, "check_commit", lambda *_, **__: None)


def any_generation_may_commit_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """TxnOffsetCommit does not check the generation (KIP-447)."""
    original = ClassicGroup.check_commit

    def check(self: Any, *rest: Any, transactional: bool) -> None:
        if not transactional:
            original(self, *rest, transactional=False)

    patch.setattr(ClassicGroup, "check_commit", check)


def unstable_offsets_returned(patch: pytest.MonkeyPatch) -> None:
    """The new owner of a partition does not wait for the previous owner's transaction."""
    patch.setattr(OffsetStore, "is_waiting", lambda *_: False)


def duplicate_batches_appended(patch: pytest.MonkeyPatch) -> None:
    """A retried batch is appended again."""
    patch.setattr(ProducerStates, "check", lambda *_: None)


def producer_state_lost_at_start(patch: pytest.MonkeyPatch) -> None:
    """A restart forgets every producer."""
    patch.setattr(producer_snapshots, "rebuild", lambda log: (ProducerStates(), []))


def only_last_batches_restored_at_start(patch: pytest.MonkeyPatch) -> None:
    """A restart remembers only the last batch of each producer."""
    original = producer_snapshots.rebuild

    def rebuild(log: Any) -> Any:
        states, problems = original(log)
        for producer in states.by_id.values():
            assert isinstance(producer, Producer)
            del producer.batches[:-1]
        return states, problems

    patch.setattr(producer_snapshots, "rebuild", rebuild)


def last_stable_offset_ignores_transactions(patch: pytest.MonkeyPatch) -> None:
    """The last stable offset is the high watermark."""
    patch.setattr(Watermark, "last_stable", property(lambda self: self.high))


def aborted_transactions_not_listed(patch: pytest.MonkeyPatch) -> None:
    """Fetch responses do not list aborted transactions."""
    patch.setattr(Partition, "aborted", lambda *_: ())


def epoch_stays_at_init(patch: pytest.MonkeyPatch) -> None:
    """A new instance of a producer gets the epoch of the old one."""
    original = transitions.initialized

    def initialized(before: Any, *rest: Any) -> Any:
        after = original(before, *rest)
        return after._replace(transaction=_with_epoch(after.transaction, before.producer_epoch))

    patch.setattr(transitions, "initialized", initialized)


def markers_not_retried(patch: pytest.MonkeyPatch) -> None:
    """A broker does not retry a marker that the disk refused."""
    patch.setattr(Ending, "_refused", lambda *_: None)


def fenced_producers_accepted(patch: pytest.MonkeyPatch) -> None:
    """The coordinator accepts requests of fenced producers."""
    patch.setattr(transitions, "check_producer", lambda *_: None)


def assigned_before_revoked(patch: pytest.MonkeyPatch) -> None:
    """A partition is assigned to a member before its last owner has revoked it (KIP-848)."""
    original = reconciliation._towards

    def towards(standing: Any, target: Any, owned: Any, is_free: Any) -> Any:
        return original(standing, target, owned, lambda slot: True)

    patch.setattr(reconciliation, "_towards", towards)


def aborted_offsets_applied(patch: pytest.MonkeyPatch) -> None:
    """Offsets of an aborted transaction are applied."""
    original = OffsetStore.end
    patch.setattr(
        OffsetStore,
        "end",
        lambda self, producer, committed: original(self, producer, committed=True),
    )


def transaction_undoes_newer_offsets(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a transaction replace newer commits."""
    patch.setattr(OffsetStore, "next_order", _counting_down())


def deleted_groups_keep_offsets(patch: pytest.MonkeyPatch) -> None:
    """DeleteGroups keeps the group's offsets."""
    patch.setattr(Offsets, "tombstones_of", lambda *_: [])


def _counting_down() -> Callable[[Any], int]:
    def next_order(self: Any) -> int:
        self._order -= 1
        return int(self._order)

    return next_order


def _with_epoch(transaction: Any, epoch: int) -> Any:
    return replace(transaction, producer_epoch=epoch)


def read_only_backlog(patch: pytest.MonkeyPatch) -> None:
    """A paused connection keeps data as read-only bytes, but a log stamps offsets into it."""
    original = Connection._take_backlog

    def take(self: Any) -> None:
        if self._backlog is not None:
            self._backlog = memoryview(bytes(self._backlog))
        original(self)

    patch.setattr(Connection, "_take_backlog", take)


MUTANTS: list[tuple[Patch, Theme]] = [
    (read_only_backlog, Theme.MIXED),
    (reply_before_commit, Theme.GROUPS),
    (acknowledge_before_sync, Theme.MIXED),
    (markers_before_prepare, Theme.TRANSACTIONS),
    (any_generation_may_commit, Theme.GROUPS),
    (old_generations_may_commit, Theme.GROUPS),
    (any_member_epoch_may_commit, Theme.GROUPS),
    (any_generation_may_commit_in_transactions, Theme.FLOW),
    (unstable_offsets_returned, Theme.FLOW),
    (duplicate_batches_appended, Theme.MIXED),
    (retry_answers_newest_offset, Theme.MIXED),
    (producer_state_lost_at_start, Theme.MIXED),
    (only_last_batches_restored_at_start, Theme.MIXED),
    (last_stable_offset_ignores_transactions, Theme.TRANSACTIONS),
    (aborted_transactions_not_listed, Theme.TRANSACTIONS),
    (epoch_stays_at_init, Theme.TRANSACTIONS),
    (epoch_stays_at_end, Theme.TRANSACTIONS),
    (markers_not_retried, Theme.TRANSACTIONS),
    (fenced_producers_accepted, Theme.TRANSACTIONS),
    (assigned_before_revoked, Theme.GROUPS),
    (aborted_offsets_applied, Theme.TRANSACTIONS),
    (transaction_undoes_newer_offsets, Theme.TRANSACTIONS),
    (deleted_groups_keep_offsets, Theme.GROUPS),
]
SLOW_TO_CATCH = {
    markers_before_prepare,
    markers_not_retried,
    any_generation_may_commit_in_transactions,
    unstable_offsets_returned,
}
"""These are caught after many seeds, and run with `make test-cluster`."""


@pytest.mark.parametrize(
    ("mutant", "theme"),
    [
        pytest.param(
            mutant,
            theme,
            id=f"{mutant.__name__}-{theme.value}",
            marks=[pytest.mark.slow] if mutant in SLOW_TO_CATCH else [],
        )
        for mutant, theme in MUTANTS
    ],
)
def test_mutant_is_caught(mutant: Patch, theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        mutant(patch)
        caught = next((s for s in range(SEEDS) if run(s, theme=theme).problem is not None), None)
    assert caught is not None
    assert run(caught, theme=theme).problem is None


def test_late_requests_of_old_producers_end_the_wrong_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before KIP-890, a late EndTxn ends another transaction.

    Jepsen found it in Bufstream. Kafka and Barnabas have it with producers before transaction
    version 2. The simulation does not delay their requests, and this test shows what it would find.
    """
    storm = Faults(delay_ms_max=300, late_ms_max=3_000, break_gap_ms=300)
    monkeypatch.setattr(Faults, "swarm", lambda _: storm)
    theme = Theme.TRANSACTIONS
    with monkeypatch.context() as patch:
        patch.setattr(TransactionalProducer, "late_from_version", 0)
        caught = next((s for s in range(SEEDS) if run(s, theme=theme).problem is not None), None)
    assert caught is not None
    assert run(caught, theme=theme).problem is None
