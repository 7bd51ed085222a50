"""Tests spark.read.format("barnabas") against a real broker."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from barnabas.model.ids import TopicPartition
from barnabas.spark import register
from barnabas.spark.source.librdkafka_source import consumed
from barnabas.spark.source.source_options import ReadSettings, parse_batch
from barnabas.spark.source.split_planning import OffsetRange
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_MS = 1_700_000_000_000

MakeTopic: TypeAlias = Callable[..., str]
Produce: TypeAlias = Callable[..., None]
Read: TypeAlias = Callable[..., DataFrame]


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


@pytest.fixture
def topic(admin: AdminClient) -> MakeTopic:
    """Creates a topic with a number of partitions."""

    def create(partitions: int = 2, **config: str) -> str:
        name = f"t-{uuid4().hex[:12]}"
        wanted = NewTopic(name, num_partitions=partitions, config=config)
        admin.create_topics([wanted])[name].result()
        return name

    return create


@pytest.fixture
def produce(broker: Broker) -> Produce:
    """Writes a number of records to a partition, a second apart."""

    def write(
        topic: str, partition: int, count: int, first: int = 0, **properties: str | int
    ) -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **properties})
        for number in range(first, first + count):
            producer.produce(
                topic,
                b"v%d" % number,
                b"k%d" % number if number % 3 else None,
                partition=partition,
                timestamp=FIRST_MS + number * 1000,
                headers=[("n", b"%d" % number)] if number % 2 else None,
            )
        producer.flush()

    return write


@pytest.fixture
def read(spark: SparkSession, broker: Broker) -> Read:
    """Reads with the given options."""

    def load(**options: str) -> DataFrame:
        names = {"kafka.bootstrap.servers": broker.bootstrap, **options}
        return spark.read.format("barnabas").options(**names).load()

    return load


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    """Return partition and offset of each row, in order."""
    return sorted(
        (row.partition, row.offset) for row in frame.select("partition", "offset").collect()
    )


def test_it_is_found_without_being_registered(
    spark: SparkSession, read: Read, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(1)
    produce(name, 0, 3)
    assert read(subscribe=name).count() == 3
    register(spark)
    assert read(subscribe=name).count() == 3


def test_rows_have_the_columns_of_sparks_own_connector(
    read: Read, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(2)
    for number, codec in enumerate(CODECS):
        produce(name, 1, 40, number * 40, **{"compression.type": codec})
    found = read(subscribe=name, includeHeaders="true").orderBy("offset").collect()
    assert len(found) == 200
    for number, row in enumerate(found):
        assert row.value == b"v%d" % number
        assert row.key == (b"k%d" % number if number % 3 else None)
        assert (row.topic, row.partition, row.offset, row.timestampType) == (name, 1, number, 0)
        time = datetime.fromtimestamp((FIRST_MS + number * 1000) / 1000, UTC)
        assert row.timestamp.astimezone(UTC) == time
        headers = [(each.key, each.value) for each in row.headers or []]
        assert headers == ([("n", b"%d" % number)] if number % 2 else [])
        assert (row.headers is None) == (not number % 2)


def test_limits_by_offset_and_by_time(read: Read, topic: MakeTopic, produce: Produce) -> None:
    name = topic(2)
    produce(name, 0, 20)
    produce(name, 1, 10, 20)

    def limited(**options: str) -> list[tuple[int, int]]:
        return offsets(read(subscribe=name, **options))

    everything = [(0, n) for n in range(20)] + [(1, n) for n in range(10)]
    ends = json.dumps({name: {"0": 12, "1": -1}})
    starts = json.dumps({name: {"0": 10, "1": -2}})
    assert limited(startingOffsets=starts, endingOffsets=ends) == [
        (0, 10),
        (0, 11),
        *everything[20:],
    ]
    times = json.dumps({name: {"0": FIRST_MS + 18_000, "1": FIRST_MS + 25_000}})
    from_times = [(0, 18), (0, 19)] + [(1, n) for n in range(5, 10)]
    assert limited(startingOffsetsByTimestamp=times) == from_times
    upto_times = [(0, n) for n in range(18)] + [(1, n) for n in range(5)]
    assert limited(endingOffsetsByTimestamp=times) == upto_times
    assert limited(endingTimestamp=str(FIRST_MS + 1000)) == [(0, 0)]
    young = str(FIRST_MS + 22_000)
    late = limited(startingTimestamp=young, startingOffsetsByTimestampStrategy="latest")
    assert late == [(1, n) for n in range(2, 10)]
    with pytest.raises(Exception, match="has no record that young"):
        limited(startingTimestamp=young)


def test_what_is_read_can_be_named_in_three_ways(
    read: Read, topic: MakeTopic, produce: Produce
) -> None:
    one, two = topic(2), topic(1)
    for name in (one, two):
        produce(name, 0, 2)
    produce(one, 1, 1)
    assert read(subscribe=f"{one},{two}").count() == 5
    assert read(subscribePattern=f"{one[:-1]}.|{two}").count() == 5
    assert offsets(read(assign=json.dumps({one: [1]}))) == [(1, 0)]


def test_partitions_are_cut_into_as_many_tasks_as_asked_for(
    read: Read, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(2)
    produce(name, 0, 90)
    produce(name, 1, 10)
    frame = read(subscribe=name, minPartitions="5")
    assert frame.rdd.getNumPartitions() >= 5
    assert len(set(offsets(frame))) == 100
    assert read(subscribe=name, maxRecordsPerPartition="10").rdd.getNumPartitions() == 10
    assert read(subscribe=name).rdd.getNumPartitions() == 2
    gathered = read(subscribe=name, maxPartitions="1")
    assert gathered.rdd.getNumPartitions() == 1
    assert len(set(offsets(gathered))) == 100


def test_nothing_there_gives_no_rows(read: Read, topic: MakeTopic) -> None:
    assert read(subscribe=topic(2)).collect() == []


@pytest.mark.parametrize("way", ["wire", "librdkafka"])
def test_transactions(broker: Broker, topic: MakeTopic, produce: Produce, way: str) -> None:
    """Both ways to fetch give the same; this test does not use Spark, to be quick."""
    name = topic(1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"x-{name}"})
    producer.init_transactions()
    for outcome in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(name, outcome.__name__.encode(), partition=0)
        producer.flush()
        outcome()
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush()

    def values(level: str, end: int) -> list[bytes]:
        settings = parse_batch(
            {
                "kafka.bootstrap.servers": broker.bootstrap,
                "subscribe": name,
                "kafka.isolation.level": level,
            }
        )
        batches = fetch(way, OffsetRange(TopicPartition(name, 0), 0, end), settings)
        return [value.as_py() for batch in batches for value in batch.column("value")]

    assert values("read_committed", 4) == [b"commit_transaction"]
    assert values("read_uncommitted", 5) == [b"commit_transaction", b"abort_transaction", b"open"]
    producer.abort_transaction()


def fetch(way: str, split: OffsetRange, settings: ReadSettings) -> Iterator[Any]:
    from barnabas.spark.source.split_fetching import fetched

    return (fetched if way == "wire" else consumed)(split, settings)


def test_a_batch_of_read_committed_ends_where_transactions_are_open(
    broker: Broker, read: Read, topic: MakeTopic
) -> None:
    name = topic(1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"x-{name}"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush()
    committed = {"kafka.isolation.level": "read_committed"}
    assert read(subscribe=name, **committed).count() == 0
    assert read(subscribe=name).count() == 1
    producer.commit_transaction()
    assert read(subscribe=name, **committed).count() == 1


def test_both_ways_to_fetch_give_the_same(
    broker: Broker, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(1)
    produce(name, 0, 500, **{"compression.type": "lz4", "batch.num.messages": 37})
    settings = parse_batch(
        {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": name,
            "includeHeaders": "true",
        }
    )
    split = OffsetRange(TopicPartition(name, 0), 45, 433)
    ours, theirs = (
        [row for batch in fetch(way, split, settings) for row in batch.to_pylist()]
        for way in ("wire", "librdkafka")
    )
    assert [row["offset"] for row in ours] == list(range(45, 433))
    assert ours == theirs


def test_records_larger_than_a_fetch(broker: Broker, read: Read, topic: MakeTopic) -> None:
    name = topic(1, **{"max.message.bytes": "9000000"})
    large = os.urandom(6_000_000)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 9_000_000})
    for _ in range(3):
        producer.produce(name, large)
        producer.flush()
    small = {"kafka.max.partition.fetch.bytes": "1000"}
    assert [row.value == large for row in read(subscribe=name, **small).collect()] == [True] * 3


def test_broker_timestamps_are_distinguished(
    read: Read, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(1, **{"message.timestamp.type": "LogAppendTime"})
    produce(name, 0, 2)
    found = read(subscribe=name).collect()
    assert [row.timestampType for row in found] == [1, 1]
    assert found[0].timestamp.year >= 2026


def test_deleted_records_stop_a_read_or_are_passed_over(
    admin: AdminClient, read: Read, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(1)
    produce(name, 0, 10)
    futures = admin.delete_records([ClientPartition(name, 0, 6)])
    for future in futures.values():
        future.result()
    starts = json.dumps({name: {"0": 2}})
    with pytest.raises(Exception, match=r"-0: offsets 2 to 5 \(4 offsets\) were deleted"):
        read(subscribe=name, startingOffsets=starts).count()
    lenient = read(subscribe=name, startingOffsets=starts, failOnDataLoss="false")
    assert offsets(lenient) == [(0, n) for n in range(6, 10)]
    ends = json.dumps({name: {"0": 12}})
    with pytest.raises(Exception, match="the log ends at offset 10"):
        read(subscribe=name, endingOffsets=ends).count()
    assert read(subscribe=name, endingOffsets=ends, failOnDataLoss="false").count() == 4


@pytest.mark.parametrize("way", ["wire", "librdkafka"])
def test_records_deleted_after_planning(
    broker: Broker, admin: AdminClient, topic: MakeTopic, produce: Produce, way: str
) -> None:
    name = topic(1)
    produce(name, 0, 10)
    for future in admin.delete_records([ClientPartition(name, 0, 6)]).values():
        future.result()
    split = OffsetRange(TopicPartition(name, 0), 2, 9)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": name}
    with pytest.raises(Exception, match=r"-0: offsets 2 to 5 \(4 offsets\)"):
        list(fetch(way, split, parse_batch(options)))
    lenient = fetch(way, split, parse_batch({**options, "failOnDataLoss": "false"}))
    assert [n for batch in lenient for n in batch.column("offset").to_pylist()] == [6, 7, 8]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"subscribe": "nowhere"}, "There is no topic or partition nowhere; create it first"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": "t", "kafka.no.such.thing": "1"}, "A kafka.* option is invalid"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(
    read: Read, options: dict[str, str], remedy: str
) -> None:
    with pytest.raises(Exception, match=remedy):
        read(**options).count()


def test_spark_counts_rows_and_bytes_of_a_scan(
    spark: SparkSession, read: Read, topic: MakeTopic, produce: Produce
) -> None:
    """The metrics that docs/spark.md names."""
    name = topic(1)
    produce(name, 0, 20)
    assert len(read(subscribe=name).collect()) == 20
    found = eventually(lambda: metrics_of_last_scan(spark))
    assert found["number of output rows"] == "20"
    assert found["data returned from Python workers"]


def metrics_of_last_scan(spark: SparkSession) -> dict[str, str]:
    """Return what Spark's UI shows of the scan of the last query; nothing until it has ended."""
    session: Any = spark
    store = session._jsparkSession.sharedState().statusStore()
    number = store.executionsList().last().executionId()
    values = store.executionMetrics(number)
    nodes = store.planGraph(number).allNodes()
    scans = [node for node in map(nodes.apply, range(nodes.size())) if "Scan" in node.name()]
    metrics = [
        each for node in scans for each in map(node.metrics().apply, range(node.metrics().size()))
    ]
    shown = {each.name(): values.get(each.accumulatorId()) for each in metrics}
    return {each: value.get() for each, value in shown.items() if value.isDefined()}


def test_columns_are_those_that_a_topic_has(
    spark: SparkSession, broker: Broker, topic: MakeTopic
) -> None:
    frame = spark.read.format("barnabas").schema("id int").option("subscribe", topic())
    with pytest.raises(Exception, match="A topic has no column id; it has key, value"):
        frame.option("kafka.bootstrap.servers", broker.bootstrap).load().count()


def test_an_abandoned_read_does_not_confuse_the_next(
    read: Read, topic: MakeTopic, produce: Produce
) -> None:
    name = topic(1)
    produce(name, 0, 1000, **{"batch.num.messages": 10})
    small = {"kafka.max.partition.fetch.bytes": "1000"}
    for _ in range(2):
        assert len(read(subscribe=name, **small).limit(3).collect()) == 3
        assert read(subscribe=name, **small).count() == 1000
