"""Tests elections as dialogues with one member. Each test names the rule that it shows."""

import pytest

from barnabas.effects import Address
from barnabas.model.errors import ErrorCode, StorageError
from barnabas.model.ids import NodeId
from barnabas.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.vote import VoteRequest, VoteResponsePartitionData
from barnabas.raft.messages import (
    FetchAnswer,
    FetchFacts,
    Leadership,
    LogEnd,
    VoteFacts,
    begin_request,
    begin_response,
    end_request,
    fetch_request,
    fetch_response,
    vote_request,
    vote_response,
)
from barnabas.raft.voters import NO_DIRECTORY, ReplicaKey, Voter
from tests.support.raft.raft_member import PORT, Asked, RaftMember

ONE, TWO, THREE = (ReplicaKey(NodeId(n), bytes([n]) * 16) for n in (1, 2, 3))
LONG = LogEnd(9, 99)


def ask_vote(
    member: RaftMember,
    candidate: ReplicaKey,
    epoch: int,
    *,
    log_end: LogEnd = LONG,
    pre_vote: bool = False,
    directory: bytes = NO_DIRECTORY,
) -> VoteResponsePartitionData:
    voter = Voter(member.node_id, directory, Address("h", PORT + member.node_id))
    facts = VoteFacts(epoch, candidate, log_end, pre_vote)
    response = member.raft.handle_vote(vote_request(None, voter, facts))
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def granted(member: RaftMember) -> None:
    """Grant every requested vote, once."""
    for asked in member.asked(VoteRequest):
        epoch = asked.request.topics[0].partitions[0].replica_epoch
        asked.answer(vote_response(Leadership(epoch, None), granted=True))


def elected(member: RaftMember) -> RaftMember:
    member.pass_time(1_000)
    granted(member)
    granted(member)
    assert member.raft.elections.is_leader
    return member


def led_by(member: RaftMember, leader: int, epoch: int) -> None:
    """Send BeginQuorumEpoch from a leader."""
    voter = Voter(
        member.node_id,
        NO_DIRECTORY,
        Address("h", PORT + member.node_id),
    )
    told = Leadership(epoch, NodeId(leader), Address("h", PORT + leader))
    response = member.raft.handle_begin_quorum_epoch(begin_request(None, voter, told))
    assert response.topics[0].partitions[0].error_code == 0


def test_a_voter_sends_pre_votes_before_it_is_a_candidate() -> None:
    """KIP-996: a pre-vote leaves the epoch as it is."""
    member = RaftMember().start()
    member.pass_time(1_000)
    asked = member.asked(VoteRequest)
    assert {one.node_id for one in asked} == {2, 3}
    assert all(one.request.topics[0].partitions[0].pre_vote for one in asked)
    assert member.raft.elections.epoch == 0
    asked[0].answer(vote_response(Leadership(0, None), granted=True))
    assert member.raft.elections.epoch == 1
    assert not member.asked(VoteRequest)[0].request.topics[0].partitions[0].pre_vote


def test_a_majority_elects_and_every_node_learns_it() -> None:
    member = elected(RaftMember().start())
    assert {one.node_id for one in member.asked(BeginQuorumEpochRequest)} == {2, 3}
    assert (member.raft.leader_id, member.raft.elections.epoch) == (1, 1)
    assert not member.raft.elections.is_active


def test_one_vote_an_epoch() -> None:
    """Raft 5.2: first come, first served."""
    member = RaftMember().start()
    assert ask_vote(member, TWO, 5).vote_granted
    assert not ask_vote(member, THREE, 5).vote_granted
    assert ask_vote(member, TWO, 5).vote_granted
    assert ask_vote(member, THREE, 6).vote_granted


def test_a_vote_outlives_the_power() -> None:
    """Vote and epoch are fsynced before the reply."""
    from random import Random

    member = RaftMember().start()
    assert ask_vote(member, TWO, 5).vote_granted
    for seed in range(20):
        member.disk.power_cut(Random(seed))
        again = RaftMember(disk=member.disk).start()
        assert again.raft.elections.epoch == 5
        assert not ask_vote(again, THREE, 5).vote_granted


def test_no_voter_votes_for_a_log_that_lacks_records() -> None:
    """Raft 5.4.1: the later epoch wins, then the longer log."""
    member = elected(RaftMember().start())
    end = member.raft.elections.log_end
    assert not ask_vote(member, TWO, 7, log_end=LogEnd(end.epoch, end.offset - 1)).vote_granted
    assert not ask_vote(member, TWO, 8, log_end=LogEnd(end.epoch - 1, 1_000)).vote_granted
    assert ask_vote(member, TWO, 9, log_end=end).vote_granted


def test_a_follower_of_a_living_leader_refuses_pre_votes() -> None:
    """KIP-996: a node that was cut off does not disturb others when it comes back."""
    member = RaftMember().start()
    led_by(member, 2, 3)
    assert ask_vote(member, THREE, 3, pre_vote=True).vote_granted  # no message from it yet
    led_by(member, 2, 3)
    [fetch] = member.asked(FetchRequest)[-1:]
    leader = Leadership(3, NodeId(2), Address("h", PORT + 2))
    fetch.answer(fetch_response(FetchAnswer(leader, high_watermark=0)))
    refused = ask_vote(member, THREE, 3, pre_vote=True)
    assert not refused.vote_granted
    assert refused.leader_id == 2


def test_an_old_epoch_gets_the_new_one() -> None:
    member = RaftMember().start()
    led_by(member, 2, 3)
    answer = ask_vote(member, THREE, 2)
    assert (answer.error_code, answer.leader_epoch, answer.leader_id) == (
        ErrorCode.FENCED_LEADER_EPOCH,
        3,
        2,
    )


def test_a_leader_makes_room_for_a_later_epoch() -> None:
    member = elected(RaftMember().start())
    led_by(member, 3, 4)
    assert (member.raft.leader_id, member.raft.elections.is_leader) == (3, False)
    assert "resigned" in member.listener.events


def test_votes_of_an_earlier_epoch_do_not_count() -> None:
    """Replies match requests: the epoch of a late vote is over."""
    member = RaftMember().start()
    member.pass_time(1_000)
    granted(member)
    late = member.asked(VoteRequest)
    led_by(member, 2, 5)
    for one in late:
        one.answer(vote_response(Leadership(1, None), granted=True))
    assert not member.raft.elections.is_leader
    assert member.raft.leader_id == 2


def test_a_leader_without_a_majority_gives_up() -> None:
    """Check-quorum: one and a half fetch timeouts without fetches."""
    member = elected(RaftMember().start())
    member.pass_time(1_499)
    leading = [member.raft.elections.is_leader]
    member.pass_time(2)
    leading.append(member.raft.elections.is_leader)
    assert leading == [True, False]
    assert {one.node_id for one in member.asked(EndQuorumEpochRequest)} == {2, 3}
    assert "controller resigns: no majority of voters fetches" in member.notices()


def test_a_leader_whose_disk_takes_nothing_gives_way() -> None:
    member = elected(RaftMember().start())
    member.disk.room = 0
    told = member.asked(BeginQuorumEpochRequest)[0]
    told.answer(begin_response(Leadership(9, None), ErrorCode.FENCED_LEADER_EPOCH))
    assert "writing metadata failed" in member.notices()
    member.pass_time(100)
    assert (member.raft.elections.is_leader, member.raft.elections.epoch) == (False, 1)
    assert {one.node_id for one in member.asked(EndQuorumEpochRequest)} == {2, 3}


def test_a_controller_whose_disk_refuses_a_decision_gives_way() -> None:
    member = elected(RaftMember().start())
    two = ReplicaKey(NodeId(2), b"2" * 16)
    member.sync()
    facts = FetchFacts(two, member.raft.elections.epoch, LogEnd(1, 1), 0, 0, 1_000)
    member.raft.handle_fetch(fetch_request(None, facts))
    assert member.raft.elections.is_active
    member.disk.room = 0
    with pytest.raises(OSError, match="No space"):
        member.raft.propose([(b"a", b"1")], 0)
    leading = [member.raft.elections.is_leader]  # pending work is completed first
    member.pass_time(100)
    leading.append(member.raft.elections.is_leader)
    assert leading == [True, False]
    assert {one.node_id for one in member.asked(EndQuorumEpochRequest)} == {2, 3}


def test_the_preferred_successor_is_a_candidate_at_once() -> None:
    """KIP-595: EndQuorumEpoch hands over without a timeout."""
    member = RaftMember().start()
    led_by(member, 2, 3)
    leader = Leadership(3, NodeId(2), Address("h", PORT + 2))
    member.raft.handle_end_quorum_epoch(
        end_request(None, leader, [member.raft.identity.key, THREE])
    )
    assert {one.node_id for one in member.asked(VoteRequest)} == {2, 3}


def test_two_voters_do_not_keep_a_dead_leader_alive() -> None:
    """A node that has lost the leader does not accept as leader one that has not lost it yet."""
    member = RaftMember().start()
    led_by(member, 2, 3)
    member.pass_time(1_300)
    asked = [one for one in member.asked(VoteRequest) if one.node_id == 3]
    asked[0].answer(vote_response(Leadership(3, NodeId(2), Address("h", PORT + 2))))
    leaders = [member.raft.leader_id]
    led_by(member, 2, 3)  # but it accepts the leader
    leaders.append(member.raft.leader_id)
    assert leaders == [None, 2]


def test_requests_for_another_disk_or_cluster_are_refused() -> None:
    """KIP-853: voters are known by directory id."""
    member = RaftMember().start()
    answer = ask_vote(member, TWO, 1, directory=b"x" * 16)
    assert (answer.error_code, answer.vote_granted) == (ErrorCode.INVALID_VOTER_KEY, False)
    member.raft.identity.cluster_id = "this"
    request = VoteRequest(cluster_id="that", voter_id=1)
    assert member.raft.handle_vote(request).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("name", ["quorum-state", "directory-id"])
def test_a_damaged_memory_stops_the_start(name: str) -> None:
    member = RaftMember().start()
    ask_vote(member, TWO, 5)
    member.disk.flip(f"data/__cluster_metadata/{name}", 3)
    with pytest.raises(StorageError, match=name):
        RaftMember(disk=member.disk).raft.open()
    assert member.disk.exists(f"data/__cluster_metadata/{name}")


def test_a_missing_memory_beside_a_log_stops_the_start() -> None:
    member = RaftMember(count=1).start()
    member.raft.close()
    member.disk.remove("data/__cluster_metadata/quorum-state")
    with pytest.raises(StorageError, match="quorum-state is missing"):
        RaftMember(disk=member.disk, count=1).raft.open()


def candidate(member: RaftMember) -> list[Asked]:
    """Make a member a candidate; return its vote requests."""
    granted(member)
    asked = member.asked(VoteRequest)
    assert not asked[0].request.topics[0].partitions[0].pre_vote
    return asked


def test_two_candidates_without_the_third_voter_try_again_soon() -> None:
    """A leader dies, and both others are candidates at once: neither has a majority left."""
    member = RaftMember().start()
    member.pass_time(1_000)
    other, dead = candidate(member)
    epoch = member.raft.elections.epoch
    other.answer(vote_response(Leadership(epoch, None), granted=False))
    dead.answer(None)
    for _ in range(10):
        member.pass_time(10)
    asked = [one.request.topics[0].partitions[0] for one in member.asked(VoteRequest)]
    assert any(one.pre_vote and one.replica_epoch == epoch for one in asked)


def test_a_candidate_without_responses_keeps_asking_in_its_epoch() -> None:
    member = RaftMember().start()
    member.pass_time(1_000)
    for asked in candidate(member):
        asked.answer(None)
    epoch = member.raft.elections.epoch
    member.pass_time(900)
    asked_again = [one.request.topics[0].partitions[0] for one in member.asked(VoteRequest)]
    assert asked_again
    assert all(not one.pre_vote and one.replica_epoch == epoch for one in asked_again)
