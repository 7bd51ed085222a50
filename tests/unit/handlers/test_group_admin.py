"""Tests ListGroups and DeleteGroups over all coordinators."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.offset_requests import commit_request, committed, find_coordinator
from tests.support.talk.requests import create_topic

GROUPS = ["one", "two", "three", "four", ""]


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 5})
    find_coordinator(talk)
    create_topic(talk, "a")
    for group in GROUPS:
        talk.ask(commit_request(group, {("a", 0): 1}), 9)
    return talk


def listed(talk: Dialogue, version: int = 5, **filters: list[str]) -> list[str]:
    answer = talk.ask(ListGroupsRequest(**filters), version)
    assert answer.error_code == 0
    return sorted(group.group_id for group in answer.groups)


@pytest.mark.parametrize("version", range(6))
def test_listing_in_every_version(talk: Dialogue, version: int) -> None:
    answer = talk.ask(ListGroupsRequest(), version)
    assert sorted(group.group_id for group in answer.groups) == sorted(GROUPS)
    for group in answer.groups:
        assert group.protocol_type == ""
        assert group.group_state == ("Empty" if version >= 4 else "")
        assert group.group_type == ("classic" if version >= 5 else "")


def test_filters(talk: Dialogue) -> None:
    assert listed(talk, 4, states_filter=["eMPTY"]) == sorted(GROUPS)
    assert listed(talk, states_filter=["Stable"]) == []
    assert listed(talk, types_filter=["Classic"]) == sorted(GROUPS)
    assert listed(talk, types_filter=["consumer", "share"]) == []


def test_before_there_are_coordinators(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    assert listed(talk) == []
    (result,) = talk.ask(DeleteGroupsRequest(groups_names=["g"])).results
    assert result.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(3))
def test_deleting_in_every_version(talk: Dialogue, version: int) -> None:
    asked = ["two", "none", "four", "two", ""]
    answer = talk.ask(DeleteGroupsRequest(groups_names=asked), version)
    assert [(result.group_id, result.error_code) for result in answer.results] == [
        ("two", 0),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("four", 0),
        ("", 0),
    ]
    for crash in (True, False):
        assert listed(talk) == ["one", "three"]
        assert (committed(talk, "two"), len(committed(talk, "one"))) == ({}, 1)
        talk.restart(crash=crash)


def test_responses_wait_until_the_deletion_is_committed(talk: Dialogue) -> None:
    talk.hold_syncs = True
    deletion = talk.send(DeleteGroupsRequest(groups_names=["one", "two", "none"]))
    listing = talk.send(ListGroupsRequest())
    assert (deletion.waiting, listing.waiting) == (True, True)
    talk.release_syncs()
    assert [result.error_code for result in deletion.answer.results] == [
        0,
        0,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    assert len(listing.answer.groups) == len(GROUPS) - 2
