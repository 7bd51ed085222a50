"""Tests snapshots: written after enough commits, fetched in pieces, rejected when damaged."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from barnabas.effects import Address, MakeDurable
from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.ids import NodeId
from barnabas.raft import answering
from barnabas.raft.metadata_log import FOLDER
from barnabas.raft.metadata_snapshots import (
    RECORDS_A_BATCH,
    SUFFIX,
    Pair,
    SnapshotId,
    Snapshots,
    decode,
    encode,
)
from barnabas.raft.voters import Voter, VoterSet
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.raft.raft_member import RaftMember
from tests.support.raft.raft_quorum import RaftQuorum

ID = SnapshotId(100, 3)
PAIRS = [(b"k%d" % number, b"v%d" % number) for number in range(1_200)]
VOTERS = VoterSet([Voter(NodeId(1), b"d" * 16, Address("h", 1))])


def names(member: RaftMember) -> list[str]:
    return [name for name in member.disk.list(f"data/{FOLDER}") if name.endswith(SUFFIX)]


def propose(member: RaftMember, first: int, count: int) -> None:
    for number in range(first, first + count):
        member.raft.propose([(b"k%d" % number, b"v")], 0)
        member.raft.commit_now()
        member.sync()


def test_what_is_written_is_read() -> None:
    found = decode(ID, encode(ID, VOTERS, PAIRS, 5))
    assert (found.records, found.voters) == (PAIRS, VOTERS)
    assert decode(ID, encode(ID, None, [], 5)).records == []


def test_every_damage_is_noticed() -> None:
    content = encode(ID, VOTERS, PAIRS[:3], 5)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptBatchError):
            decode(ID, bytes(damaged))
        with pytest.raises(CorruptBatchError):
            decode(ID, content[:position])
    with pytest.raises(CorruptBatchError):
        decode(ID, content + content)


def test_other_names_are_not_snapshots() -> None:
    disk = MemoryDisk()
    disk.make_folder(f"data/{FOLDER}")
    other_digits = "\N{ARABIC-INDIC DIGIT ZERO}" * 20 + "-0000000001"
    for stem in ("backup", "1-2-3", "5-1", other_digits, ID.file_name):
        disk.write_atomic(f"data/{FOLDER}/{stem}{SUFFIX}", b"not a snapshot")
    assert Snapshots(disk, f"data/{FOLDER}").listed() == []


def test_a_snapshot_takes_the_place_of_the_log() -> None:
    member = RaftMember(count=1, snapshot_after=10).start()
    propose(member, 0, 45)
    assert len(names(member)) > 0
    assert member.raft.log.start_offset > 0
    member.raft.close()
    again = RaftMember(count=1, disk=member.disk, snapshot_after=10).start()
    assert [key for key, _ in again.listener.records] == [b"k%d" % n for n in range(45)]
    assert "snapshot" in again.listener.events


def test_a_damaged_snapshot_stops_the_node_and_stays() -> None:
    """KAFKA-14618: an older snapshot, or none, would look valid and be wrong."""
    member = RaftMember(count=1, snapshot_after=10).start()
    propose(member, 0, 25)
    newest = names(member)[-1]
    member.raft.close()
    member.disk.flip(f"data/{FOLDER}/{newest}", 500)
    for _ in range(2):
        with pytest.raises(StorageError, match="is damaged"):
            RaftMember(count=1, disk=member.disk).raft.open()
        assert newest in names(member)


def test_damage_in_an_earlier_segment_stops_the_node() -> None:
    """Recovery would truncate the log there, and delete what later segments hold."""
    member = RaftMember(count=1, snapshot_after=10).start()
    propose(member, 0, 15)
    segments = [n for n in member.disk.list(f"data/{FOLDER}") if n.endswith(".log")]
    assert len(segments) > 1
    first = f"data/{FOLDER}/{segments[0]}"
    member.disk.remove(f"data/{FOLDER}/committed-end")
    member.disk.flip(first, 8 * (member.disk.size(first) - 20))
    with pytest.raises(StorageError, match="is damaged"):
        RaftMember(count=1, disk=member.disk).raft.open()


def test_a_power_cut_may_bring_back_some_of_what_was_dropped() -> None:
    """The log's start was recorded before: what lies below it is no gap."""
    member = RaftMember(count=1, snapshot_after=10).start()
    propose(member, 0, 45)
    member.raft.close()
    member.disk.open(f"data/{FOLDER}/{0:020d}.log", create=True)
    again = RaftMember(count=1, disk=member.disk, snapshot_after=10).start()
    assert len(again.listener.records) == 45


def test_a_missing_snapshot_stops_the_node() -> None:
    member = RaftMember(count=1, snapshot_after=10).start()
    propose(member, 0, 45)
    member.raft.close()
    for name in names(member):
        member.disk.remove(f"data/{FOLDER}/{name}")
    with pytest.raises(StorageError, match="no snapshot"):
        RaftMember(count=1, disk=member.disk).raft.open()


@pytest.mark.parametrize("piece_bytes", [100, 1_000_000])
def test_a_node_that_comes_late_gets_a_snapshot(
    piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-630: a snapshot in pieces, if the leader's log no longer has the needed records."""
    monkeypatch.setattr(answering, "SNAPSHOT_PIECE_BYTES", piece_bytes)
    quorum = RaftQuorum(3, snapshot_after=10)
    leader = quorum.elect()
    late = next(n for n, m in quorum.members.items() if m is not leader)
    quorum.isolated.add(late)
    for number in range(60):
        leader.raft.propose([(b"k%d" % number, b"v")], 0)
        quorum.settle()
    assert leader.raft.log.start_offset > quorum.members[late].raft.end_offset
    quorum.isolated.clear()
    quorum.pass_time(3_000)
    member = quorum.members[late]
    assert member.listener.records == leader.listener.records
    assert "snapshot" in member.listener.events
    assert member.raft.end_offset == leader.raft.end_offset
    again = quorum.restart(late)
    quorum.pass_time(2_000)
    assert again.listener.records == leader.listener.records


class Counted:
    """A listener's content that counts how much of it was read."""

    def __init__(self, member: RaftMember) -> None:
        self.read = 0
        self._member = member
        member.listener.snapshot = self.snapshot  # type: ignore[method-assign]

    def snapshot(self) -> Iterator[Pair]:
        return self._counted(list(self._member.listener.records))

    def _counted(self, pairs: list[Pair]) -> Iterator[Pair]:
        for pair in pairs:
            self.read += 1
            yield pair


def due(count: int) -> tuple[RaftMember, Counted]:
    """Return a single member that has begun a snapshot of a number of records."""
    member = RaftMember(count=1, snapshot_after=count).start()
    counted = Counted(member)
    member.raft.propose([(b"k%d" % number, b"v") for number in range(count)], 0)
    member.raft.commit_now()
    return member, counted


def step(member: RaftMember) -> bool:
    """Carry out the next sync; return whether there was one."""
    found = next((each for each in member.outbox if isinstance(each, MakeDurable)), None)
    if found is not None:
        member.outbox.remove(found)
        found.sync.carry_out(member.disk)
        found.done()
    return found is not None


def test_a_snapshot_is_encoded_a_few_records_an_event() -> None:
    member, counted = due(1_000)
    read = [counted.read]
    while step(member):
        read.append(counted.read)
    assert max(after - before for before, after in pairwise(read)) == RECORDS_A_BATCH
    assert member.raft.snapshots.newest.end_offset == member.raft.end_offset


def test_what_is_committed_meanwhile_is_in_the_next_snapshot() -> None:
    member, _ = due(1_000)
    end = member.raft.high_watermark
    for number in range(5):
        assert step(member)
        propose_one(member, number)
    while step(member):
        pass
    newest = member.raft.snapshots.newest
    assert newest.end_offset == end < member.raft.high_watermark
    content = member.disk.read_bytes(member.raft.snapshots.path(newest))
    assert len(decode(newest, content).records) == 1_000
    again = RaftMember(count=1, disk=member.disk).start()
    assert len(again.listener.records) == 1_005


def propose_one(member: RaftMember, number: int) -> None:
    member.raft.propose([(b"more-%d" % number, b"v")], 0)
    member.raft.commit_now()


def test_the_log_stays_until_the_snapshot_is_safe() -> None:
    for cut in range(12):
        member = RaftMember(count=1, snapshot_after=10).start()
        propose(member, 0, 25)
        propose_one(member, 0)
        for _ in range(cut):
            propose_one(member, 0)
            step(member)
        count = len(member.listener.records)
        member.disk.power_cut(Random(cut))
        again = RaftMember(count=1, disk=member.disk, snapshot_after=10).start()
        assert len(again.listener.records) == count


def test_a_snapshot_that_is_given_up_leaves_nothing_behind() -> None:
    member, _ = due(1_000)
    step(member)
    assert any(name.endswith(".tmp") for name in member.disk.list(f"data/{FOLDER}"))
    member.raft.close()
    while step(member):
        pass
    assert names(member) == []
    assert not any(name.endswith(".tmp") for name in member.disk.list(f"data/{FOLDER}"))


def test_a_full_disk_refuses_a_snapshot_and_the_log_stays() -> None:
    member, _ = due(1_000)
    member.disk.room = 100
    while step(member):
        pass
    assert "writing a metadata snapshot failed" in member.notices()
    assert (names(member), member.raft.log.start_offset) == ([], 0)
    member.disk.room = None
    propose_one(member, 0)
    member.sync()
    assert len(names(member)) == 1
