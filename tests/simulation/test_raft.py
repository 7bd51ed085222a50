"""Tests the metadata quorum alone: seeds that must pass, and disabled rules that must be caught.

Each mutant is a patch that disables one rule; patches exist only in this file. A limited number of
seeds must catch it, and the seed that catches it must pass without it. The docstring of a mutant
names its rule in the words of reliability.md.
"""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.model.errors import StorageError
from barnabas.raft import answering, replicas, voters
from barnabas.raft.leading import Leader
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.metadata_snapshots import NO_SNAPSHOT, Snapshots
from barnabas.raft.quorum_state import QuorumState, QuorumStateFile
from barnabas.raft.raft_elections import Elections
from barnabas.raft.raft_following import Follower
from barnabas.raft.raft_voter_changes import VoterChanges
from barnabas.sim.raft.raft_world import RaftFaults, play
from barnabas.sim.world import InvariantError
from barnabas.storage.changes import ChangeSteps, Sync

SEEDS = 20

Patch = Callable[[pytest.MonkeyPatch], None]


def vote_kept_in_memory(patch: pytest.MonkeyPatch) -> None:
    """Vote and epoch are fsynced before the reply."""
    patch.setattr(QuorumStateFile, "synced", lambda self: False)


def vote_not_saved(patch: pytest.MonkeyPatch) -> None:
    """Vote and epoch are fsynced before the reply: here the epoch is, and the vote is not."""
    original = QuorumStateFile.save

    def save_epoch(self: Any, state: Any) -> None:
        original(self, QuorumState(state.epoch))

    patch.setattr(QuorumStateFile, "save", save_epoch)


def fetch_before_sync(patch: pytest.MonkeyPatch) -> None:
    """A raft follower fsyncs before its next fetch: the fetch is the ack."""
    patch.setattr(Follower, "may_fetch", lambda self: True)


def any_response_accepted(patch: pytest.MonkeyPatch) -> None:
    """Replies match requests."""
    patch.setattr(Elections, "expects", lambda self, role: isinstance(self.role, type(role)))
    patch.setattr(Follower, "is_awaited", lambda self, ticket: True)


def truncate_below_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Never truncate below the high watermark; only a response to another request asks for that."""
    any_response_accepted(patch)
    patch.setattr(MetadataLog, "protects", lambda self, high_watermark, end: False)


def commit_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """A new raft leader serves only after its epoch's first record is committed."""
    patch.setattr(Leader, "covers_own_epoch", lambda self, offset: True)


def serves_before_first_commit(patch: pytest.MonkeyPatch) -> None:
    """A new raft leader serves only after its epoch's first record is committed (KAFKA-12619).

    With this mutant it serves at once with the commits that it knows, which may not be all.
    """
    original = Leader.enter

    def enter(self: Any) -> None:
        original(self)
        if self.is_current and not self.active:
            self.active = True
            self.elections.listener.became_active(self.elections.epoch)

    patch.setattr(Leader, "enter", enter)


def change_before_first_commit(patch: pytest.MonkeyPatch) -> None:
    """Membership changes after the leader's first commit: with this mutant before it."""
    patch.setattr(VoterChanges, "may_change", lambda self: self._is_set_committed())


def change_during_another(patch: pytest.MonkeyPatch) -> None:
    """Membership changes one at a time."""
    patch.setattr(VoterChanges, "may_change", lambda self: self._leader.active)


def many_changes_at_once(patch: pytest.MonkeyPatch) -> None:
    """Membership changes one at a time, after the leader's first commit."""
    patch.setattr(VoterChanges, "may_change", lambda self: True)


def voters_by_id(patch: pytest.MonkeyPatch) -> None:
    """Voters known by directory id."""

    def same_node(key: Any, voter: Any) -> bool:
        return bool(key.id == voter.id)

    patch.setattr(voters, "speaks_for", same_node)
    patch.setattr(replicas, "speaks_for", same_node)
    patch.setattr(answering, "same_disk", lambda expected, directory: True)


def start_without_snapshot(patch: pytest.MonkeyPatch) -> None:
    """A corrupt snapshot stops the node; it is never deleted."""
    original = Snapshots.open

    def open_without_check(self: Any) -> Any:
        try:
            return original(self)
        except StorageError:
            self._disk.remove(self.path(self.newest))
            self.newest = NO_SNAPSHOT
            return None

    patch.setattr(Snapshots, "open", open_without_check)


def log_deleted_before_snapshot_is_durable(patch: pytest.MonkeyPatch) -> None:
    """The log before a snapshot is deleted only once the snapshot is durable: here before."""
    original = Snapshots.storing

    def storing_without_sync(self: Any, snapshot_id: Any, content: Any) -> ChangeSteps[None]:
        for _ in original(self, snapshot_id, content):
            yield Sync()

    patch.setattr(Snapshots, "storing", storing_without_sync)


RIVAL_CANDIDATES = RaftFaults(
    fault_ms=4_000,
    every_ms=60,
    restart_ms=10,
    resign=20,
    isolate=0,
    split=0,
    kill=0,
    one_way=10,
    heal=8,
    wipe=0,
    corrupt=0,
    members=0,
    spares=0,
    kill_at_vote=0.2,
    delay_ms=60,
    loss=0.1,
)
"""Candidates compete, and voters are killed right after they voted."""
SLOW_DISKS = RaftFaults(sync_ms=150, power_cut=8, cut_all=8, every_ms=200)
"""Disks are slow, and the power often fails on all machines at once."""
LATE_MESSAGES = RaftFaults(
    every_ms=100,
    late=0.3,
    repeat=0.3,
    isolate=10,
    heal=10,
    kill=0,
    power_cut=0,
    cut_all=0,
    split=0,
    wipe=0,
    corrupt=0,
    members=0,
    spares=0,
)
"""Leaders are cut off and come back; messages arrive late and twice."""
VOTER_CHANGES = RaftFaults(every_ms=100, members=20, split=15, heal=15, wipe=0, corrupt=0)
"""Voters are added and removed while the network is partitioned."""
TWO_LEADERS = RaftFaults(
    every_ms=1_200,
    voters=4,
    spares=1,
    two_leaders=4,
    heal=4,
    kill=0,
    power_cut=0,
    cut_all=0,
    isolate=0,
    split=0,
    one_way=0,
    wipe=0,
    corrupt=0,
    resign=0,
    members=0,
    loss=0,
)
"""An old and a new leader change the voters at the same time."""
LOST_DISKS = RaftFaults(
    every_ms=200,
    wipe=20,
    power_cut=8,
    isolate=10,
    heal=6,
    kill=0,
    split=0,
    one_way=0,
    corrupt=0,
    members=0,
    spares=0,
)
"""Disks are lost one at a time, and their nodes come back with empty disks."""
DAMAGED_SNAPSHOTS = RaftFaults(corrupt=15, every_ms=250, snapshot_after=20)
"""Snapshots are damaged."""
POWER_CUTS = RaftFaults(power_cut=10, cut_all=10, every_ms=150, snapshot_after=10)
"""The power fails while snapshots are written."""

MUTANTS: list[tuple[Patch, RaftFaults, int]] = [
    (vote_kept_in_memory, RaftFaults(), 50),
    (vote_not_saved, RIVAL_CANDIDATES, 200),
    (fetch_before_sync, SLOW_DISKS, 100),
    (any_response_accepted, LATE_MESSAGES, 150),
    (truncate_below_high_watermark, LATE_MESSAGES, 150),
    (commit_earlier_epochs, RaftFaults(), 100),
    (serves_before_first_commit, RaftFaults(), 50),
    (many_changes_at_once, VOTER_CHANGES, 100),
    (change_during_another, VOTER_CHANGES, 100),
    (change_before_first_commit, TWO_LEADERS, 100),
    (voters_by_id, LOST_DISKS, 100),
    (start_without_snapshot, DAMAGED_SNAPSHOTS, 50),
    (log_deleted_before_snapshot_is_durable, POWER_CUTS, 100),
]
SLOW_TO_CATCH = {vote_not_saved, many_changes_at_once, change_during_another}
"""These are caught after many seeds, and run with `make test-cluster`."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_seed(seed: int) -> None:
    world = play(seed)
    assert world.history.end_offset > 0


def test_a_seed_replays_byte_for_byte() -> None:
    assert play(7).world.digest == play(7).world.digest
    assert play(7).world.digest != play(8).world.digest


@pytest.mark.parametrize(
    ("mutant", "faults", "seeds"),
    [
        pytest.param(
            *row, id=row[0].__name__, marks=[pytest.mark.slow] if row[0] in SLOW_TO_CATCH else []
        )
        for row in MUTANTS
    ],
)
def test_mutant_is_caught(
    mutant: Patch, faults: RaftFaults, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = first_caught(mutant, faults, seeds, monkeypatch)
    assert seed is not None, f"none of {seeds} seeds caught the mutant"
    play(seed, faults)


def first_caught(
    mutant: Patch, faults: RaftFaults, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> int | None:
    for seed in range(seeds):
        with monkeypatch.context() as patch:
            mutant(patch)
            try:
                play(seed, faults)
            except (InvariantError, StorageError):
                return seed
    return None
