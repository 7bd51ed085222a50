"""Tests FindCoordinator, and the internal topics that it creates."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import NO_GROUP
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import produce

GROUP, TRANSACTION = 0, 1


@pytest.mark.parametrize("version", range(7))
def test_a_group_finds_its_coordinator_in_every_version(talk: Dialogue, version: int) -> None:
    several = FindCoordinatorRequest(coordinator_keys=["readers"])
    answer = talk.ask(several if version >= 4 else FindCoordinatorRequest(key="readers"), version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id, found.host) == (0, 1, "127.0.0.1")


@pytest.mark.parametrize(
    ("key_type", "topic"), [(GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")]
)
def test_the_internal_topic_is_made_on_first_use(talk: Dialogue, key_type: int, topic: str) -> None:
    assert topic not in talk.node.image.topics
    talk.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"]))
    made = talk.node.image.topics[topic]
    assert (len(made.partitions), made.is_internal) == (50, True)
    assert made.config["cleanup.policy"] == "compact"


@pytest.mark.parametrize("version", range(7))
def test_a_consumer_without_a_group_has_no_coordinator(talk: Dialogue, version: int) -> None:
    several = FindCoordinatorRequest(coordinator_keys=[NO_GROUP])
    answer = talk.ask(several if version >= 4 else FindCoordinatorRequest(key=NO_GROUP), version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert not talk.node.image.topics, "no topic is created for it"


def test_simultaneous_requests_wait_for_the_same_topic(talk: Dialogue) -> None:
    talk.hold_syncs = True
    first = talk.send(FindCoordinatorRequest(coordinator_keys=["a"]))
    second = talk.send(FindCoordinatorRequest(coordinator_keys=["b"]))
    assert first.waiting
    assert second.waiting
    talk.release_syncs()
    assert [found.key for found in first.answer.coordinators] == ["a"]
    assert [found.key for found in second.answer.coordinators] == ["b"]


def test_an_internal_topic_that_is_asked_for_by_name_is_made_properly(talk: Dialogue) -> None:
    asked = [MetadataRequestTopic(name="__consumer_offsets")]
    talk.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=True))
    made = talk.node.image.topics["__consumer_offsets"]
    assert (len(made.partitions), made.config["cleanup.policy"]) == (50, "compact")


@pytest.mark.parametrize("fast_path", [False, True])
def test_only_the_broker_writes_to_internal_topics(talk: Dialogue, fast_path: bool) -> None:
    talk.ask(FindCoordinatorRequest(coordinator_keys=["a"]))
    talk.fast_path = fast_path
    result = produce(talk, talk.node.image.topics["__consumer_offsets"].topic_id)
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert talk.node.by_topic_name["__consumer_offsets"][0].log.end_offset == 0


def test_internal_topics_cannot_be_deleted(talk: Dialogue) -> None:
    talk.ask(FindCoordinatorRequest(coordinator_keys=["a"]))
    state = DeleteTopicState(name="__consumer_offsets")
    (result,) = talk.ask(DeleteTopicsRequest(topics=[state])).responses
    assert result.error_code == ErrorCode.POLICY_VIOLATION
    assert "__consumer_offsets" in talk.node.image.topics


def test_the_number_of_partitions_is_a_setting(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"groups.offsets_partitions": 4})
    talk.ask(FindCoordinatorRequest(coordinator_keys=["a"]))
    assert len(talk.node.image.topics["__consumer_offsets"].partitions) == 4
