"""Tests where a stream continues: topics recreated, missing for a moment, or grown. No session."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from barnabas.spark.query_errors import DataLossError, OptionError
from barnabas.spark.source import data_loss, lookups
from barnabas.spark.source.source_options import parse_stream
from barnabas.spark.source.stream_reader import StreamReader
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually

ALL = ReadAllAvailable()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


class Topic:
    """A topic, and readers of it as Spark would create them."""

    def __init__(self, bootstrap: str) -> None:
        self.name = f"p-{uuid4().hex[:12]}"
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.create()

    def create(self, partitions: int = 1) -> None:
        wanted = NewTopic(self.name, num_partitions=partitions)
        eventually(lambda: self.admin.create_topics([wanted])[self.name].exception() is None)

    def delete(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result()

    def recreate(self, count: int) -> None:
        """Delete the topic, create it again, and write records."""
        self.delete()
        self.create()
        self.write(count)

    def write(self, count: int, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number in range(count):
            producer.produce(self.name, b"%d" % number, partition=partition)
        assert producer.flush(30) == 0

    def reader(self, **options: str) -> StreamReader:
        names = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.name}
        start = {"startingOffsets": "earliest", "fetchOffset.retryIntervalMs": "20"}
        return StreamReader(parse_stream({**names, **start, **options}))

    def committed(self, group: str) -> dict[int, int]:
        asked = [ConsumerGroupTopicPartitions(group)]
        answer = self.admin.list_consumer_group_offsets(asked)[group].result()
        return {each.partition: each.offset for each in answer.topic_partitions}


@pytest.fixture
def topic(broker: Broker) -> Topic:
    return Topic(broker.bootstrap)


def through_json(position: dict[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(json.dumps(position))
    return stored


def ranges(
    reader: StreamReader, start: dict[str, Any], end: dict[str, Any]
) -> list[tuple[int, int, int]]:
    """Return partition, start and end of everything that a batch reads."""
    planned = reader.partitions(through_json(start), through_json(end))
    splits = [split for each in planned for split in each.splits]  # type: ignore[attr-defined]
    return [(split.place.partition, split.start, split.end) for split in splits]


def test_a_longer_topic_of_the_same_name_is_data_loss_and_read_from_its_start(topic: Topic) -> None:
    topic.write(5)
    reader = topic.reader()
    start = reader.initialOffset()
    end = through_json(reader.latestOffset(start, ALL))
    assert ranges(reader, start, end) == [(0, 0, 5)]
    topic.recreate(8)
    strict = topic.reader()
    later = strict.latestOffset(end, ALL)
    with pytest.raises(
        DataLossError, match=r"deleted and created again.*partition 0 from offset 5"
    ):
        strict.partitions(end, through_json(later))
    lenient = topic.reader(failOnDataLoss="false")
    assert ranges(lenient, end, lenient.latestOffset(end, ALL)) == [(0, 0, 8)]


def test_a_recreated_topic_of_the_same_length_is_detected(topic: Topic) -> None:
    topic.write(3)
    reader = topic.reader(failOnDataLoss="false")
    end = through_json(reader.latestOffset(reader.initialOffset(), ALL))
    topic.recreate(3)
    later = reader.latestOffset(end, ALL)
    assert ranges(reader, end, later) == [(0, 0, 3)]
    assert reader.latestOffset(through_json(later), ALL) == later


def test_a_limit_counts_from_the_start_of_a_topic_created_again(topic: Topic) -> None:
    topic.write(5)
    reader = topic.reader(failOnDataLoss="false")
    end = through_json(reader.latestOffset(reader.initialOffset(), ALL))
    topic.recreate(8)
    later = reader.latestOffset(end, ReadMaxRows(2))
    assert ranges(reader, end, later) == [(0, 0, 2)]


def test_a_planned_batch_of_a_topic_created_again_reads_nothing_of_the_new_one(
    topic: Topic,
) -> None:
    topic.write(5)
    reader = topic.reader(failOnDataLoss="false")
    start = reader.initialOffset()
    end = through_json(reader.latestOffset(start, ALL))
    topic.recreate(9)
    again = topic.reader(failOnDataLoss="false")
    assert ranges(again, start, end) == []
    assert ranges(again, end, again.latestOffset(end, ALL)) == [(0, 0, 9)]


def test_a_checkpoint_without_topic_ids_continues(topic: Topic) -> None:
    topic.write(5)
    old = {topic.name: {"0": 3}}
    reader = topic.reader()
    end = reader.latestOffset(old, ALL)
    assert ranges(reader, old, end) == [(0, 3, 5)]
    first = {"@start": {topic.name: {"0": 1}}, topic.name: {"0": 3}}
    assert ranges(reader, reader.initialOffset(), first) == [(0, 1, 3)]
    everything = {topic.name: {"0": 5}}
    assert reader.latestOffset(everything, ALL) == everything


class ForgetfulClient(AdminClient):  # type: ignore[misc]
    """A client that does not get some topics from the brokers for a number of responses."""

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self.hidden: dict[str, int] = {}

    def list_topics(self, *args: Any, **options: Any) -> Any:
        found = super().list_topics(*args, **options)
        for name in [name for name in found.topics if self._hides(name)]:
            del found.topics[name]
        return found

    def describe_topics(self, topics: Any, **options: Any) -> Any:
        found = super().describe_topics(topics, **options)
        for name in [name for name in found if self._hides(name)]:
            found[name] = self._unknown()
        return found

    def _hides(self, name: str) -> bool:
        left = self.hidden.get(name, 0)
        self.hidden[name] = max(0, left - 1)
        return left > 0

    def _unknown(self) -> Any:
        class Unknown:
            def result(self) -> None:
                raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

        return Unknown()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> ForgetfulClient:
    made = ForgetfulClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    monkeypatch.setattr(lookups, "AdminClient", lambda properties: made)
    return made


def test_a_topic_missing_from_an_answer_is_asked_for_again(
    topic: Topic, client: ForgetfulClient
) -> None:
    topic.write(5)
    reader = topic.reader()
    start = reader.initialOffset()
    end = through_json(reader.latestOffset(start, ALL))
    topic.write(2)
    client.hidden[topic.name] = 2
    later = through_json(reader.latestOffset(end, ALL))
    client.hidden[topic.name] = 2
    assert ranges(reader, end, later) == [(0, 5, 7)]


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_topic_that_is_gone_for_long_is_reported_and_keeps_its_place(
    topic: Topic, client: ForgetfulClient, monkeypatch: pytest.MonkeyPatch, fail: str
) -> None:
    for module in (data_loss, lookups):
        monkeypatch.setattr(module, "GONE_PATIENCE_S", 0.1, raising=False)
    topic.write(5)
    reader = topic.reader(failOnDataLoss=fail)
    end = through_json(reader.latestOffset(reader.initialOffset(), ALL))
    client.hidden[topic.name] = 10**6
    if fail == "true":
        with pytest.raises(DataLossError, match="does not exist any more; offsets 5 on are gone"):
            reader.latestOffset(end, ALL)
        return
    meanwhile = through_json(reader.latestOffset(end, ALL))
    assert ranges(reader, end, meanwhile) == []
    client.hidden.clear()
    topic.write(2)
    assert ranges(reader, meanwhile, reader.latestOffset(meanwhile, ALL)) == [(0, 5, 7)]


def test_a_first_batch_is_repeated_though_the_options_suit_the_topic_no_more(topic: Topic) -> None:
    topic.write(4)
    options = {"startingOffsets": json.dumps({topic.name: {"0": 1}})}
    reader = topic.reader(**options)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    topic.admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result()
    restarted = topic.reader(**options)
    assert ranges(restarted, restarted.initialOffset(), end) == [(0, 1, 4)]
    topic.write(2, partition=1)
    assert ranges(restarted, end, restarted.latestOffset(end, ALL)) == [(1, 0, 2)]
    new_query = topic.reader(**options)
    with pytest.raises(OptionError, match=f"startingOffsets leaves out {topic.name}-1"):
        new_query.latestOffset(through_json(new_query.initialOffset()), ALL)


def test_offsets_of_a_group_of_other_consumers_stay_as_they_are(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    topic.write(5)
    group = f"app-{topic.name}"
    theirs = [ConsumerGroupTopicPartitions(group, [ClientPartition(topic.name, 0, 2)])]
    topic.admin.alter_consumer_group_offsets(theirs)[group].result()
    reader = topic.reader(**{"kafka.group.id": group})
    for count in (5, 4):
        reader.commit({topic.name: {"0": count}})
    assert topic.committed(group) == {0: 2}
    assert caplog.text.count("holds offsets of other consumers") == 1


def test_a_group_of_its_own_shows_the_progress(topic: Topic) -> None:
    topic.write(5)
    group = f"own-{topic.name}"
    reader = topic.reader(**{"kafka.group.id": group})
    for count in (1, 5):
        reader.commit({topic.name: {"0": count}})
        assert topic.committed(group) == {0: count}
