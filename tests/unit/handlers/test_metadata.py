"""Tests Metadata: the list of topics, and topics that a request creates automatically."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import create_topic

BAD_NAMES = ["", ".", "..", "a/b", "a\0b", "a" * 250, "ü", "a b", "a:b"]


def ask(talk: Dialogue, *names: str, version: int = 13, create: bool = True) -> list[Any]:
    asked = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=create)
    topics: list[Any] = talk.ask(request, version).topics
    return topics


def ask_by_id(talk: Dialogue, topic_id: bytes, *, name: str | None, version: int = 13) -> Any:
    asked = MetadataRequestTopic(name=name, topic_id=topic_id)
    (topic,) = talk.ask(MetadataRequest(topics=[asked]), version).topics
    return topic


def test_no_list_is_every_topic(talk: Dialogue) -> None:
    for name in ("a", "b"):
        create_topic(talk, name, 2)
    for version in range(1, 14):
        found = talk.ask(MetadataRequest(topics=None), version).topics
        assert [topic.name for topic in found] == ["a", "b"]
        assert talk.ask(MetadataRequest(topics=[]), version).topics == []
    assert len(talk.ask(MetadataRequest(topics=[]), 0).topics) == 2


def test_the_broker_leads_everything(talk: Dialogue) -> None:
    topic_id = create_topic(talk, "a", 2)
    answer = talk.ask(MetadataRequest(topics=None))
    (broker,) = answer.brokers
    assert (broker.node_id, answer.controller_id) == (1, 1)
    assert answer.cluster_id == talk.node.image.cluster_id
    (topic,) = answer.topics
    assert topic.topic_id == topic_id
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
        assert (partition.offline_replicas, partition.error_code) == ([], 0)


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_made_on_demand_and_answered_at_once(talk: Dialogue, version: int) -> None:
    (made,) = ask(talk, "new", version=version)
    assert (made.error_code, len(made.partitions)) == (0, 1)
    assert "new" in talk.node.image.topics


def test_a_topic_is_not_created_if_the_request_forbids_it(talk: Dialogue) -> None:
    (found,) = ask(talk, "new", create=False)
    assert (found.error_code, found.topic_id) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_TOPIC_ID)
    assert talk.node.image.topics == {}


def test_a_topic_is_not_made_where_the_broker_does_not_allow_it(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"broker.auto_create_topics": False})
    assert [topic.error_code for topic in ask(talk, "new", "..")] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


def test_a_topic_is_announced_only_once_it_is_served(talk: Dialogue) -> None:
    talk.hold_syncs = True
    talk.send(CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1)]))
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    named, everything = talk.send(asked), talk.send(MetadataRequest(topics=None))
    assert named.waiting
    assert everything.answer.topics == []
    talk.release_syncs()
    for exchange in (named, talk.send(MetadataRequest(topics=None))):
        (topic,) = exchange.answer.topics
        assert (topic.name, topic.error_code, len(topic.partitions)) == ("new", 0, 1)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_no_topic_can_have(talk: Dialogue, name: str) -> None:
    (found,) = ask(talk, name)
    assert (found.error_code, found.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    assert talk.node.image.topics == {}


def test_a_dot_and_an_underscore_collide(talk: Dialogue) -> None:
    create_topic(talk, "a_b")
    (found,) = ask(talk, "a.b")
    assert found.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_good_and_bad_names_are_answered_each_by_itself(talk: Dialogue) -> None:
    found = ask(talk, "good", "..", "also.good")
    assert [topic.error_code for topic in found] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]


@pytest.mark.parametrize("name", [None, ""], ids=["null", "empty, as Java's Admin sends it"])
def test_topics_by_id(talk: Dialogue, name: str | None) -> None:
    topic_id = create_topic(talk, "a")
    found = ask_by_id(talk, topic_id, name=name)
    assert (found.error_code, found.name, found.topic_id) == (0, "a", topic_id)
    unknown = ask_by_id(talk, b"u" * 16, name=name)
    assert (unknown.error_code, unknown.name, unknown.topic_id) == (
        ErrorCode.UNKNOWN_TOPIC_ID,
        None,
        b"u" * 16,
    )


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_where_an_answer_needs_a_name(talk: Dialogue, version: int) -> None:
    topic_id = create_topic(talk, "a")
    assert (
        ask_by_id(talk, topic_id, name=None, version=version).error_code
        == ErrorCode.INVALID_REQUEST
    )


def test_operations_are_listed_if_requested(talk: Dialogue) -> None:
    create_topic(talk, "a")
    plain = talk.ask(MetadataRequest(topics=None), 10)
    assert plain.topics[0].topic_authorized_operations == -(1 << 31)
    asked = MetadataRequest(
        topics=None,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    full = talk.ask(asked, 10)
    assert full.topics[0].topic_authorized_operations > 0
    assert full.cluster_authorized_operations > 0
    unknown = MetadataRequest(
        topics=[MetadataRequestTopic(name="a b")], include_topic_authorized_operations=True
    )
    assert talk.ask(unknown, 10).topics[0].topic_authorized_operations > 0
