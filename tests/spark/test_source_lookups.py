"""Tests the driver's requests to a cluster that does not answer, or not yet. No session needed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import FetchError
from barnabas.spark.source import lookups
from barnabas.spark.source.lookups import Cluster, admin_properties
from barnabas.spark.source.source_options import ReadSettings, parse_stream
from barnabas.spark.source.stream_reader import StreamReader
from barnabas.testing.broker import Broker
from barnabas.testing.process import BrokerSubprocess
from tests.support.loads.load import create_topic

PLACE = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        create_topic(started.bootstrap, "t", 1)
        yield started


def settings(bootstrap: str, **options: str) -> ReadSettings:
    names = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "startingOffsets": "earliest"}
    return parse_stream({**names, "fetchOffset.retryIntervalMs": "10", **options})


class FailingClient(AdminClient):  # type: ignore[misc]
    """A client whose next requests fail."""

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self.error = KafkaError._TRANSPORT
        self.failures = 0

    def describe_topics(self, *args: Any, **options: Any) -> Any:
        return self._unless_it_fails(super().describe_topics, *args, **options)

    def list_topics(self, *args: Any, **options: Any) -> Any:
        return self._unless_it_fails(super().list_topics, *args, **options)

    def list_offsets(self, *args: Any, **options: Any) -> Any:
        return self._unless_it_fails(super().list_offsets, *args, **options)

    def _unless_it_fails(self, ask: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise KafkaException(KafkaError(self.error))
        return ask(*args, **options)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> FailingClient:
    made = FailingClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    monkeypatch.setattr(lookups, "AdminClient", lambda properties: made)
    return made


def test_what_passes_by_itself_is_waited_for_as_tasks_do(
    broker: Broker, client: FailingClient, caplog: pytest.LogCaptureFixture
) -> None:
    reader = StreamReader(settings(broker.bootstrap))
    start = reader.initialOffset()
    for error in (KafkaError._TRANSPORT, KafkaError.LEADER_NOT_AVAILABLE):
        client.error, client.failures = error, 20
        assert reader.latestOffset(start, ReadAllAvailable()) == start
    cluster = Cluster(settings(broker.bootstrap))
    client.failures = 20
    assert cluster.latest([PLACE]) == {PLACE: 0}
    assert caplog.text.count("it is asked again for up to 120 s") == 3


def test_leaders_are_looked_up_again_after_a_restart(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client keeps its cached leader epoch, and repeats the request with it."""
    made: list[FailingClient] = []

    def make(properties: dict[str, Any]) -> FailingClient:
        client = FailingClient(properties)
        client.error = KafkaError.FENCED_LEADER_EPOCH
        client.failures = 0 if made else 10**6
        made.append(client)
        return client

    monkeypatch.setattr(lookups, "AdminClient", make)
    assert Cluster(settings(broker.bootstrap)).latest([PLACE]) == {PLACE: 0}


def test_patience_ends_with_a_sentence(broker: Broker, client: FailingClient) -> None:
    impatient = settings(broker.bootstrap, **{"kafkaConsumer.pollTimeoutMs": "50"})
    client.failures = 10**6
    with pytest.raises(FetchError, match=r"could not tell its offsets for 0 s.*pollTimeoutMs"):
        Cluster(impatient).latest([PLACE])


def test_what_does_not_pass_is_tried_as_often_as_the_options_say(
    broker: Broker, client: FailingClient
) -> None:
    client.error, client.failures = KafkaError.TOPIC_AUTHORIZATION_FAILED, 10
    with pytest.raises(
        FetchError, match=r"could not list its topics: .*TOPIC_AUTHORIZATION_FAILED"
    ):
        Cluster(settings(broker.bootstrap, **{"fetchOffset.numRetries": "2"})).topics(
            settings(broker.bootstrap).subscription
        )
    assert client.failures == 7


def test_a_lone_broker_may_restart(tmp_path: Path) -> None:
    with BrokerSubprocess(tmp_path / "data") as broker, ThreadPoolExecutor(1) as pool:
        create_topic(broker.bootstrap, "t", 1)
        reader = StreamReader(settings(broker.bootstrap))
        start = reader.initialOffset()
        broker.kill()
        answer = pool.submit(reader.latestOffset, start, ReadAllAvailable())
        broker.start()
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("t", b"value", partition=0)
        assert producer.flush(60) == 0
        later = reader.latestOffset(answer.result(60), ReadAllAvailable())
        assert later["t"] == {"0": 1}


def test_a_pause_before_the_next_connection_may_be_chosen() -> None:
    assert admin_properties({})["reconnect.backoff.max.ms"] == lookups.RECONNECT_MS_MAX
    chosen = {"reconnect.backoff.ms": "5000"}
    assert admin_properties(chosen) == {"log_level": 0, **chosen}
