"""Tests that the simulation detects each disabled rule of share groups.

A mutant is a patch that disables one rule; patches exist only in tests. A limited number of
seeds must catch it, and the seed that catches it must pass without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.share_state import DeliveryState, StateBatch, StoredState
from barnabas.node.share import acquired_batches, share_partition
from barnabas.node.share.share_partition import SharePartition
from barnabas.node.share.share_partitions import SharePartitions
from barnabas.share import record_leases, share_records, share_state_machine, window
from barnabas.share.cells import cell, change_to, state_of
from barnabas.share.share_state_machine import ShareStateMachine
from barnabas.share.share_state_tidying import Tidying
from barnabas.share.window import Acknowledgement, AcknowledgeType, Change, Window
from barnabas.sim.cluster_run import run_cluster
from barnabas.sim.faults.cluster_fault_rates import ClusterFaults
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.run import run
from barnabas.sim.scenario import Theme

SEEDS = 60

Patch = Callable[[pytest.MonkeyPatch], None]


def acknowledged_again_while_stored(patch: pytest.MonkeyPatch) -> None:
    """A record stays acquired while its acknowledgement is written (KAFKA-18084)."""
    original = Window.acknowledge

    def acknowledge(self: Any, member: str, acks: Sequence[Acknowledgement]) -> Any:
        change = original(self, member, acks)
        for run_ in [] if change is None else change.runs:
            table = change_to(DeliveryState.ACQUIRED)
            self._translate(run_.first - self.start, run_.last - self.start + 1, table)
        return change

    patch.setattr(Window, "acknowledge", acknowledge)


def given_out_while_stored(patch: pytest.MonkeyPatch) -> None:
    """A record whose acknowledgement is being written counts as available."""
    patch.setattr(window, "STORING", DeliveryState.AVAILABLE)


def time_that_passed_during_a_write_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A lock whose time passed during a failed write never ends (KAFKA-19476)."""

    def roll_back(self: Any, change: Change) -> list[StateBatch]:
        for run_ in change.runs:
            self._translate(*self._clipped(run_), change_to(DeliveryState.ACQUIRED))
        return []

    patch.setattr(Window, "roll_back", roll_back)


def failed_writes_not_rolled_back(patch: pytest.MonkeyPatch) -> None:
    """What could not be stored is never acquired or available again."""
    patch.setattr(Window, "roll_back", lambda *_: [])


def failed_writes_repeated_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """After a failed write the next one has older and newer states of the same offsets."""
    patch.setattr(share_partition, "merged", lambda _, batches, start: list(batches))


def locks_have_no_timer(patch: pytest.MonkeyPatch) -> None:
    """Nothing ends a delivery when its time has passed."""
    patch.setattr(SharePartition, "_watch_deadline", lambda _: None)


def offsets_between_stored_runs_are_gaps(patch: pytest.MonkeyPatch) -> None:
    """A new leader takes what is not stored for gaps of the log (KAFKA-18494)."""
    original = Window.__init__

    def init(self: Any, start: int, batches: Sequence[StateBatch] = (), *rest: Any) -> None:
        original(self, start, batches, *rest)
        gap = cell(DeliveryState.ARCHIVED, 0)
        self._cells = bytearray(gap if value == 0 else value for value in self._cells)
        self._advance()

    patch.setattr(Window, "__init__", init)


def delivered_from_the_start_of_the_batch(patch: pytest.MonkeyPatch) -> None:
    """A start offset in the middle of a batch: what lies below is delivered (KAFKA-19954)."""
    original = SharePartition._acquire_from

    def acquire_from(self: Any, found: Any, batches: Any, *rest: Any) -> Any:
        piece = original(self, found, batches, *rest)
        if piece is None:
            return None
        first = piece.runs[0]
        base = max(
            located.header.base_offset
            for located in batches._located
            if located.header.base_offset <= first.first
        )
        return piece._replace(runs=[first._replace(first=base), *piece.runs[1:]])

    patch.setattr(SharePartition, "_acquire_from", acquire_from)


def answered_before_stored(patch: pytest.MonkeyPatch) -> None:
    """An acknowledgement is answered before it is stored."""
    original = SharePartition.acknowledge

    def acknowledge(self: Any, *rest: Any) -> Pending[None]:
        original(self, *rest).when_done(lambda _: None, lambda _: None)
        return Pending.of(None)

    patch.setattr(SharePartition, "acknowledge", acknowledge)


def answered_before_the_end_is_stored(patch: pytest.MonkeyPatch) -> None:
    """Success for records that were archived is answered before that is stored."""
    patch.setattr(SharePartition, "_has_unstored", False)


def stored_state_not_read(patch: pytest.MonkeyPatch) -> None:
    """A new leader begins without the state that the old one has stored."""
    original = SharePartition._loaded

    def loaded(self: Any, stored: StoredState) -> None:
        original(self, stored._replace(batches=()))

    patch.setattr(SharePartition, "_loaded", loaded)


def old_leaders_not_fenced(patch: pytest.MonkeyPatch) -> None:
    """A leader that has been replaced may still write."""
    original = ShareStateMachine._known

    def known(self: Any, key: Any) -> Any:
        state = original(self, key)
        state.leader_epoch = 0
        return state

    patch.setattr(ShareStateMachine, "_known", known)


def late_writes_applied(patch: pytest.MonkeyPatch) -> None:
    """A write that was sent again, and overtaken by the next one, applies when it arrives."""
    patch.setattr(share_state_machine, "_without_older", lambda _, update: update)


def limit_does_not_archive(patch: pytest.MonkeyPatch) -> None:
    """A record is delivered more often than the limit allows."""
    patch.setattr(window, "end_of_delivery", lambda _: change_to(DeliveryState.AVAILABLE))


def delivery_counts_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The end of a delivery sets the count to zero."""
    table = bytes(DeliveryState.AVAILABLE for _ in range(256))
    patch.setattr(window, "end_of_delivery", lambda _: table)


def locks_not_limited(patch: pytest.MonkeyPatch) -> None:
    """Members may hold any number of records."""
    original = Window.acquire

    def acquire(self: Any, *rest: Any, **named: Any) -> Any:
        before, self.limits = self.limits, self.limits._replace(locks_max=1 << 30)
        try:
            return original(self, *rest, **named)
        finally:
            self.limits = before

    patch.setattr(Window, "acquire", acquire)


def any_member_may_acknowledge(patch: pytest.MonkeyPatch) -> None:
    """A member may acknowledge what others hold."""
    patch.setattr(record_leases.Leases, "are_all_of", lambda *_: True)


def acknowledged_in_part(patch: pytest.MonkeyPatch) -> None:
    """Of acknowledgements that are refused, those before the wrong one apply."""
    original = SharePartition.acknowledge

    def acknowledge(self: Any, member: str, acks: Sequence[Acknowledgement]) -> Pending[None]:
        try:
            return original(self, member, acks)
        except ApiError:
            for ack in acks:
                if ack.kind is not AcknowledgeType.RENEW:
                    original(self, member, [ack]).when_done(lambda _: None, lambda _: None)
            raise

    patch.setattr(SharePartition, "acknowledge", acknowledge)


def gaps_delivered(patch: pytest.MonkeyPatch) -> None:
    """Offsets without records behind the end of the window are acquired."""
    original = Window.skip

    def skip(self: Any, first: int, last: int) -> list[StateBatch]:
        return original(self, first, last) if first <= self.end else []

    patch.setattr(Window, "skip", skip)


def aborted_records_delivered(patch: pytest.MonkeyPatch) -> None:
    """A read_committed group gets the records of aborted transactions."""
    patch.setattr(
        acquired_batches.Batches, "_is_left_out", lambda self, header, producers: header.is_control
    )


def log_start_ignored(patch: pytest.MonkeyPatch) -> None:
    """Records that were deleted from the log stay in the window."""
    patch.setattr(Window, "move_start", lambda *_: False)


def snapshots_lack_runs(patch: pytest.MonkeyPatch) -> None:
    """A snapshot has only what changed last."""
    original = share_records.updated

    def updated(before: Any, update: Any, now_ms: int) -> Any:
        after = original(before, update, now_ms)
        after.batches = list(update.batches)
        return after

    patch.setattr(share_records, "updated", updated)


def pruned_too_far(patch: pytest.MonkeyPatch) -> None:
    """Records of share coordinators are deleted although no snapshot replaces them."""
    patch.setattr(
        Tidying, "_complete", lambda self, _: self._log.delete_before(self._log.end_offset)
    )


def departed_members_keep_records(patch: pytest.MonkeyPatch) -> None:
    """A member that has left holds its records, and nothing ends that."""
    original = record_leases.Leases.open

    def open_lease(self: Any, member: str, first: int, deadline_ms: int) -> Any:
        return original(self, member, first, deadline_ms + (1 << 40))

    patch.setattr(record_leases.Leases, "open", open_lease)
    patch.setattr(SharePartitions, "release", lambda *_: None)


def complete_records_available_again(patch: pytest.MonkeyPatch) -> None:
    """Accepted records behind a record that is still held become available again."""
    original = Window.commit

    def commit(self: Any, change: Change) -> None:
        original(self, change)
        self._cells = bytearray(
            value & ~7 if state_of(value) == DeliveryState.ACKNOWLEDGED else value
            for value in self._cells
        )
        self._hint = 0

    patch.setattr(Window, "commit", commit)


FULL = Faults(delay_ms_max=20, sync_ms_max=10, full_disk_gap_ms=1_500, power_cut_gap_ms=5_000)
"""The disk of a single broker is full for a while, again and again, so that writes fail."""
FULL_AND_POWER = replace(FULL, power_cut_gap_ms=1_200)
"""It also loses power often, before the writes are tried again."""
CUTS = ClusterFaults(
    machine=Faults(delay_ms_max=20, sync_ms_max=10, late_ms_max=3_000, break_gap_ms=1_000),
    targeted=0.9,
    isolation_gap_ms=1_500,
    cut_gap_ms=1_500,
    lane_gap_ms=300,
)
"""Brokers are cut off from each other, and requests come late."""

LONE: list[Patch] = [
    acknowledged_again_while_stored,
    given_out_while_stored,
    locks_have_no_timer,
    offsets_between_stored_runs_are_gaps,
    delivered_from_the_start_of_the_batch,
    answered_before_stored,
    stored_state_not_read,
    limit_does_not_archive,
    delivery_counts_forgotten,
    locks_not_limited,
    any_member_may_acknowledge,
    acknowledged_in_part,
    gaps_delivered,
    aborted_records_delivered,
    log_start_ignored,
    snapshots_lack_runs,
    pruned_too_far,
    departed_members_keep_records,
    complete_records_available_again,
]
FAILED_WRITES: list[tuple[Patch, Faults]] = [
    (time_that_passed_during_a_write_forgotten, FULL),
    (failed_writes_not_rolled_back, FULL),
    (failed_writes_repeated_as_they_are, FULL),
    (answered_before_the_end_is_stored, FULL_AND_POWER),
]


@pytest.mark.parametrize("mutant", LONE, ids=lambda each: each.__name__)
def test_mutant_is_caught(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    def problem(seed: int) -> str | None:
        return run(seed, theme=Theme.SHARES).problem

    _check(mutant, problem, monkeypatch)


@pytest.mark.parametrize(
    ("mutant", "faults"), [pytest.param(*row, id=row[0].__name__) for row in FAILED_WRITES]
)
def test_mutant_is_caught_on_a_full_disk(
    mutant: Patch, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(seed: int) -> str | None:
        return run(seed, theme=Theme.SHARES).problem

    monkeypatch.setattr(Faults, "swarm", lambda _: faults)
    _check(mutant, problem, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "first_seed"), [(old_leaders_not_fenced, 50), (late_writes_applied, 130)]
)
def test_mutant_is_caught_in_a_cluster(
    mutant: Patch, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(seed: int) -> str | None:
        return run_cluster(first_seed + seed, theme=Theme.SHARES, faults=CUTS).problem

    _check(mutant, problem, monkeypatch)


def _check(
    mutant: Patch, problem: Callable[[int], str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        mutant(patch)
        caught = next((seed for seed in range(SEEDS) if problem(seed) is not None), None)
    assert caught is not None
    assert problem(caught) is None
