"""Tests what a broker still knows after a stop, and after a crash."""

from pathlib import Path

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, fetch, list_offset, produce, read

both_ways = pytest.mark.parametrize("crash", [False, True], ids=["stop", "crash"])


def alter(talk: Dialogue, kind: int, name: str, key: str, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value)]
    )
    (result,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert result.error_code == 0


@both_ways
def test_topics_ids_and_the_cluster_s_name_survive(talk: Dialogue, crash: bool) -> None:
    ids = {name: create_topic(talk, name, 2) for name in ("a", "b", "gone")}
    talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))
    grown = CreatePartitionsTopic(name="a", count=3, assignments=None)
    talk.ask(CreatePartitionsRequest(topics=[grown]))
    before = talk.ask(MetadataRequest(topics=None))
    talk.restart(crash=crash)
    after = talk.ask(MetadataRequest(topics=None))
    assert after.cluster_id == before.cluster_id != ""
    found = {topic.name: (topic.topic_id, len(topic.partitions)) for topic in after.topics}
    assert found == {"a": (ids["a"], 3), "b": (ids["b"], 2)}
    assert {p.leader_epoch for topic in after.topics for p in topic.partitions} == {1}


@both_ways
def test_records_and_offsets_survive(talk: Dialogue, crash: bool) -> None:
    create_topic(talk, "a")
    for _ in range(3):
        produce(talk, "a", batch(10))
    before = fetch(talk, "a").records
    talk.restart(crash=crash)
    assert fetch(talk, "a").records == before
    assert list_offset(talk, "a", -1) == (0, 30, -1)
    assert produce(talk, "a").base_offset == 30
    assert [record.offset for record in read(fetch(talk, "a").records)] == list(range(31))


@both_ways
def test_configs_survive(talk: Dialogue, crash: bool) -> None:
    create_topic(talk, "a", config={"max.message.bytes": "5000"})
    create_topic(talk, "b")
    alter(talk, 2, "a", "max.message.bytes", "1000")
    alter(talk, 4, "", "message.max.bytes", "2000")
    talk.restart(crash=crash)
    sizes = {"a": 1000, "b": 2000}
    for name, limit in sizes.items():
        assert (
            produce(talk, name, batch(value=bytes(limit))).error_code == ErrorCode.MESSAGE_TOO_LARGE
        )
        assert produce(talk, name, batch(value=bytes(limit - 200))).error_code == 0


def test_metadata_is_summed_up_without_loss(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"cluster.snapshot_after_records": 5})
    topic_id = create_topic(talk, "a", 2)
    produce(talk, "a")
    for number in range(20):
        alter(talk, 2, "a", "retention.ms", str(number))
        talk.restart()
    assert list((tmp_path / "__cluster_metadata").glob("*.checkpoint"))
    cluster_id = talk.node.image.cluster_id
    talk.restart()
    talk.restart()
    (topic,) = talk.ask(MetadataRequest(topics=None)).topics
    assert (topic.name, topic.topic_id) == ("a", topic_id)
    assert [p.leader_epoch for p in topic.partitions] == [22, 22]
    assert talk.node.image.cluster_id == cluster_id
    assert talk.node.image.topics["a"].config == {"retention.ms": "19"}
    assert fetch(talk, "a").high_watermark == 1


def test_a_folder_that_is_not_a_topic_s_is_left_alone(talk: Dialogue, tmp_path: Path) -> None:
    create_topic(talk, "a")
    stranger = tmp_path / "topics" / "stranger"
    stranger.mkdir()
    (stranger / "file").write_text("mine")
    talk.restart()
    assert (stranger / "file").read_text() == "mine"
    assert [notice.event for notice in talk.notices] == ["a folder belongs to no topic"]
