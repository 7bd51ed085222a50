"""Tests kafka-python: it reads what it has sent."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol.records import Record
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_choice import brokers
from tests.support.loads.topic_reading import committed_records, create_topic

kafka = pytest.importorskip("kafka")
admin = pytest.importorskip("kafka.admin")

pytestmark = pytest.mark.compat

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def client(broker: Broker) -> Iterator[Any]:
    made = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield made
    made.close()


@pytest.fixture
def consumer(broker: Broker) -> Iterator[Any]:
    made = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, fetch_max_wait_ms=20)
    yield made
    made.close()


def produce(broker: Broker, topic: str, records: list[Record], **config: Any) -> list[Any]:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5, **config)
    try:
        futures = [
            producer.send(
                topic,
                record.value,
                record.key,
                headers=list(record.headers),
                partition=0,
                timestamp_ms=record.timestamp,
            )
            for record in records
        ]
        producer.flush(30)
        return [future.get(30) for future in futures]
    finally:
        producer.close()


def read(consumer: Any, topic: str, offset: int | None, count: int) -> list[Record]:
    place = kafka.TopicPartition(topic, 0)
    consumer.assign([place])
    if offset is None:
        consumer.seek_to_beginning(place)
    else:
        consumer.seek(place, offset)
    found: list[Record] = []

    def enough() -> bool:
        for messages in consumer.poll(500).values():
            found.extend(
                Record(m.offset, m.timestamp, m.key, m.value, tuple(m.headers)) for m in messages
            )
        return len(found) >= count

    eventually(enough)
    return found


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back(
    broker: Broker,
    client: Any,
    consumer: Any,
    topic: str,
    sent: list[Record],
    codec: str | None,
    acks: int | str,
) -> None:
    client.create_topics([admin.NewTopic(topic, 1, 1)])
    idempotent = {} if acks == "all" else {"enable_idempotence": False}
    reports = produce(broker, topic, sent, compression_type=codec, acks=acks, **idempotent)
    if acks != 0:
        assert [report.offset for report in reports] == [record.offset for record in sent]
    assert read(consumer, topic, None, len(sent)) == sent
    assert read(consumer, topic, 37, len(sent) - 37) == sent[37:]
    place = kafka.TopicPartition(topic, 0)
    found = consumer.offsets_for_times({place: sent[20].timestamp - 9})
    assert (found[place].offset, found[place].timestamp) == (20, sent[20].timestamp)
    assert consumer.beginning_offsets([place]) == {place: 0}
    assert consumer.end_offsets([place]) == {place: len(sent)}


def test_topics_are_made_on_demand(
    broker: Broker, consumer: Any, topic: str, sent: list[Record]
) -> None:
    produce(broker, topic, sent[:3])
    assert read(consumer, topic, 0, 3) == sent[:3]
    assert topic in consumer.topics()


def test_the_admin_client_runs_a_topic(
    broker: Broker, client: Any, consumer: Any, topic: str, sent: list[Record]
) -> None:
    config = {"cleanup.policy": "compact,delete"}
    client.create_topics([admin.NewTopic(topic, 2, 1, topic_configs=config)])
    client.create_partitions({topic: admin.NewPartitions(3)})
    (described,) = client.describe_topics([topic])
    assert len(described["partitions"]) == 3
    resource = admin.ConfigResource(admin.ConfigResourceType.TOPIC, topic)
    assert "compact,delete" in str(client.describe_configs([resource]))
    keyed = [record for record in sent if record.key is not None]
    produce(broker, topic, keyed)
    place = kafka.TopicPartition(topic, 0)
    client.delete_records({place: 10})
    assert consumer.beginning_offsets([place]) == {place: 10}
    assert client.describe_log_dirs()
    client.delete_topics([topic])
    if brokers() == 1:
        assert topic not in client.list_topics()
    eventually(lambda: topic not in client.list_topics())  # at any broker


def test_the_cluster_is_described(broker: Broker, client: Any) -> None:
    cluster = client.describe_cluster()
    addresses = [f"{node['host']}:{node['port']}" for node in cluster["brokers"]]
    assert sorted(addresses) == sorted(broker.bootstrap.split(","))


def test_a_topic_is_not_made_twice(client: Any, topic: str) -> None:
    client.create_topics([admin.NewTopic(topic, 1, 1)])
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        client.create_topics([admin.NewTopic(topic, 1, 1)])


@pytest.mark.parametrize("acks", [1, "all"])
def test_requests_to_very_many_partitions_are_stored_once_and_in_order(
    broker: Broker, acks: Any
) -> None:
    """kafka-python sends its batches for all partitions of a broker in one request."""
    partitions = 400
    topic = create_topic(broker.bootstrap, f"wide-{acks}", partitions)
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        acks=acks,
        linger_ms=200,
        enable_idempotence=acks == "all",
    )
    try:
        futures = []
        for number in range(3):
            value = b"%d" % number
            futures += [producer.send(topic, value, partition=n) for n in range(partitions)]
            producer.flush(30)
        offsets = [future.get(30).offset for future in futures]
    finally:
        producer.close()
    assert offsets == [0] * partitions + [1] * partitions + [2] * partitions
    # With acks=1 the records can be read once they are synced, which may be later.
    wanted = len(offsets)
    stored = eventually(
        lambda: len(found := committed_records(broker.bootstrap, topic)) >= wanted and found
    )
    assert stored
    assert Counter(seen.value for seen in stored) == {b"%d" % n: partitions for n in range(3)}
