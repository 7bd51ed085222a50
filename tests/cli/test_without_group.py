"""Tests that reading without a group leaves nothing on a broker."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.client import Consumer, Producer
from barnabas.testing.broker import Broker

pytestmark = pytest.mark.compat

PATIENCE_S = 60.0
LOOKUP_S = 1.0
"""librdkafka looks for a coordinator every half second."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A new broker, which no group has ever used."""
    with Broker() as made, Producer(made.bootstrap) as producer:
        for number in range(3):
            producer.send("orders", f"order {number}")
        producer.flush()
        yield made


def topics(broker: Broker) -> set[str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    return set(admin.list_topics(timeout=PATIENCE_S).topics)


@pytest.mark.parametrize("words", [("--until", "end"), ("--from", "-1", "-n", "1")])
def test_consume_makes_no_topic(broker: Broker, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "barnabas.cli", "consume", "orders", *words]
    done = subprocess.run(
        [*command, "--bootstrap", broker.bootstrap],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.splitlines()[-1] == b"order 2"
    assert topics(broker) == {"orders"}


def test_a_client_without_a_group_makes_no_topic(broker: Broker) -> None:
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign(consumer.partitions("orders"))
        read = [consumer.poll(PATIENCE_S) for _ in range(3)]
        assert all(message is not None for message in read)
        assert consumer.poll(2 * LOOKUP_S) is None, "long enough for it to look for a coordinator"
    assert topics(broker) == {"orders"}
