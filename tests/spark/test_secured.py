"""Tests the Spark source and the exactly-once sink over SASL_SSL, with ACLs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.testing.broker import Broker
from tests.support.security.certificates import Certificates, secure

PASSWORD = "the password of admin"
PARTITIONS, WAIT_S = 3, 60.0

Options = dict[str, str]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Options]:
    """A broker with one listener, SASL_SSL; what Spark's options say of it."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    settings = {
        **secure(certificates, certificates.broker()),
        "listeners.SECURE.protocol": "SASL_SSL",
        "security.authorizer": "acl",
        "security.super_users": "User:admin",
    }
    with Broker(settings=settings, first_admin=("admin", PASSWORD)) as broker:
        yield {
            "kafka.bootstrap.servers": broker.bootstrap,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
            f'required username="admin" password="{PASSWORD}";',
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": certificates.authority,
        }


def client(options: Options) -> dict[str, str]:
    """Return the same for librdkafka."""
    return {
        "bootstrap.servers": options["kafka.bootstrap.servers"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": PASSWORD,
        "ssl.ca.location": options["kafka.ssl.truststore.location"],
    }


def create(options: Options, topic: str) -> str:
    admin = AdminClient(client(options))
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WAIT_S)
    return topic


def committed(options: Options, topic: str, count: int) -> list[int]:
    """Return the numbers in a topic, as a read_committed consumer sees them."""
    consumer = confluent_kafka.Consumer(
        {**client(options), "group.id": f"check-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[int] = []
    while len(found) < count:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"{len(found)} of {count} rows"
        assert message.error() is None, message.error()
        found.append(int(message.value() or b"-1"))
    assert consumer.poll(0.5) is None
    consumer.close()
    return sorted(found)


def test_a_batch_is_written_exactly_once_and_read(
    spark: SparkSession, sink: str, options: Options
) -> None:
    topic = create(options, "batch")
    rows = spark.range(1000).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    rows.write.format(sink).mode("append").options(**options).option("topic", topic).save()
    assert committed(options, topic, 1000) == list(range(1000))
    reader = spark.read.format(sink).options(**options).option("subscribe", topic)
    assert sorted(int(row.value) for row in reader.load().collect()) == list(range(1000))


def test_a_stream_is_written_exactly_once_and_continues(
    spark: SparkSession, sink: str, options: Options, tmp_path: Path
) -> None:
    first, second = create(options, "stream-in"), create(options, "stream-out")
    for start in (0, 500):
        rows = spark.range(start, start + 500).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format(sink).mode("append").options(**options).option("topic", first).save()
        stream = spark.readStream.format(sink).options(**options).option("subscribe", first)
        stream = stream.option("startingOffsets", "earliest")
        writer = stream.load().select("value").writeStream.format(sink).options(**options)
        writer = writer.option("topic", second)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    assert committed(options, second, 1000) == list(range(1000))


def test_a_wrong_password_ends_the_query_with_the_reason(
    spark: SparkSession, sink: str, options: Options
) -> None:
    topic = create(options, "refused")
    login = options["kafka.sasl.jaas.config"].replace(PASSWORD, "wrong")
    wrong = {**options, "kafka.sasl.jaas.config": login}
    rows = spark.range(1).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(PySparkException) as refused:
        rows.write.format(sink).mode("append").options(**wrong).option("topic", topic).save()
    assert "credentials are not valid" in str(refused.value)
    assert PASSWORD not in str(refused.value)
