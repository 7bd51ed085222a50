"""Tests the voters, and how they change (KIP-853)."""

from typing import Any

import pytest

from barnabas.model.errors import ConfigError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.raft.voters import parse_voter
from tests.support.raft.raft_member import PORT, RaftMember
from tests.support.raft.raft_quorum import RaftQuorum


def add(leader: RaftMember, member: RaftMember, timeout_ms: int = 5_000) -> list[Any]:
    node_id = member.node_id
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=timeout_ms,
        voter_id=node_id,
        voter_directory_id=member.raft.identity.directory,
        listeners=[Listener(name="PEER", host="h", port=PORT + node_id)],
    )
    return outcome(leader.raft.handle_add_voter(request))


def remove(leader: RaftMember, member: RaftMember) -> list[Any]:
    request = RemoveRaftVoterRequest(
        cluster_id=None,
        voter_id=member.node_id,
        voter_directory_id=member.raft.identity.directory,
    )
    return outcome(leader.raft.handle_remove_voter(request))


def outcome(answer: Any) -> list[Any]:
    """Return a list that will get the error code."""
    listener: list[Any] = []
    if isinstance(answer, Pending):
        answer.when_done(lambda response: listener.append(response.error_code))
    else:
        listener.append(answer.error_code)
    return listener


def ids(member: RaftMember) -> list[int]:
    return [voter.id for voter in member.raft.voters]


def test_the_first_leader_writes_the_voters() -> None:
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    quorum.pass_time(500)
    for member in quorum.members.values():
        assert member.raft.voters.directories_known
        assert ids(member) == [1, 2, 3]
    directories = {voter.directory for voter in leader.raft.voters}
    assert directories == {member.raft.identity.directory for member in quorum.members.values()}


def test_the_set_of_the_settings_stays_until_all_voters_are_known() -> None:
    quorum = RaftQuorum(3)
    quorum.isolated.add(3)
    leader = quorum.elect()
    quorum.pass_time(2_000)
    assert not leader.raft.voters.directories_known
    assert add(leader, quorum.members[2]) == [ErrorCode.DUPLICATE_VOTER]


def test_an_observer_becomes_a_voter() -> None:
    quorum = RaftQuorum(3, spares=1)
    leader = quorum.elect()
    quorum.pass_time(500)
    listener = add(leader, quorum.members[4])
    quorum.pass_time(500)
    assert listener == [0]
    assert all(ids(member) == [1, 2, 3, 4] for member in quorum.members.values())


def test_a_new_voter_must_have_caught_up() -> None:
    quorum = RaftQuorum(3, spares=1)
    leader = quorum.elect()
    quorum.pass_time(500)
    quorum.isolated.add(4)
    quorum.pass_time(1_500)
    listener = add(leader, quorum.members[4], timeout_ms=400)
    quorum.pass_time(300)
    assert listener == []
    quorum.pass_time(300)
    assert listener == [ErrorCode.REQUEST_TIMED_OUT]
    assert ids(leader) == [1, 2, 3]


def test_one_change_at_a_time() -> None:
    """The single-server bug: two changes in progress can have majorities without a common node."""
    quorum = RaftQuorum(3, spares=2)
    leader = quorum.elect()
    quorum.pass_time(500)
    first = add(leader, quorum.members[4])
    second = add(leader, quorum.members[5])
    assert second == [ErrorCode.REQUEST_TIMED_OUT]
    quorum.pass_time(500)
    assert first == [0]
    assert ids(leader) == [1, 2, 3, 4]


def test_a_set_that_is_truncated_counts_no_more() -> None:
    """Raft dissertation 4.1: a node uses the latest voter set in its log, committed or not."""
    quorum = RaftQuorum(3, spares=1)
    leader = quorum.elect()
    quorum.pass_time(500)
    quorum.isolated.add(leader.node_id)
    others = [n for n in (1, 2, 3) if n != leader.node_id]
    listener = remove(leader, quorum.members[others[0]])
    assert ids(leader) == sorted([leader.node_id, others[1]])
    quorum.elect()
    quorum.isolated.clear()
    quorum.pass_time(3_000)
    assert listener == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert ids(leader) == [1, 2, 3]


def test_a_leader_that_is_voted_out_leads_until_that_is_committed() -> None:
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    quorum.pass_time(500)
    listener = remove(leader, leader)
    assert leader.raft.elections.is_leader
    quorum.pass_time(1_000)
    assert listener == [0]
    assert quorum.leader not in (None, leader)
    assert not leader.raft.known_voters.include_this_node
    assert leader.raft.leader_id == quorum.leader.node_id  # it is an observer now


def test_the_last_voter_stays() -> None:
    member = RaftMember(count=1).start()
    assert remove(member, member) == [ErrorCode.INVALID_REQUEST]


def test_a_voter_has_an_id() -> None:
    leader = RaftMember(count=1).start()
    listeners = [Listener(name="PEER", host="h", port=PORT)]
    adding = AddRaftVoterRequest(cluster_id=None, timeout_ms=500, voter_id=-1, listeners=listeners)
    assert outcome(leader.raft.handle_add_voter(adding)) == [ErrorCode.INVALID_REQUEST]
    removing = RemoveRaftVoterRequest(cluster_id=None, voter_id=-1)
    assert outcome(leader.raft.handle_remove_voter(removing)) == [ErrorCode.INVALID_REQUEST]


def test_a_node_without_its_disk_observes_until_it_is_added_again() -> None:
    """KAFKA-17608: voters are known by directory id."""
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    quorum.pass_time(500)
    lost = next(n for n, m in quorum.members.items() if m is not leader)
    before = quorum.members[lost]
    after = quorum.restart(lost, wiped=True)
    quorum.pass_time(2_000)
    assert not after.raft.known_voters.include_this_node
    assert after.raft.high_watermark == leader.raft.high_watermark
    assert add(leader, after) == [ErrorCode.DUPLICATE_VOTER]
    gone = remove(leader, before)
    quorum.pass_time(500)
    back = add(leader, after)
    quorum.pass_time(500)
    assert (gone, back) == ([0], [0])
    assert after.raft.known_voters.include_this_node


def test_a_voter_that_moved_is_written_down() -> None:
    quorum = RaftQuorum(3)
    leader = quorum.elect()
    quorum.pass_time(500)
    moved = next(m for m in quorum.members.values() if m is not leader)
    assert moved.raft.identity.address is not None
    moved.raft.identity.address = moved.raft.identity.address._replace(host="elsewhere")
    quorum.pass_time(1_000)
    voter = leader.raft.voters.find(moved.node_id)
    assert voter is not None
    assert voter.address.host == "elsewhere"


def test_voters_are_written_as_id_at_host_and_port() -> None:
    assert parse_voter("3@[::1]:9093").address == ("::1", 9093)
    for wrong in ("3", "3@h", "h:1", "@h:1", "3@h:x"):
        with pytest.raises(ConfigError, match="id@host:port"):
            parse_voter(wrong)
