"""Tests coordinators of groups that move to another broker: errors, and what continues there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.image import GROUPS_TOPIC
from barnabas.metadata.metadata_records import BrokerChanged
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.coordination import coordinator_set
from barnabas.protocol.message import Message
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.support.talk.dialogue import Exchange
from tests.support.talk.group_requests import heartbeat_of, join_group, sync_group
from tests.support.talk.offset_requests import (
    Position,
    commit_request,
    committed,
    fetch_group,
    fetch_request,
    positions,
    transactional_request,
)
from tests.support.talk.together import Talk, Together

GROUP = "g"
A0 = ("a", 0)
PLACE = TopicPartition(GROUPS_TOPIC, 0)
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def brokers(tmp_path: Path) -> Together:
    made = Together(tmp_path)
    made.create("a", [1, 2])
    made.create(GROUPS_TOPIC, [1], {"cleanup.policy": "compact"})
    return made


def find(talk: Talk, version: int = 6) -> tuple[int, int, str, int]:
    several = version >= 4
    request = FindCoordinatorRequest(coordinator_keys=[GROUP]) if several else None
    answer = talk.ask(request or FindCoordinatorRequest(key=GROUP), version)
    found = answer.coordinators[0] if several else answer
    return found.error_code, found.node_id, found.host, found.port


def send_join(talk: Talk) -> Exchange:
    """Join as a new member."""
    asked = talk.ask(join_group(GROUP))
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return talk.send(join_group(GROUP, asked.member_id))


def sync_request(joined: Any, *assigned: str) -> SyncGroupRequest:
    return sync_group(GROUP, joined, dict.fromkeys(assigned, b"yours"))


def heartbeat(talk: Talk, joined: Any) -> int:
    code: int = talk.ask(heartbeat_of(GROUP, joined)).error_code
    return code


def join(brokers: Together, talk: Talk) -> Any:
    """Become the only member of a generation."""
    exchange = send_join(talk)
    brokers.pass_time(3000)
    assert exchange.answer.error_code == 0
    return exchange.answer


def code_of(answer: Any) -> int:
    """Return the first error code in a response, at any depth."""
    if getattr(answer, "error_code", 0):
        return int(answer.error_code)
    for name in ("topics", "partitions", "groups", "results"):
        for part in getattr(answer, name, ()):
            found = code_of(part)
            if found:
                return found
    return 0


class TestFinding:
    @pytest.mark.parametrize("version", [0, 3, 4, 6])
    @pytest.mark.parametrize("asked", [1, 2, 3])
    def test_every_broker_names_the_leader(
        self, brokers: Together, asked: int, version: int
    ) -> None:
        assert find(brokers[asked], version)[:2] == (0, 1)
        brokers.move(*PLACE, to=2)
        code, broker, host, port = find(brokers[asked], version)
        assert (code, broker, port) == (0, 2, 9002)
        assert host == ("127.0.0.1" if asked == 2 else "broker-2")

    @pytest.mark.parametrize("asked", [1, 2])
    def test_no_broker_leads(self, brokers: Together, asked: int) -> None:
        brokers.remove_leader(*PLACE)
        assert find(brokers[asked])[:2] == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)

    def test_the_leader_was_fenced(self, brokers: Together) -> None:
        brokers.distribute(BrokerChanged(node_id=1, broker_epoch=1, fenced=True, stopping=False))
        assert find(brokers[2])[:2] == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


REQUESTS: list[Message] = [
    join_group(GROUP, "m"),
    SyncGroupRequest(group_id=GROUP, member_id="m", protocol_type="consumer", protocol_name="r"),
    HeartbeatRequest(group_id=GROUP, member_id="m"),
    LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="m")]),
    commit_request(GROUP, {(b"\0" * 15 + b"\1", 0): 5}),
    fetch_request(fetch_group(GROUP, None), 10),
    OffsetDeleteRequest(group_id=GROUP),
    DescribeGroupsRequest(groups=[GROUP]),
    DeleteGroupsRequest(groups_names=[GROUP]),
    ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=1),
    ConsumerGroupDescribeRequest(group_ids=[GROUP]),
    transactional_request(GROUP, {A0: 5}, (7, 0)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: type(r).__name__)
class TestTheWrongBroker:
    def test_it_is_another(self, brokers: Together, request_: Message) -> None:
        assert code_of(brokers[2].ask(request_)) == NOT_COORDINATOR
        assert code_of(brokers[1].ask(request_)) != NOT_COORDINATOR

    def test_it_moved(self, brokers: Together, request_: Message) -> None:
        brokers[1].ask(request_)
        brokers.move(*PLACE, to=2)
        assert code_of(brokers[1].ask(request_)) == NOT_COORDINATOR
        assert code_of(brokers[2].ask(request_)) != NOT_COORDINATOR


class TestFailover:
    def test_a_join_that_waits(self, brokers: Together) -> None:
        exchange = send_join(brokers[1])
        assert exchange.waiting
        brokers.move(*PLACE, to=2)
        assert exchange.answer.error_code == NOT_COORDINATOR
        joined = join(brokers, brokers[2])
        assert joined.generation_id == 1

    def test_a_sync_that_waits(self, brokers: Together) -> None:
        joined = join(brokers, brokers[1])
        second = send_join(brokers[1])
        again = brokers[1].send(join_group(GROUP, joined.member_id))
        brokers.pass_time(1)
        leader, follower = again.answer, second.answer
        assert {leader.leader, follower.leader} == {joined.member_id}
        exchange = brokers[1].send(sync_request(follower))
        assert exchange.waiting
        brokers.move(*PLACE, to=2)
        assert exchange.answer.error_code == NOT_COORDINATOR
        # A generation without assignments was never stored: its members join again.
        assert heartbeat(brokers[2], follower) in {
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
        }

    def test_a_generation_continues_elsewhere(self, brokers: Together) -> None:
        joined = join(brokers, brokers[1])
        synced = brokers[1].ask(sync_request(joined, joined.member_id))
        assert (synced.error_code, synced.assignment) == (0, b"yours")
        brokers.move(*PLACE, to=3)
        assert heartbeat(brokers[1], joined) == NOT_COORDINATOR
        assert heartbeat(brokers[3], joined) == 0
        again = brokers[3].ask(sync_request(joined))
        assert again.assignment == b"yours"
        brokers.pass_time(10_001)
        assert heartbeat(brokers[3], joined) == ErrorCode.UNKNOWN_MEMBER_ID, (
            "the new coordinator tracks its session"
        )

    @pytest.mark.parametrize("fast_path", [False, True])
    def test_a_commit_that_waits(self, brokers: Together, fast_path: bool) -> None:
        talk = brokers[1]
        talk.ask(commit_request(GROUP, {A0: 1}), 9)
        brokers.stop_commits(*PLACE)
        talk.fast_path = fast_path
        exchange = talk.send(commit_request(GROUP, {A0: 2}), 9)
        assert exchange.waiting
        brokers.move(*PLACE, to=2, committed_only=True)
        assert code_of(exchange.answer) == NOT_COORDINATOR
        assert committed(brokers[2], GROUP) == {A0: Position(1)}

    @pytest.mark.parametrize("fast_path", [False, True])
    def test_a_commit_that_is_not_copied_for_long(self, brokers: Together, fast_path: bool) -> None:
        talk = brokers[1]
        talk.ask(commit_request(GROUP, {A0: 1}), 9)
        brokers.stop_commits(*PLACE)
        talk.fast_path = fast_path
        commit = talk.send(commit_request(GROUP, {A0: 2}), 9)
        brokers.pass_time(2000)
        look = talk.send(fetch_request(fetch_group(GROUP, None), 9), 9)
        brokers.pass_time(2999)
        assert (commit.waiting, look.waiting) == (True, True)
        brokers.pass_time(1)
        assert code_of(commit.answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert look.waiting
        brokers.resume_commits(*PLACE)
        assert positions(look.answer.groups[0]) == {A0: Position(2)}, "it was committed later"

    def test_the_fast_path_is_not_taken_on_another_broker(self, brokers: Together) -> None:
        talk = brokers[1]
        talk.fast_path = True
        assert code_of(talk.ask(commit_request(GROUP, {A0: 1}), 9)) == 0
        brokers.move(*PLACE, to=2)
        assert code_of(talk.ask(commit_request(GROUP, {A0: 2}), 9)) == NOT_COORDINATOR
        assert committed(brokers[2], GROUP) == {A0: Position(1)}

    def test_what_was_not_committed_is_forgotten_by_its_writer(self, brokers: Together) -> None:
        talk = brokers[1]
        talk.ask(commit_request(GROUP, {A0: 1}), 9)
        stored = brokers.partition(1, PLACE).log.end_offset
        brokers.stop_commits(*PLACE)
        talk.send(commit_request(GROUP, {A0: 2}), 9)
        brokers.move(*PLACE, to=2, committed_only=True)
        brokers.cut(PLACE, 1, stored)
        brokers[2].ask(commit_request(GROUP, {("a", 1): 3}), 9)
        brokers.move(*PLACE, to=1)
        assert committed(talk, GROUP) == {A0: Position(1), ("a", 1): Position(3)}

    def test_the_same_leader_in_another_epoch_starts_again(self, brokers: Together) -> None:
        exchange = send_join(brokers[1])
        before = brokers[1].node.coordinators.groups.shard_for(GROUP)
        brokers.move(*PLACE, to=1)
        assert exchange.answer.error_code == NOT_COORDINATOR
        after = brokers[1].node.coordinators.groups.shard_for(GROUP)
        assert (before.is_closed, after.is_open, after.leader_epoch) == (True, True, 1)
        assert join(brokers, brokers[1]).generation_id == 1

    def test_nothing_is_written_after_the_coordinator_lost_the_partition(
        self, brokers: Together
    ) -> None:
        joined = join(brokers, brokers[1])
        brokers[1].ask(sync_request(joined, joined.member_id))
        brokers.move(*PLACE, to=2)
        stored = brokers.partition(1, PLACE).log.end_offset
        brokers.pass_time(20_000)
        assert brokers.partition(1, PLACE).log.end_offset == stored
        assert brokers.partition(2, PLACE).log.end_offset > stored, (
            "the session expired at the new coordinator"
        )
        assert brokers[1].notices == []

    def test_offsets_of_a_topic_that_lies_elsewhere_go_with_it(self, brokers: Together) -> None:
        brokers.create("b", [2], copied=False)
        brokers[1].ask(commit_request(GROUP, {A0: 1, ("b", 0): 2}), 9)
        assert len(committed(brokers[1], GROUP)) == 2
        brokers.delete("b")
        assert committed(brokers[1], GROUP) == {A0: Position(1)}

    def test_only_groups_of_this_broker_are_listed(self, brokers: Together) -> None:
        brokers[1].ask(commit_request(GROUP, {A0: 1}), 9)
        brokers.move(*PLACE, to=2)
        listed = {n: brokers[n].ask(ListGroupsRequest()).groups for n in (1, 2)}
        assert [[group.group_id for group in listed[n]] for n in (1, 2)] == [[], [GROUP]]


class TestLoading:
    """A coordinator that loads much data gives other events their turns."""

    @pytest.fixture
    def slow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(coordinator_set, "LOADED_AT_ONCE_BYTES", 1)

    def fill(self, brokers: Together) -> None:
        for offset in range(5):
            brokers[1].ask(commit_request(GROUP, {A0: offset}), 9)

    def steps(self, brokers: Together, ready: Callable[[], bool]) -> int:
        for step in range(100):
            if ready():
                return step
            brokers.pass_time(1)
        raise AssertionError("the commit never succeeds there")

    @pytest.mark.usefixtures("slow")
    def test_clients_get_a_throttle_time(self, brokers: Together) -> None:
        self.fill(brokers)
        brokers.move(*PLACE, to=2)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert code_of(brokers[2].ask(commit_request(GROUP, {A0: 9}), 9)) == loading
        assert brokers[2].ask(ListGroupsRequest()).error_code == loading
        log = brokers.partition(2, PLACE).log
        stored = log.end_offset
        shards = brokers[2].node.coordinators.groups
        assert self.steps(brokers, lambda: shards.shard_on(0) is not None) >= 3
        assert log.end_offset == stored
        assert committed(brokers[2], GROUP) == {A0: Position(4)}

    @pytest.mark.usefixtures("slow")
    def test_it_is_loaded_before_the_first_request(self, brokers: Together) -> None:
        self.fill(brokers)
        brokers.move(*PLACE, to=2)
        brokers.pass_time(20)
        assert committed(brokers[2], GROUP) == {A0: Position(4)}

    @pytest.mark.usefixtures("slow")
    def test_it_moves_on_before_all_is_read(self, brokers: Together) -> None:
        self.fill(brokers)
        brokers.move(*PLACE, to=2)
        brokers.pass_time(2)
        brokers.move(*PLACE, to=3)
        brokers.pass_time(20)
        assert code_of(brokers[2].ask(commit_request(GROUP, {A0: 9}), 9)) == NOT_COORDINATOR
        assert committed(brokers[3], GROUP) == {A0: Position(4)}

    @pytest.mark.usefixtures("slow")
    def test_topics_that_are_deleted_meanwhile(self, brokers: Together) -> None:
        self.fill(brokers)
        brokers.move(*PLACE, to=2)
        brokers.pass_time(1)
        brokers.delete("a")
        brokers.pass_time(20)
        assert committed(brokers[2], GROUP) == {}
