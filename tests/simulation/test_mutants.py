"""Each rule switched off in turn: the simulation must notice, or it checks nothing.

A mutant is a patch that lives here alone. It must be caught within so many seeds, by one that
passes without it.
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
from barnabas.storage import snapshots
from barnabas.storage.producers import Producer, ProducerStates
from barnabas.transactions import transitions

SEEDS = 100

Patch = Callable[[pytest.MonkeyPatch], None]


def reply_before_commit(patch: pytest.MonkeyPatch) -> None:
    """A coordinator answers before its records are safe."""

    def run_unsafely(self: Any, operation: Any) -> Any:
        outcome = operation()
        if outcome.records:
            self._append(outcome)
        answer: Pending[Any] = Pending()
        shard._respond(outcome, answer)
        return answer

    patch.setattr(shard.Shard, "run", run_unsafely)


def acknowledge_before_sync(patch: pytest.MonkeyPatch) -> None:
    """Acknowledged records are in the page cache alone."""
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
    """OffsetCommit of a classic group looks at no generation."""
    patch.setattr(ClassicGroup, "check_commit", lambda *_, **__: None)


def members_keep_assignments_for_good(patch: pytest.MonkeyPatch) -> None:
    """A member of an earlier generation commits although others were handed its partitions."""
    patch.setattr(ClassicGroup, "_keeps_assignment", lambda *_: True)


def any_member_epoch_may_commit(patch: pytest.MonkeyPatch) -> None:
    """OffsetCommit of a `consumer` group looks at no member and no epoch (KIP-848)."""
    patch.setattr(ConsumerGroup, "check_commit", lambda *_, **__: None)


def any_generation_may_commit_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """TxnOffsetCommit looks at no generation (KIP-447)."""
    original = ClassicGroup.check_commit

    def check(self: Any, *rest: Any, transactional: bool) -> None:
        if not transactional:
            original(self, *rest, transactional=False)

    patch.setattr(ClassicGroup, "check_commit", check)


def unstable_offsets_are_shown(patch: pytest.MonkeyPatch) -> None:
    """Who takes a partition over does not wait for the transaction that its last owner ended."""
    patch.setattr(OffsetStore, "is_waiting", lambda *_: False)


def no_sequences(patch: pytest.MonkeyPatch) -> None:
    """A repeated batch is appended again."""
    patch.setattr(ProducerStates, "check", lambda *_: None)


def retry_answers_newest_offset(patch: pytest.MonkeyPatch) -> None:
    """A repeated batch is answered with an offset that is not its own."""
    original = ProducerStates.check

    def check(self: Any, header: Any) -> Any:
        found = original(self, header)
        return found and self.by_id[header.producer_id].batches[-1]

    patch.setattr(ProducerStates, "check", check)


def producers_forgotten_at_start(patch: pytest.MonkeyPatch) -> None:
    """A restart forgets every producer."""
    patch.setattr(snapshots, "rebuild", lambda log: (ProducerStates(), []))


def producers_half_remembered_at_start(patch: pytest.MonkeyPatch) -> None:
    """A restart remembers only the last batch of each producer."""
    original = snapshots.rebuild

    def rebuild(log: Any) -> Any:
        states, problems = original(log)
        for producer in states.by_id.values():
            assert isinstance(producer, Producer)
            del producer.batches[:-1]
        return states, problems

    patch.setattr(snapshots, "rebuild", rebuild)


def stable_up_to_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """The last stable offset is the high watermark."""
    patch.setattr(Watermark, "last_stable", property(lambda self: self.high))


def nothing_is_aborted(patch: pytest.MonkeyPatch) -> None:
    """Readers are not told which transactions were aborted."""
    patch.setattr(Partition, "aborted", lambda *_: ())


def epoch_stays_at_init(patch: pytest.MonkeyPatch) -> None:
    """A new instance of a producer gets the epoch of the old one."""
    original = transitions.initialized

    def initialized(before: Any, *rest: Any) -> Any:
        after = original(before, *rest)
        return after._replace(transaction=_with_epoch(after.transaction, before.producer_epoch))

    patch.setattr(transitions, "initialized", initialized)


def epoch_stays_at_end(patch: pytest.MonkeyPatch) -> None:
    """A transaction of version 2 ends without a larger epoch: markers and the next transaction
    carry the one that late requests have, too (KIP-890)."""
    original = transitions._ended

    def ended(before: Any, *rest: Any) -> Any:
        return _with_epoch(original(before, *rest), before.producer_epoch)

    patch.setattr(transitions, "_ended", ended)
    patch.setattr(ProducerStates, "check_marker", lambda *_: None)


def markers_are_tried_once(patch: pytest.MonkeyPatch) -> None:
    """A marker that the disk refuses is given up."""
    patch.setattr(Ending, "_refused", lambda *_: None)


def any_epoch_may_write(patch: pytest.MonkeyPatch) -> None:
    """The coordinator lets producers in that were fenced."""
    patch.setattr(transitions, "check_producer", lambda *_: None)


def given_before_released(patch: pytest.MonkeyPatch) -> None:
    """A partition is given to a member before the last owner has let go of it (KIP-848)."""
    original = reconciliation._towards

    def towards(standing: Any, target: Any, owned: Any, is_free: Any) -> Any:
        return original(standing, target, owned, lambda slot: True)

    patch.setattr(reconciliation, "_towards", towards)


def aborted_offsets_count(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a transaction count however it ends."""
    original = OffsetStore.end
    patch.setattr(
        OffsetStore,
        "end",
        lambda self, producer, committed: original(self, producer, committed=True),
    )


def transaction_undoes_newer_offsets(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a transaction count even where something newer was committed."""
    patch.setattr(OffsetStore, "next_order", _counting_down())


def deleted_groups_keep_offsets(patch: pytest.MonkeyPatch) -> None:
    """DeleteGroups leaves the group's offsets behind."""
    patch.setattr(Offsets, "tombstones_of", lambda *_: [])


def _counting_down() -> Callable[[Any], int]:
    def next_order(self: Any) -> int:
        self._order -= 1
        return int(self._order)

    return next_order


def _with_epoch(transaction: Any, epoch: int) -> Any:
    return replace(transaction, producer_epoch=epoch)


def backlog_cannot_be_written(patch: pytest.MonkeyPatch) -> None:
    """What a paused connection has received is kept as bytes, into which no offset is stamped."""
    original = Connection._take_backlog

    def take(self: Any) -> None:
        if self._backlog is not None:
            self._backlog = memoryview(bytes(self._backlog))
        original(self)

    patch.setattr(Connection, "_take_backlog", take)


MUTANTS: list[tuple[Patch, Theme]] = [
    (backlog_cannot_be_written, Theme.MIXED),
    (reply_before_commit, Theme.GROUPS),
    (acknowledge_before_sync, Theme.MIXED),
    (markers_before_prepare, Theme.TRANSACTIONS),
    (any_generation_may_commit, Theme.GROUPS),
    (members_keep_assignments_for_good, Theme.GROUPS),
    (any_member_epoch_may_commit, Theme.GROUPS),
    (any_generation_may_commit_in_transactions, Theme.FLOW),
    (unstable_offsets_are_shown, Theme.FLOW),
    (no_sequences, Theme.MIXED),
    (retry_answers_newest_offset, Theme.MIXED),
    (producers_forgotten_at_start, Theme.MIXED),
    (producers_half_remembered_at_start, Theme.MIXED),
    (stable_up_to_high_watermark, Theme.TRANSACTIONS),
    (nothing_is_aborted, Theme.TRANSACTIONS),
    (epoch_stays_at_init, Theme.TRANSACTIONS),
    (epoch_stays_at_end, Theme.TRANSACTIONS),
    (markers_are_tried_once, Theme.TRANSACTIONS),
    (any_epoch_may_write, Theme.TRANSACTIONS),
    (given_before_released, Theme.GROUPS),
    (aborted_offsets_count, Theme.TRANSACTIONS),
    (transaction_undoes_newer_offsets, Theme.TRANSACTIONS),
    (deleted_groups_keep_offsets, Theme.GROUPS),
]
LATE = {
    markers_before_prepare,
    markers_are_tried_once,
    any_generation_may_commit_in_transactions,
    unstable_offsets_are_shown,
}
"""Caught after many seeds: they run with `make test-cluster`."""


@pytest.mark.parametrize(
    ("mutant", "theme"),
    [
        pytest.param(
            mutant,
            theme,
            id=f"{mutant.__name__}-{theme.value}",
            marks=[pytest.mark.slow] if mutant in LATE else [],
        )
        for mutant, theme in MUTANTS
    ],
)
def test_a_mutant_is_caught(mutant: Patch, theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        mutant(patch)
        caught = next((s for s in range(SEEDS) if run(s, theme=theme).problem is not None), None)
    assert caught is not None
    assert run(caught, theme=theme).problem is None


def test_old_producers_are_at_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before KIP-890 a request to end a transaction that comes late ends another one.

    Jepsen found it in Bufstream; Kafka has it with such producers, and so do we. The simulation
    spares them late requests, and this shows what it would find.
    """
    storm = Faults(delay_ms_max=300, late_ms_max=3_000, break_gap_ms=300)
    monkeypatch.setattr(Faults, "swarm", lambda _: storm)
    theme = Theme.TRANSACTIONS
    with monkeypatch.context() as patch:
        patch.setattr(TransactionalProducer, "late_from_version", 0)
        caught = next((s for s in range(SEEDS) if run(s, theme=theme).problem is not None), None)
    assert caught is not None
    assert run(caught, theme=theme).problem is None
