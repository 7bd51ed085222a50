"""A split, fetched from a broker that dies, comes back, or has lost the topic. No Spark needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.model.ids import TopicPartition
from barnabas.spark import fetching
from barnabas.spark.failures import DataLossError, FetchError
from barnabas.spark.fetching import fetched
from barnabas.spark.options import ReadSettings, parse_batch
from barnabas.spark.planning import OffsetRange
from barnabas.testing.process import BrokerSubprocess

COUNT = 200
PLACE = TopicPartition("t", 0)
ALL = OffsetRange(PLACE, 0, COUNT)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerSubprocess]:
    """A broker in a process of its own, with a topic of many small batches."""
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
    with pytest.raises(DataLossError, match=f"it ends at offset {COUNT}"):
        values(fetched(beyond, settings(broker, **impatient)))
    lenient = settings(broker, **impatient, failOnDataLoss="false")
    assert len(values(fetched(beyond, lenient))) == 10
