"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, in frames."""

from typing import Any

import pytest

from barnabas.handlers.consumer_group_describe import GROUP_OPERATIONS
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.testing.dialogue import Dialogue
from barnabas.testing.requests import create_topic

VERSIONS = (0, 1)


@pytest.fixture
def ready(talk: Dialogue) -> Dialogue:
    talk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    return talk


def join(talk: Dialogue, member_id: str, version: int = 1, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        **fields,
    )
    return talk.ask(request, version)


def beat(talk: Dialogue, member_id: str, epoch: int, version: int = 1, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, **fields
    )
    return talk.ask(request, version)


def owning(topic_id: bytes, *numbers: int) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    if not numbers:
        return []
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(numbers))
    ]


def given(response: Any) -> list[int] | None:
    if response.assignment is None:
        return None
    return [n for topic in response.assignment.topic_partitions for n in topic.partitions]


def describe(talk: Dialogue, *group_ids: str, version: int = 1) -> Any:
    request = ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=True
    )
    return talk.ask(request, version).groups


def test_nobody_coordinates_before_the_topic_is_there(talk: Dialogue) -> None:
    assert join(talk, "m").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (group,) = describe(talk, "g")
    assert group.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rebalance_with_restarts_in_the_middle(ready: Dialogue, version: int) -> None:
    topic_id = create_topic(ready, "t", 4)
    first = join(ready, "" if version == 0 else "one", version)
    assert (first.error_code, first.member_epoch, given(first)) == (0, 1, [0, 1, 2, 3])
    assert first.heartbeat_interval_ms == 5000
    one = first.member_id
    assert one if version == 0 else one == "one"
    assert (
        given(beat(ready, one, 1, version, topic_partitions=owning(topic_id, 0, 1, 2, 3))) is None
    )

    second = join(ready, "two", version)
    assert (second.member_epoch, given(second)) == (2, [])
    ready.restart()
    told = beat(ready, one, 1, version)
    assert told.member_epoch == 1
    kept = given(told)
    assert kept is not None
    assert len(kept) == 2
    assert given(beat(ready, "two", 2, version)) is None
    ready.restart(crash=True)
    done = beat(ready, one, 1, version, topic_partitions=owning(topic_id, *kept))
    assert done.member_epoch == 2
    freed = given(beat(ready, "two", 2, version))
    assert sorted([*kept, *(freed or [])]) == [0, 1, 2, 3]
    (group,) = describe(ready, "g", version=version)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)

    left = beat(ready, "two", -1, version)
    assert (left.error_code, left.member_id, left.member_epoch) == (0, "two", -1)
    assert given(beat(ready, one, 2, version)) == [0, 1, 2, 3]


def test_an_answer_waits_until_it_is_safe(ready: Dialogue) -> None:
    create_topic(ready, "t")
    ready.hold_syncs = True
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    exchange = ready.send(request)
    assert exchange.waiting
    ready.release_syncs()
    assert exchange.answer.member_epoch == 1


def test_what_is_refused_says_why(ready: Dialogue) -> None:
    create_topic(ready, "t")
    refused = join(ready, "m", server_assignor="fair")
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in refused.error_message
    refused = join(ready, "")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "MemberId can't be empty.",
    )
    refused = join(ready, "m", subscribed_topic_regex="(")
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert beat(ready, "m", 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    join(ready, "m")
    assert beat(ready, "other", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(ready, "m", 7).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_topics_that_grow_are_noticed(ready: Dialogue) -> None:
    create_topic(ready, "t", 1)
    join(ready, "m")
    ready.ask(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=3)]))
    assert given(beat(ready, "m", 1)) == [0, 1, 2]


def test_a_pattern_finds_a_topic_that_is_made_later(ready: Dialogue) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="logs-[a-z]+|__.*",
        topic_partitions=[],
    )
    assert given(ready.ask(request)) == []
    create_topic(ready, "logs-x", 2)
    create_topic(ready, "logs-0", 2)
    assert given(beat(ready, "m", 1)) == [0, 1]


def test_the_silent_are_put_out_and_sessions_survive_a_restart(ready: Dialogue) -> None:
    create_topic(ready, "t", 2)
    join(ready, "m")
    ready.pass_time(30_000)
    ready.restart()
    assert describe(ready, "g")[0].group_state == "Stable"
    ready.pass_time(44_999)
    assert describe(ready, "g")[0].group_state == "Stable"
    ready.pass_time(1)
    (group,) = describe(ready, "g")
    assert (group.group_state, group.group_epoch, group.members) == ("Empty", 2, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_about_a_group(ready: Dialogue, version: int) -> None:
    topic_id = create_topic(ready, "t", 2)
    join(ready, "m", instance_id="i", rack_id="r", server_assignor="range")
    group, missing, nameless = describe(ready, "g", "none", "", version=version)
    assert group.error_code == 0
    assert (group.group_id, group.group_state, group.assignor_name) == ("g", "Stable", "range")
    assert (group.group_epoch, group.assignment_epoch) == (1, 1)
    assert group.authorized_operations == GROUP_OPERATIONS
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.client_id, member.client_host) == ("dialogue", "/test")
    assert (member.member_epoch, member.subscribed_topic_names) == (1, ["t"])
    assert member.member_type == (1 if version else -1)
    (assigned,) = member.assignment.topic_partitions
    assert (assigned.topic_id, assigned.topic_name, assigned.partitions) == (topic_id, "t", [0, 1])
    assert member.target_assignment == member.assignment
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert missing.error_message == "Group none not found."
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
