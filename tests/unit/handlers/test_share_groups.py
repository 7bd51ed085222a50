"""Tests the APIs of members and offsets of share groups with frames."""

from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.offset_requests import commit_request
from tests.support.talk.requests import create_topic, produce
from tests.support.talk.share_group_requests import (
    alter_request,
    delete_request,
    describe_request,
    heartbeat_request,
    offsets_request,
)

SOON_MS = 5
NONE = bytes(16)


@pytest.fixture
def ready(talk: Dialogue) -> Dialogue:
    """A broker with a topic of two partitions, and the coordinator of groups."""
    create_topic(talk, "t", 2)
    talk.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    return talk


def ask(talk: Dialogue, request: Any, version: int | None = None) -> Any:
    """Return the answer to a request that may need share coordinators."""
    exchange = talk.send(request, version)
    talk.pass_time(SOON_MS)
    return exchange.answer


def join(talk: Dialogue, *topics: str, member: str = "m") -> Any:
    """Join, and return the second response, which has the assignment."""
    first = ask(talk, heartbeat_request("g", topics, member))
    assert (first.error_code, first.heartbeat_interval_ms) == (0, 200)
    return ask(talk, heartbeat_request("g", None, member, first.member_epoch))


def leave(talk: Dialogue, member: str = "m") -> Any:
    return ask(talk, heartbeat_request("g", None, member, -1))


def described(talk: Dialogue, group: str = "g") -> Any:
    (found,) = talk.ask(describe_request([group])).groups
    return found


def offsets(talk: Dialogue, topics: list[str] | None = None, version: int = 1) -> list[Any]:
    """Return start offset, lag and error of each described partition."""
    (group,) = ask(talk, offsets_request("g", topics, [0, 1]), version).groups
    assert group.error_code == 0
    return [
        (topic.topic_name, part.partition_index, part.start_offset, part.lag, part.error_code)
        for topic in group.topics
        for part in topic.partitions
    ]


def test_a_members_life(ready: Dialogue) -> None:
    response = join(ready, "t")
    assert (response.member_id, response.member_epoch) == ("m", 2)
    assert response.heartbeat_interval_ms == 5000
    assert response.assignment.topic_partitions[0].partitions == [0, 1]
    group = described(ready)
    assert (group.group_state, group.assignor_name, group.error_code) == ("Stable", "simple", 0)
    assert group.members[0].client_host == "/test"
    left = leave(ready)
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert described(ready).group_state == "Empty"


def test_errors_have_messages(ready: Dialogue) -> None:
    refused = ask(ready, heartbeat_request("g", None, "m", 3))
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "does not exist" in refused.error_message
    assert described(ready).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described(ready, "").error_code == ErrorCode.INVALID_GROUP_ID
    ready.ask(commit_request("other", {("t", 0): 1}), 9)
    refused = described(ready, "other")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "is not a share group" in refused.error_message


def test_without_a_coordinator(talk: Dialogue) -> None:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert talk.ask(heartbeat_request("g", ["t"])).error_code == code
    assert described(talk).error_code == code
    assert talk.ask(offsets_request("g", None)).groups[0].error_code == code
    assert talk.ask(alter_request("g", {("t", 0): 1})).error_code == code
    assert talk.ask(delete_request("g", ["t"])).error_code == code


def test_groups_are_listed_by_type(ready: Dialogue) -> None:
    join(ready, "t")
    ready.ask(commit_request("other", {("t", 0): 1}), 9)
    (listed,) = ready.ask(ListGroupsRequest(types_filter=["share"])).groups
    assert (listed.group_id, listed.group_type, listed.group_state) == ("g", "share", "Stable")
    assert len(ready.ask(ListGroupsRequest()).groups) == 2


def test_offsets_and_lag(ready: Dialogue) -> None:
    for _ in range(3):
        produce(ready, "t")
    assert offsets(ready) == []
    altered = ask(ready, alter_request("g", {("t", 0): 1}))
    assert altered.responses[0].partitions[0].error_code == 0
    assert offsets(ready) == [("t", 0, 1, 2, 0)]
    assert offsets(ready, version=0) == [("t", 0, 1, -1, 0)]
    named = offsets(ready, ["t", "missing"])
    unknown = [("missing", number, -1, -1, 0) for number in (0, 1)]
    assert named == [("t", 0, 1, 2, 0), ("t", 1, -1, -1, 0), *unknown]


def test_the_lag_of_what_was_never_delivered_is_not_known(ready: Dialogue) -> None:
    join(ready, "t")
    assert offsets(ready) == [("t", 0, -1, -1, 0), ("t", 1, -1, -1, 0)]


def test_offsets_are_altered_and_deleted(ready: Dialogue) -> None:
    join(ready, "t")
    in_use = ErrorCode.NON_EMPTY_GROUP
    refused = ask(ready, alter_request("g", {("t", 0): 1}))
    assert (refused.error_code, refused.responses) == (in_use, [])
    assert "1 members" in refused.error_message
    assert ask(ready, delete_request("g", ["t"])).error_code == in_use
    leave(ready)
    assert ask(ready, alter_request("g", {("t", 0): 1})).error_code == 0
    deleted = ask(ready, delete_request("g", ["t"]))
    assert [topic.error_code for topic in deleted.responses] == [0]
    assert offsets(ready) == []
    again = ask(ready, delete_request("g", ["t"]))
    (topic,) = again.responses
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic.error_message == "the group has no state of topic t"


def test_offsets_of_no_group(ready: Dialogue) -> None:
    code = ErrorCode.INVALID_GROUP_ID
    assert ready.ask(alter_request("", {})).error_code == code
    assert ready.ask(delete_request("", [])).error_code == code
    missing = ready.ask(delete_request("g", ["t"]))
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_deleted_with_its_state(ready: Dialogue) -> None:
    join(ready, "t")
    delete = DeleteGroupsRequest(groups_names=["g"])
    assert ask(ready, delete).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    leave(ready)
    assert ask(ready, delete).results[0].error_code == 0
    assert described(ready).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert offsets(ready, ["t"]) == [("t", 0, -1, -1, 0), ("t", 1, -1, -1, 0)]


def test_a_group_survives_a_restart(ready: Dialogue) -> None:
    join(ready, "t")
    ask(ready, heartbeat_request("g", ["t"], "second"))
    before = described(ready)
    ready.restart(crash=True)
    ready.pass_time(SOON_MS)
    assert described(ready) == before
    assert ask(ready, heartbeat_request("g", None, "m", 2)).member_epoch == 3
