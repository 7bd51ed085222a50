"""Tests OffsetCommit, OffsetFetch and OffsetDelete in every version, and across restarts."""

import gc
from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.offset_requests import (
    At,
    Position,
    codes,
    commit_request,
    committed,
    delete_request,
    fetch_group,
    fetch_request,
    find_coordinator,
    positions,
)
from tests.support.talk.requests import create_topic

COMMITS = range(2, 11)
FETCHES = range(1, 11)
ROUNDS = 100
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.fixture(params=["handler", "fast path"])
def talk(tmp_path: Path, request: pytest.FixtureRequest) -> Dialogue:
    """The fast path and the normal path of a commit must give the same results."""
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 5})
    talk.fast_path = request.param == "fast path"
    find_coordinator(talk)
    return talk


@pytest.mark.parametrize("version", COMMITS)
def test_commit_in_every_version(talk: Dialogue, version: int) -> None:
    topic_id = create_topic(talk, "a", 2)
    topic: str | bytes = topic_id if version >= 10 else "a"
    asked: dict[At, int | Position] = {
        (topic, 0): Position(5, 2, "n"),
        (topic, 1): 6,
        (topic, 2): 7,
    }
    answer = talk.ask(commit_request("g", asked), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == {(topic, 0): 0, (topic, 1): 0, (topic, 2): unknown}
    epoch = 2 if version >= 6 else -1
    assert committed(talk, "g") == {("a", 0): Position(5, epoch, "n"), ("a", 1): Position(6)}


@pytest.mark.parametrize("version", FETCHES)
def test_fetch_in_every_version(talk: Dialogue, version: int) -> None:
    topic_id = create_topic(talk, "a", 2)
    talk.ask(commit_request("g", {("a", 0): Position(5, 2, "n")}), 9)
    topic: str | bytes = topic_id if version >= 10 else "a"
    epoch = 2 if version >= 5 else -1
    asked: list[At] = [(topic, 1), (topic, 0)]
    found = {(topic, 0): Position(5, epoch, "n")}
    assert committed(talk, "g", asked, version) == {**found, (topic, 1): Position(-1)}
    nobody = {(topic, 0): Position(-1), (topic, 1): Position(-1)}
    assert committed(talk, "nobody", asked, version) == nobody
    assert committed(talk, "g", [], version) == {}
    if version >= 2:
        assert committed(talk, "g", None, version) == found
        assert committed(talk, "nobody", None, version) == {}


@pytest.mark.parametrize("version", FETCHES)
def test_fetch_without_a_coordinator(tmp_path: Path, version: int) -> None:
    talk = Dialogue(tmp_path)
    topic: str | bytes = bytes(16) if version >= 10 else "a"
    answer = talk.ask(fetch_request(fetch_group("g", [(topic, 0)]), version), version)
    if version >= 8:
        assert (answer.groups[0].error_code, answer.groups[0].topics) == (UNAVAILABLE, [])
    elif version >= 2:
        assert (answer.error_code, answer.topics) == (UNAVAILABLE, [])
    else:
        assert codes(answer) == {("a", 0): UNAVAILABLE}


@pytest.mark.parametrize("version", COMMITS)
def test_commit_without_a_coordinator(tmp_path: Path, version: int) -> None:
    talk = Dialogue(tmp_path)
    topic: str | bytes = create_topic(talk, "a") if version >= 10 else "a"
    answer = talk.ask(commit_request("g", {(topic, 0): 1}), version)
    assert codes(answer) == {(topic, 0): UNAVAILABLE}


def test_several_groups_at_once_on_different_coordinators(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    groups = [f"g{number}" for number in range(8)]
    shards = {talk.node.coordinators.groups.partition_for(group) for group in groups}
    assert len(shards) > 2
    for number, group in enumerate(groups):
        talk.ask(commit_request(group, {("a", 0): number, ("a", 1): 100}), 9)
    asked = [fetch_group(group, [("a", 0)]) for group in groups]
    answer = talk.ask(OffsetFetchRequest(groups=[*asked, fetch_group("none", None)]), 8)
    assert [group.group_id for group in answer.groups] == [*groups, "none"]
    told = [positions(group) for group in answer.groups]
    assert told == [{("a", 0): Position(number)} for number in range(8)] + [{}]


def test_a_commit_is_answered_once_it_is_safe(talk: Dialogue) -> None:
    create_topic(talk, "a")
    talk.hold_syncs = True
    commit = talk.send(commit_request("g", {("a", 0): 5}), 9)
    fetch = talk.send(fetch_request(fetch_group("g", None), 9), 9)
    assert (commit.waiting, fetch.waiting) == (True, True)
    talk.release_syncs()
    assert codes(commit.answer) == {("a", 0): 0}
    assert positions(fetch.answer.groups[0]) == {("a", 0): Position(5)}


@pytest.mark.parametrize("crash", [False, True])
def test_offsets_outlive_a_restart(talk: Dialogue, crash: bool) -> None:
    topic_id = create_topic(talk, "a", 3)
    create_topic(talk, "gone")
    talk.ask(commit_request("g", {("a", 0): Position(5, 2, "né"), ("gone", 0): 1}), 9)
    talk.ask(commit_request("g", {("a", 1): 6}, retention_ms=10**9), 3)
    talk.ask(commit_request("g", {(topic_id, 2): Position(7, 4, "")}), 10)
    talk.ask(commit_request("h", {("a", 0): 8}), 9)
    talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))
    before = committed(talk, "g"), committed(talk, "h")
    assert before[0] == {
        ("a", 0): Position(5, 2, "né"),
        ("a", 1): Position(6),
        ("a", 2): Position(7, 4),
    }
    for _ in range(2):
        talk.restart(crash=crash)
        assert (committed(talk, "g"), committed(talk, "h")) == before
    assert [notice for notice in talk.notices if notice.level == "error"] == []


def test_offsets_expire_in_time_and_stay_gone(tmp_path: Path) -> None:
    retention = {"groups.offsets_retention": "2h", "groups.offsets_retention_check_interval": "1m"}
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 2, **retention})
    find_coordinator(talk)
    create_topic(talk, "a", 2)
    talk.ask(commit_request("g", {("a", 0): 5}), 9)
    talk.pass_time(3_600_000)
    talk.ask(commit_request("g", {("a", 1): 6}), 9)
    talk.pass_time(3_600_000)
    assert committed(talk, "g") == {("a", 1): Position(6)}
    talk.restart()
    assert committed(talk, "g") == {("a", 1): Position(6)}


def test_deleting_offsets(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    assert talk.ask(delete_request("g", [("a", 0)])).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert talk.ask(delete_request("", [("a", 0)])).error_code == ErrorCode.INVALID_GROUP_ID
    talk.ask(commit_request("g", {("a", 0): 5, ("a", 1): 6}), 9)
    answer = talk.ask(delete_request("g", [("a", 0), ("a", 2), ("none", 0)]))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code == 0
    assert codes(answer) == {("a", 0): 0, ("a", 2): unknown, ("none", 0): unknown}
    assert committed(talk, "g") == {("a", 1): Position(6)}
    talk.restart(crash=True)
    assert committed(talk, "g") == {("a", 1): Position(6)}


def test_no_topics_no_answers(talk: Dialogue) -> None:
    assert talk.ask(OffsetCommitRequest(group_id="g"), 9).topics == []
    assert talk.ask(OffsetFetchRequest(), 8).groups == []


def test_requests_leave_no_circles_behind(talk: Dialogue) -> None:
    create_topic(talk, "a")
    ask_everything(talk)
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            ask_everything(talk)
        assert gc.collect() < ROUNDS
    finally:
        gc.enable()


def ask_everything(talk: Dialogue) -> None:
    talk.hold_syncs = True
    commit = talk.send(commit_request("g", {("a", 0): 5}), 9)
    fetch = talk.send(fetch_request(fetch_group("g", None), 9), 9)
    deletion = talk.send(DeleteGroupsRequest(groups_names=["g", "none"]))
    listing = talk.send(ListGroupsRequest())
    talk.release_syncs()
    assert not any(exchange.waiting for exchange in (commit, fetch, deletion, listing))
