"""Tests `kafka.request.timeout.ms`: how long reads and writes wait for a broker."""

import socket
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from barnabas.model.ids import TopicPartition
from barnabas.spark.connections import connections
from barnabas.spark.query_errors import FetchError
from barnabas.spark.sink.sink_options import parse_options
from barnabas.spark.sink.writers import _cluster
from barnabas.spark.source.lookups import Cluster as ReadCluster
from barnabas.spark.source.source_options import parse_batch
from barnabas.wire.wire_failures import LinkError

# Without the setting, each of these waits for 15 or 30 seconds.
pytestmark = pytest.mark.timeout(12)


@pytest.fixture
def silent() -> Iterator[dict[str, str]]:
    """Options for a broker that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        yield {"kafka.bootstrap.servers": address, "kafka.request.timeout.ms": "100"}


def test_records(silent: dict[str, str]) -> None:
    settings = parse_batch({**silent, "subscribe": "t"})
    with pytest.raises(LinkError):
        connections(settings.client).to_leader(TopicPartition("t", 0))


def test_look_ups(silent: dict[str, str]) -> None:
    once = {"fetchOffset.numRetries": "0", "kafkaConsumer.pollTimeoutMs": "100"}
    settings = parse_batch({**silent, **once, "subscribe": "t"})
    with pytest.raises(FetchError, match="could not list its topics"):
        ReadCluster(settings).topics(settings.subscription)


def test_writes(silent: dict[str, str]) -> None:
    with pytest.raises(LinkError, match="No broker answered"):
        _cluster(parse_options(silent)).producer_id(0.0)
