"""Fixtures of all client tests: a broker, records to send, and Apache Kafka's jars."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from barnabas.protocol.records import Record
from barnabas.testing.broker import Broker
from barnabas.testing.cluster_processes import ClusterProcesses
from tests.support.clusters.cluster_choice import broker_or_cluster
from tests.support.loads.kafka_tools import MissingToolError, compiled, fetch_jars
from tests.support.loads.load import create_topic

JAVA = Path(__file__).parent / "java"
JARS = Path(__file__).parents[2] / "build" / "java"
CLASSES = Path(__file__).parents[2] / "build" / "classes"
FIRST_MS = 1_700_000_000_000
LARGE_BYTES = 20_000
GROUPS = {
    "groups.initial_rebalance_delay": "0s",
    "groups.consumer_heartbeat_interval": "300ms",
    "groups.min_session_timeout": "1s",
    "groups.consumer_session_timeout": "4s",
    "share.heartbeat_interval": "300ms",
}
_numbers = count()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker | ClusterProcesses]:
    """One broker for all clients, or a cluster; each test has its own topics."""
    with broker_or_cluster() as running:
        yield running


@pytest.fixture
def topic() -> str:
    """Return a name that no other test uses."""
    return f"compat-{next(_numbers)}"


@pytest.fixture(scope="session")
def sent() -> list[Record]:
    """Records of every shape, ten milliseconds apart, as they should come back."""
    shapes: list[tuple[bytes | None, bytes | None]] = [
        (None, b"no key"),
        (b"k", b"value"),
        (b"gone", None),
        (b"", b""),
        (b"large", bytes(range(256)) * (LARGE_BYTES // 256)),
    ]
    headers = ((), (("one", b"1"),), (("", b""), ("one", b"x"), ("one", b"y")))
    return [
        Record(n, FIRST_MS + 10 * n, *shapes[n % len(shapes)], headers[n % len(headers)])
        for n in range(60)
    ]


@pytest.fixture(scope="session")
def jars() -> str:
    """Download Apache Kafka's jars once, or say why the tests cannot run."""
    try:
        return fetch_jars(JAVA / "pom.xml", JARS)
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def members_jvm(jars: str) -> list[str]:
    """Return the command that runs members on Apache Kafka's own client."""
    return compiled(JAVA / "Members.java", jars, CLASSES)


@pytest.fixture(scope="session")
def group_bootstrap() -> Iterator[str]:
    """The brokers of group tests: our own without rebalance delay, or a configured one.

    BARNABAS_TEST_BOOTSTRAP names any Kafka; give it the same settings as `GROUPS`.
    """
    named = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if named:
        yield named
        return
    with broker_or_cluster(GROUPS) as running:
        yield running.bootstrap


@pytest.fixture
def group() -> str:
    """Return the name of a group that no other test uses, on any broker."""
    return f"group-{uuid4().hex[:12]}"


@pytest.fixture
def python_consumer(group_bootstrap: str, group: str) -> dict[str, Any]:
    """Return settings of a consumer that kafka-python and aiokafka name alike."""
    return {
        "bootstrap_servers": group_bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 20,
        "heartbeat_interval_ms": 300,
        "session_timeout_ms": 6000,
    }


@pytest.fixture
def numbered(group_bootstrap: str, group: str) -> str:
    """Return a topic of two partitions with twenty records each, ten milliseconds apart."""
    topic = f"numbered-{group}"
    create_topic(group_bootstrap, topic, 2)
    producer = Producer({"bootstrap.servers": group_bootstrap, "linger.ms": 50})
    for partition in range(2):
        for number in range(20):
            at = FIRST_MS + 10 * number
            producer.produce(topic, str(number), partition=partition, timestamp=at)
    assert producer.flush(30) == 0
    return topic
