"""Tests commits: what a majority has synced, and nothing before the epoch's first record."""

from random import Random

import pytest

from barnabas.model.errors import ErrorCode, StorageError
from barnabas.model.ids import NodeId
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.vote import VoteRequest
from barnabas.protocol.records import Record, build, parse_header
from barnabas.raft.messages import FetchFacts, Leadership, LogEnd, fetch_request, vote_response
from barnabas.raft.metadata_log import FOLDER, SETTINGS, DivergedError, Divergence
from barnabas.raft.raft_machine import NotLeaderError
from barnabas.raft.voters import ReplicaKey
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.storage.recovery import open_log
from tests.support.raft.raft_member import RaftMember
from tests.support.raft.raft_quorum import RaftQuorum

A, B = (b"a", b"1"), (b"b", b"2")

CONTRADICTS = "metadata log diverges below the high watermark"


def elected(member: RaftMember) -> RaftMember:
    """Let a member win the election."""
    member.pass_time(1_000)
    for _ in range(2):
        for asked in member.asked(VoteRequest):
            epoch = asked.request.topics[0].partitions[0].replica_epoch
            asked.answer(vote_response(Leadership(epoch, None), granted=True))
    assert member.raft.elections.is_leader
    return member


def fetched(leader: RaftMember, log_end: LogEnd) -> None:
    """Let node 2 fetch, as a follower that has synced everything before."""
    two = ReplicaKey(NodeId(2), b"2" * 16)
    facts = FetchFacts(two, leader.raft.elections.epoch, log_end, 0, 0, 1_000)
    leader.raft.handle_fetch(fetch_request(None, facts))


def journal(disk: MemoryDisk, count: int) -> None:
    """Write a log as a single broker without a quorum wrote it."""
    log = open_log(disk, f"data/{FOLDER}", SETTINGS, root="data").log
    for number in range(count):
        synced = (("synced", str(log.flushed_offset).encode()),)
        batch = build([Record(0, 0, b"k%d" % number, b"v", synced)])
        log.append(memoryview(batch), parse_header(batch), 0)
        log.flush()
    log.close()


def test_a_lone_voter_is_active_before_start_returns() -> None:
    member = RaftMember(count=1).start()
    assert member.raft.elections.is_active
    assert member.listener.events == ["leader changed", "active 1"]
    end = member.raft.propose([A, B], 0)
    assert member.raft.high_watermark < end
    member.raft.commit_now()
    assert member.raft.high_watermark == end
    assert member.listener.records == [A, B]


def test_a_lone_voter_sleeps_when_nothing_happens() -> None:
    member = RaftMember(count=1).start()
    member.sync()
    assert member.timers.next_ms is None


def test_a_lone_voter_commits_with_its_sync() -> None:
    member = RaftMember(count=1).start()
    end = member.raft.propose([A], 0)
    assert member.listener.records == []
    member.sync()
    assert (member.listener.records, member.raft.high_watermark) == ([A], end)


def test_what_a_lone_voter_committed_survives_the_power() -> None:
    member = RaftMember(count=1).start()
    member.raft.propose([A], 0)
    member.sync()
    member.raft.propose([B], 0)
    for seed in range(20):
        member.disk.power_cut(Random(seed))
        again = RaftMember(count=1, disk=member.disk).start()
        assert again.listener.records[0] == A
        again.raft.close()


def test_the_log_of_a_broker_from_before_the_quorum_continues() -> None:
    disk = MemoryDisk()
    journal(disk, 3)
    member = RaftMember(count=1, disk=disk).start()
    assert [key for key, _ in member.listener.records] == [b"k0", b"k1", b"k2"]
    member.raft.propose([A], 0)
    member.raft.commit_now()
    member.raft.close()
    again = RaftMember(count=1, disk=disk).start()
    assert again.listener.records[-1] == A
    assert again.raft.elections.epoch == 2


def test_a_log_that_was_being_rewritten_is_found() -> None:
    disk = MemoryDisk()
    journal(disk, 3)
    disk.rename(f"data/{FOLDER}", f"data/{FOLDER}.old")
    member = RaftMember(count=1, disk=disk).start()
    assert len(member.listener.records) == 3


def test_what_was_committed_is_not_truncated_at_a_start() -> None:
    disk = MemoryDisk()
    journal(disk, 3)
    disk.flip(f"data/{FOLDER}/{0:020d}.log", 8 * 100)
    with pytest.raises(StorageError, match="is damaged"):
        RaftMember(count=1, disk=disk).raft.open()


def test_a_follower_holds_its_own_syncs_against_damage() -> None:
    """Acknowledged records of that log count, though none of them is from the new epoch."""
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    for number in range(5):
        leader.raft.propose([(b"k%d" % number, b"v" * 50)], 0)
        quorum.settle()
    follower = next(m for m in quorum.members.values() if m is not leader)
    path = f"data/{FOLDER}/{0:020d}.log"
    follower.disk.cut(path, follower.disk.size(path) - 3)
    with pytest.raises(StorageError, match="is damaged"):
        RaftMember(follower.node_id, disk=follower.disk).raft.open()


def test_three_commit_what_two_have() -> None:
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    lagging = next(n for n, m in quorum.members.items() if m is not leader)
    quorum.isolated.add(lagging)
    end = leader.raft.propose([A], 0)
    quorum.settle()
    assert leader.raft.high_watermark == end
    assert [m.listener.records for n, m in quorum.members.items() if n != lagging] == [[A], [A]]
    assert quorum.members[lagging].listener.records == []
    quorum.isolated.clear()
    quorum.pass_time(2_000)
    assert quorum.members[lagging].listener.records == [A]


def test_followers_learn_of_a_commit_at_once() -> None:
    """KIP-1166: the leader answers at once if the fetch has an outdated high watermark."""
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    leader.raft.propose([A], 0)
    before = quorum.now_ms
    quorum.settle()
    assert quorum.now_ms == before
    assert all(member.listener.records == [A] for member in quorum.members.values())


def test_a_follower_acknowledges_only_what_it_has_synced() -> None:
    """The fetch is the acknowledgement: none is sent before the sync."""
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    follower = next(m for m in quorum.members.values() if m is not leader)
    leader.raft.propose([A], 0)
    leader.sync()
    sent, follower.sent = follower.sent, []
    assert sent == []
    assert follower.raft.end_offset > follower.raft.log.flushed_offset
    follower.sync()
    [fetch] = follower.sent
    assert fetch.request.topics[0].partitions[0].fetch_offset == follower.raft.end_offset


def test_nothing_of_an_earlier_epoch_is_committed_on_its_own() -> None:
    """Raft figure 8: a record on a majority can still be overwritten by another leader."""
    first = elected(RaftMember().start())
    first.sync()
    leader = elected(RaftMember(disk=first.disk, seed=2).start())
    leader.sync()
    assert (leader.raft.elections.epoch, leader.raft.end_offset) == (2, 2)
    fetched(leader, LogEnd(1, 1))
    assert (leader.raft.high_watermark, leader.raft.elections.is_active) == (0, False)
    with pytest.raises(NotLeaderError):
        leader.raft.propose([A], 0)
    fetched(leader, LogEnd(2, 2))
    assert (leader.raft.high_watermark, leader.raft.elections.is_active) == (2, True)


def test_what_only_a_deposed_leader_had_is_cut_by_epoch() -> None:
    """KIP-101; the record was never acknowledged."""
    quorum = RaftQuorum(3)
    first = quorum.elect()
    quorum.isolated.add(first.node_id)
    first.raft.propose([A], 0)
    second = quorum.elect()
    quorum.isolated.clear()
    second.raft.propose([B], 0)
    quorum.pass_time(3_000)
    assert [m.listener.records for m in quorum.members.values()] == [[B], [B], [B]]


def test_a_cut_below_the_high_watermark_halts_the_node() -> None:
    """KAFKA-12460: a truncation below the high watermark is invalid; one of the nodes must stop."""
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    leader.raft.propose([A], 0)
    quorum.settle()
    follower = next(m for m in quorum.members.values() if m is not leader)
    before = follower.raft.end_offset
    leader.raft.log.divergence = lambda offset, epoch: Divergence(0, 0)  # type: ignore[method-assign]
    with pytest.raises(DivergedError, match="are committed"):
        quorum.pass_time(1_000)
    halted = [m for m in quorum.members.values() if CONTRADICTS in m.notices()]
    assert len(halted) == 1
    assert follower.raft.end_offset == before
    with pytest.raises(StorageError, match="takes no part"):
        halted[0].raft.handle_vote(VoteRequest())


def test_a_planned_stop_hands_over_at_once() -> None:
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    before = quorum.now_ms
    leader.raft.resign()
    quorum.settle()
    quorum.pass_time(100)
    assert quorum.leader not in (None, leader)
    assert quorum.now_ms - before <= 100


def test_a_refusing_disk_proposes_nothing() -> None:
    member = RaftMember(count=1).start()
    member.disk.room = 10
    with pytest.raises(OSError, match="No space"):
        member.raft.propose([A], 0)
    member.disk.room = None
    member.raft.propose([B], 0)
    member.raft.commit_now()
    assert member.listener.records == [B]


def test_the_quorum_describes_itself() -> None:
    """KIP-836: voters and observers, their offsets, and the times of their last fetches."""
    quorum = RaftQuorum(3, spares=1)
    leader = quorum.elect()
    quorum.pass_time(500)
    response = leader.raft.handle_describe_quorum(DescribeQuorumRequest())
    data = response.topics[0].partitions[0]
    assert (data.leader_id, data.leader_epoch) == (
        leader.node_id,
        leader.raft.elections.epoch,
    )
    assert data.high_watermark == leader.raft.high_watermark
    assert [v.replica_id for v in data.current_voters] == [1, 2, 3]
    assert all(v.log_end_offset == leader.raft.end_offset for v in data.current_voters)
    assert all(v.last_caught_up_timestamp > 0 for v in data.current_voters)
    assert [o.replica_id for o in data.observers] == [4]
    assert [node.listeners[0].port for node in response.nodes] == [9001, 9002, 9003]
    other = next(m for m in quorum.members.values() if m is not leader)
    told = other.raft.handle_describe_quorum(DescribeQuorumRequest()).topics[0].partitions[0]
    assert (told.error_code, told.leader_id) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        leader.node_id,
    )
