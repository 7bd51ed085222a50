"""Tests confluent-kafka (librdkafka): it reads what it has sent."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol.records import Record
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_choice import brokers

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = pytest.mark.compat

FIRST_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def client(broker: Broker) -> Any:
    return admin.AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def consumer(broker: Broker) -> Iterator[Any]:
    made = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "not used",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "fetch.wait.max.ms": 20,
        }
    )
    yield made
    made.close()


def create(client: Any, topic: str, partitions: int = 1, **config: str) -> None:
    new = admin.NewTopic(topic, partitions, 1, config=config)
    client.create_topics([new])[topic].result(20)


def produce(broker: Broker, topic: str, records: list[Record], **config: object) -> list[Any]:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **config}
    )
    reports: list[Any] = []
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=lambda error, message: reports.append(error or message),
        )
    assert producer.flush(30) == 0
    return reports


def read(consumer: Any, topic: str, offset: int, count: int) -> list[Record]:
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
    found: list[Record] = []

    def enough() -> bool:
        for message in consumer.consume(count - len(found), 1):
            assert message.error() is None, message.error()
            found.append(
                Record(
                    message.offset(),
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                )
            )
        return len(found) >= count

    eventually(enough)
    return found


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back(
    broker: Broker,
    client: Any,
    consumer: Any,
    topic: str,
    sent: list[Record],
    codec: str,
    acks: str,
) -> None:
    create(client, topic)
    reports = produce(broker, topic, sent, **{"compression.type": codec, "acks": acks})
    if acks != "0":
        assert [report.offset() for report in reports] == [record.offset for record in sent]
    assert read(consumer, topic, confluent_kafka.OFFSET_BEGINNING, len(sent)) == sent
    assert read(consumer, topic, 37, len(sent) - 37) == sent[37:]
    asked = confluent_kafka.TopicPartition(topic, 0, sent[20].timestamp - 9)
    (found,) = consumer.offsets_for_times([asked], timeout=20)
    assert found.offset == 20
    assert consumer.get_watermark_offsets(asked, timeout=20) == (0, len(sent))


def test_an_idempotent_producer_has_its_way(
    broker: Broker, client: Any, consumer: Any, topic: str, sent: list[Record]
) -> None:
    create(client, topic)
    reports = produce(broker, topic, sent, **{"enable.idempotence": True, "batch.num.messages": 7})
    assert [report.offset() for report in reports] == [record.offset for record in sent]
    assert read(consumer, topic, 0, len(sent)) == sent


def test_topics_are_made_on_demand(
    broker: Broker, client: Any, consumer: Any, topic: str, sent: list[Record]
) -> None:
    produce(broker, topic, sent[:3])
    assert read(consumer, topic, 0, 3) == sent[:3]
    assert topic in client.list_topics(timeout=20).topics


def test_an_empty_topic_wakes_its_reader(
    broker: Broker, client: Any, consumer: Any, topic: str, sent: list[Record]
) -> None:
    create(client, topic)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    assert consumer.poll(0.1) is None
    produce(broker, topic, sent[:1])
    message = eventually(lambda: consumer.poll(0.1))
    assert message.value() == sent[0].value


def test_the_admin_client_runs_a_topic(
    broker: Broker, client: Any, consumer: Any, topic: str, sent: list[Record]
) -> None:
    create(client, topic, 2, **{"retention.ms": "60000"})
    client.create_partitions([admin.NewPartitions(topic, 3)])[topic].result(20)
    described = client.describe_topics(confluent_kafka.TopicCollection([topic]))[topic].result(20)
    assert [len(p.isr) for p in described.partitions] == [1, 1, 1]

    resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
    shorter = admin.ConfigEntry(
        "retention.ms", "5000", incremental_operation=admin.AlterConfigOpType.SET
    )
    resource.add_incremental_config(shorter)
    client.incremental_alter_configs([resource])[resource].result(20)
    (configs,) = [f.result(20) for f in client.describe_configs([resource]).values()]
    assert configs["retention.ms"].value == "5000"
    assert configs["retention.ms"].source == admin.ConfigSource.DYNAMIC_TOPIC_CONFIG.value

    produce(broker, topic, sent)
    place = confluent_kafka.TopicPartition(topic, 0, 10)
    assert client.delete_records([place])[place].result(20).low_watermark == 10
    latest = client.list_offsets({place: admin.OffsetSpec.earliest()})[place].result(20)
    assert latest.offset == 10
    assert read(consumer, topic, confluent_kafka.OFFSET_BEGINNING, 50) == sent[10:]

    client.delete_topics([topic])[topic].result(20)
    if brokers() == 1:
        assert topic not in client.list_topics(timeout=20).topics
    eventually(lambda: topic not in client.list_topics(timeout=20).topics)  # at any broker


def test_the_cluster_is_described(broker: Broker, client: Any) -> None:
    cluster = client.describe_cluster().result(20)
    addresses = [f"{node.host}:{node.port}" for node in cluster.nodes]
    assert sorted(addresses) == sorted(broker.bootstrap.split(","))
    assert len(cluster.cluster_id) == 22
    assert cluster.controller.id in [node.id for node in cluster.nodes]


def test_refusals_arrive_as_errors(broker: Broker, client: Any, topic: str) -> None:
    create(client, topic)
    with pytest.raises(confluent_kafka.KafkaException, match="TOPIC_ALREADY_EXISTS"):
        create(client, topic)
    with pytest.raises(confluent_kafka.KafkaException, match="retention"):
        create(client, f"{topic}-b", 1, **{"retention.ms": "soon"})
    too_many = len(broker.bootstrap.split(",")) + 2
    with pytest.raises(confluent_kafka.KafkaException, match="INVALID_REPLICATION_FACTOR"):
        client.create_topics([admin.NewTopic(f"{topic}-c", 1, too_many)])[f"{topic}-c"].result(20)


def test_only_the_records_without_a_key_are_named(broker: Broker, client: Any, topic: str) -> None:
    create(client, topic, 1, **{"cleanup.policy": "compact"})
    keyless = range(5, 100, 10)
    records = [Record(n, FIRST_MS, None if n in keyless else b"k", b"%d" % n) for n in range(100)]
    names: dict[int, str] = {}
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 500, "retries": 0}
    )
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            on_delivery=lambda error, message: names.update(
                {int(message.value()): error.name() if error else "delivered"}
            ),
        )
    assert producer.flush(30) == 0
    wrong = {number for number, name in names.items() if name == "INVALID_RECORD"}
    assert wrong == set(keyless)
    assert {names[n] for n in range(100) if n not in wrong} == {"_INVALID_DIFFERENT_RECORD"}


def test_a_broker_config_that_has_no_effect_is_kept(client: Any) -> None:
    kind, name = admin.ConfigResource.Type.BROKER, "sasl.kerberos.min.time.before.relogin"

    def alter(key: str, value: str | None, operation: Any) -> None:
        entry = admin.ConfigEntry(key, value, incremental_operation=operation)
        resource = admin.ConfigResource(kind, "1", incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(20)

    def described() -> Any:
        resource = admin.ConfigResource(kind, "1")
        return client.describe_configs([resource])[resource].result(20)

    set_to, delete = admin.AlterConfigOpType.SET, admin.AlterConfigOpType.DELETE
    alter(name, "58000", set_to)
    entry = described()[name]
    assert (entry.value, entry.source) == ("58000", 2)
    alter(name, None, delete)
    assert name not in described()
    for key, value, code in [
        ("node.id", "2", confluent_kafka.KafkaError.INVALID_REQUEST),
        (name, "soon", confluent_kafka.KafkaError.INVALID_REQUEST),
        ("no.such.config", "2", confluent_kafka.KafkaError.INVALID_CONFIG),
    ]:
        with pytest.raises(confluent_kafka.KafkaException) as caught:
            alter(key, value, set_to)
        assert caught.value.args[0].code() == code
