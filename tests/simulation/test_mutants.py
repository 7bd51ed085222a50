"""Each rule switched off in turn: the simulation must notice, or it checks nothing.

A mutant is a patch that lives here alone. It must be caught by one of the seeds that pass without
it (`test_seeds.py` plays them all).
"""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer import reconciliation
from barnabas.groups.offset_store import OffsetStore
from barnabas.model.pending import Pending
from barnabas.node import shard
from barnabas.node.partition import Partition
from barnabas.sim.run import run
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
        shard._let_go(outcome, answer)
        return answer

    patch.setattr(shard.Shard, "run", run_unsafely)


def acknowledge_before_sync(patch: pytest.MonkeyPatch) -> None:
    """Acknowledged records are in the page cache alone."""
    patch.setattr(Partition, "when_safe", lambda self, offset, action, gone=None: action())


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
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


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
    """A transaction of version 2 ends without a larger epoch (KIP-890)."""
    original = transitions._ended

    def ended(before: Any, *rest: Any) -> Any:
        return _with_epoch(original(before, *rest), before.producer_epoch)

    patch.setattr(transitions, "_ended", ended)
    patch.setattr(ProducerStates, "check_marker", lambda *_: None)


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


def _counting_down() -> Callable[[Any], int]:
    def next_order(self: Any) -> int:
        self._order -= 1
        return int(self._order)

    return next_order


def _with_epoch(transaction: Any, epoch: int) -> Any:
    from dataclasses import replace

    return replace(transaction, producer_epoch=epoch)


MUTANTS: list[Patch] = [
    reply_before_commit,
    acknowledge_before_sync,
    markers_before_prepare,
    any_generation_may_commit,
    no_sequences,
    retry_answers_newest_offset,
    producers_forgotten_at_start,
    producers_half_remembered_at_start,
    stable_up_to_high_watermark,
    nothing_is_aborted,
    epoch_stays_at_init,
    epoch_stays_at_end,
    any_epoch_may_write,
    given_before_released,
    aborted_offsets_count,
    transaction_undoes_newer_offsets,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_caught(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert any(run(seed).problem is not None for seed in range(SEEDS))
