"""Tests the APIs by which brokers reach share coordinators, and who may call them."""

from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import create_topic
from tests.support.talk.share_state_requests import (
    delete_request,
    initialize_request,
    read_request,
    summary_request,
    write_request,
)
from tests.support.talk.share_talk import KEY

SHARE = 2
NOWHERE = bytes([9] * 16)


@pytest.fixture
def topics(talk: Dialogue) -> list[bytes]:
    """Two topics, and the coordinators of their share partitions."""
    talk.ask(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[KEY.coordinator_key]))
    return [create_topic(talk, "orders"), create_topic(talk, "letters")]


def parts(answer: Any) -> list[Any]:
    return [part for topic in answer.results for part in topic.partitions]


def codes(answer: Any) -> list[int]:
    return [part.error_code for part in parts(answer)]


def test_a_states_life(talk: Dialogue, topics: list[bytes]) -> None:
    assert codes(talk.ask(initialize_request(topics, 5))) == [0, 0]
    assert codes(talk.ask(write_request(topics, 5, 9))) == [0, 0]
    for part in parts(talk.ask(read_request(topics, 1))):
        assert (part.error_code, part.start_offset, part.state_epoch) == (0, 5, 0)
        (run,) = part.state_batches
        assert (run.first_offset, run.last_offset) == (5, 9)
        assert (run.delivery_state, run.delivery_count) == (2, 1)
    for part in parts(talk.ask(summary_request(topics))):
        assert (part.start_offset, part.leader_epoch, part.delivery_complete_count) == (5, 1, -1)
    assert codes(talk.ask(delete_request(topics))) == [0, 0]
    assert [part.start_offset for part in parts(talk.ask(summary_request(topics)))] == [-1, -1]


def test_each_partition_has_its_own_error(talk: Dialogue, topics: list[bytes]) -> None:
    orders, letters = topics
    answer = talk.ask(initialize_request([orders, NOWHERE]))
    assert codes(answer) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [topic.topic_id for topic in answer.results] == [orders, NOWHERE]
    answer = talk.ask(write_request([letters, orders], 0, 1))
    assert codes(answer) == [ErrorCode.INVALID_REQUEST, 0]
    assert "not initialized" in parts(answer)[0].error_message
    assert codes(talk.ask(read_request([orders], 7))) == [0]
    fenced = talk.ask(write_request([orders], 2, 3, leader_epoch=6))
    assert codes(fenced) == [ErrorCode.FENCED_LEADER_EPOCH]
    again = talk.ask(initialize_request([orders], state_epoch=3))
    older = talk.ask(initialize_request([orders], state_epoch=2))
    assert codes(again) + codes(older) == [0, ErrorCode.FENCED_STATE_EPOCH]


@pytest.mark.parametrize("state", [1, 5, -1])
def test_states_that_are_never_stored(talk: Dialogue, topics: list[bytes], state: int) -> None:
    talk.ask(initialize_request(topics[:1]))
    answer = talk.ask(write_request(topics[:1], 0, 4, state))
    assert codes(answer) == [ErrorCode.INVALID_REQUEST]


def test_a_partition_that_is_named_twice(talk: Dialogue, topics: list[bytes]) -> None:
    orders, letters = topics
    answer = talk.ask(initialize_request([orders, letters, orders]))
    refused = ErrorCode.INVALID_REQUEST
    assert codes(answer) == [refused, 0, refused]
    assert [topic.topic_id for topic in answer.results] == [orders, letters, orders]


def test_a_group_without_an_id(talk: Dialogue, topics: list[bytes]) -> None:
    assert codes(talk.ask(initialize_request(topics, group=""))) == []


def test_before_there_is_any_coordinator(talk: Dialogue) -> None:
    orders = create_topic(talk, "orders")
    answer = talk.ask(initialize_request([orders]))
    assert codes(answer) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_an_answer_waits_until_the_state_is_safe(talk: Dialogue, topics: list[bytes]) -> None:
    talk.ask(initialize_request(topics))
    talk.hold_syncs = True
    written = talk.send(write_request(topics, 0, 4))
    read = talk.send(read_request(topics))
    assert written.waiting
    assert read.waiting
    talk.release_syncs()
    assert codes(written.answer) == codes(read.answer) == [0, 0]


class TestFindCoordinator:
    """Brokers find the coordinators of share partitions."""

    def find(self, talk: Dialogue, key: str, version: int = 6) -> Any:
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        return talk.ask(request, version).coordinators[0]

    def test_a_key_names_group_topic_and_partition(self, talk: Dialogue) -> None:
        found = self.find(talk, KEY.coordinator_key)
        assert (found.error_code, found.node_id, found.key) == (0, 1, KEY.coordinator_key)
        assert len(talk.node.image.topics["__share_group_state"].partitions) == 50

    @pytest.mark.parametrize(
        "key",
        [
            "",
            "g",
            "g:AAAAAAAAAAAAAAAAAAAAAA",
            "g:AAAA:0",
            "g:AAAAAAAAAAAAAAAAAAAAAA:x",
            "g:AAAAAAAAAAAAAAAAAAAAAA:",
            ":AAAAAAAAAAAAAAAAAAAAAA:0",
            "g:AAAAAAAAAAAAAAAAAAAAAA:1_0",
            "g:AAAAAAAAAAAAAAAAAAAAAA: 0",
            "a:b:c:0",
            "g:ä:0",
        ],
    )
    def test_other_keys_are_invalid(self, talk: Dialogue, key: str) -> None:
        found = self.find(talk, key)
        assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)
        assert not talk.node.image.topics, "no topic is created for it"

    def test_a_group_id_may_have_colons(self, talk: Dialogue) -> None:
        assert self.find(talk, f"a:b:{KEY.coordinator_key}").error_code == ErrorCode.NONE

    def test_earlier_versions_know_no_share_partitions(self, talk: Dialogue) -> None:
        found = self.find(talk, KEY.coordinator_key, version=5)
        assert found.error_code == ErrorCode.INVALID_REQUEST
