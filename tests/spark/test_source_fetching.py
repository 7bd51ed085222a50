"""Tests a split, fetched from a broker that dies, restarts, or lost the topic. No Spark needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.model.ids import TopicPartition
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.records import Record, build
from barnabas.spark.query_errors import DataLossError, FetchError
from barnabas.spark.source import librdkafka_source as librdkafka
from barnabas.spark.source import split_fetching as fetching
from barnabas.spark.source.librdkafka_source import consumed
from barnabas.spark.source.record_decoding import checked_batches
from barnabas.spark.source.source_options import ReadSettings, parse_batch
from barnabas.spark.source.split_fetching import fetched, record_bytes
from barnabas.spark.source.split_planning import OffsetRange
from barnabas.testing.process import BrokerSubprocess
from barnabas.wire.pipeline import ReadingPipeline

COUNT = 200
PLACE = TopicPartition("t", 0)
ALL = OffsetRange(PLACE, 0, COUNT)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerSubprocess]:
    """A broker in a separate process, with a topic of many small batches."""
    with BrokerSubprocess(tmp_path / "data") as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", num_partitions=1)])["t"].result()
        small = {"batch.num.messages": 5, "linger.ms": 50, "log_level": 0}
        producer = Producer({"bootstrap.servers": started.bootstrap, **small})
        for number in range(COUNT):
            producer.produce("t", b"%d" % number, partition=0)
        producer.flush()
        yield started


def settings(broker: BrokerSubprocess, **options: str) -> ReadSettings:
    small = {"kafka.max.partition.fetch.bytes": "500"}
    base = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
    return parse_batch({**base, **small, **options})


def values(rows: Iterator[object]) -> list[bytes]:
    return [value for batch in rows for value in batch.column("value").to_pylist()]  # type: ignore[attr-defined]


def test_a_broker_that_dies_in_the_middle_costs_no_record_and_doubles_none(
    broker: BrokerSubprocess,
) -> None:
    rows = fetched(ALL, settings(broker))
    found = [value for _ in range(3) for value in values(iter([next(rows)]))]
    assert 0 < len(found) < COUNT
    broker.kill()
    broker.start()
    assert [*found, *values(rows)] == [b"%d" % number for number in range(COUNT)]


def test_a_kept_connection_that_broke_is_opened_again(broker: BrokerSubprocess) -> None:
    assert len(values(fetched(ALL, settings(broker)))) == COUNT
    broker.restart()
    assert len(values(fetched(ALL, settings(broker)))) == COUNT


def test_a_small_split_takes_one_request(
    broker: BrokerSubprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"batch.num.messages": 20, "log_level": 0}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **small})
    for _ in range(500):
        producer.produce("t", b"v" * 1024, partition=0)
    producer.flush()
    asked: list[int] = []
    send = ReadingPipeline.send

    def watched(link: ReadingPipeline, request: FetchRequest) -> None:
        asked.append(request.max_bytes)
        send(link, request)

    monkeypatch.setattr(ReadingPipeline, "send", watched)
    plain = parse_batch({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"})
    assert len(values(fetched(OffsetRange(PLACE, COUNT, COUNT + 250), plain))) == 250
    assert asked == [fetching.EDGE_BYTES + 250 * fetching.RECORD_BYTES]


def test_librdkafka_is_asked_for_what_the_split_lacks(
    broker: BrokerSubprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call for more records than there are waits until its timeout."""
    asked: list[int] = []

    class WatchedConsumer(Consumer):  # type: ignore[misc]
        def consume(self, count: int, timeout: float) -> list[Message]:
            got: list[Message] = super().consume(count, timeout)
            asked.append(count)
            return got

    monkeypatch.setattr(librdkafka, "Consumer", WatchedConsumer)
    watched = settings(broker, **{"kafka.client.id": "watched"})
    for start in range(0, COUNT, 50):
        found = values(consumed(OffsetRange(PLACE, start, start + 50), watched))
        assert found == [b"%d" % number for number in range(start, start + 50)]
    assert max(asked) == 50


def test_what_a_record_takes_is_learned_from_batches() -> None:
    records = [Record(number, 0, None, b"v" * 50) for number in range(100)]
    packed = memoryview(bytes(build(records)))
    assert len(packed) <= 100 * record_bytes(checked_batches(packed)) < len(packed) + 200


def test_patience_ends_with_a_sentence(broker: BrokerSubprocess) -> None:
    broker.kill()
    impatient = settings(broker, **{"kafkaConsumer.pollTimeoutMs": "300"})
    with pytest.raises(FetchError, match=r"t-0 could not be read at offset 0.*pollTimeoutMs"):
        values(fetched(ALL, impatient))


def test_a_deleted_topic_is_data_loss(
    broker: BrokerSubprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "GONE_PATIENCE_S", 0.3)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.delete_topics(["t"])["t"].result()
    with pytest.raises(DataLossError, match="there is no topic t: offsets 0 to 199 of t-0"):
        values(fetched(ALL, settings(broker)))
    assert values(fetched(ALL, settings(broker, failOnDataLoss="false"))) == []


def test_an_end_that_never_comes_is_data_loss(broker: BrokerSubprocess) -> None:
    beyond = OffsetRange(PLACE, COUNT - 10, COUNT + 10)
    impatient = {"kafkaConsumer.pollTimeoutMs": "300", "kafka.fetch.wait.max.ms": "50"}
    with pytest.raises(DataLossError, match=f"the log ends at offset {COUNT}"):
        values(fetched(beyond, settings(broker, **impatient)))
    lenient = settings(broker, **impatient, failOnDataLoss="false")
    assert len(values(fetched(beyond, lenient))) == 10
