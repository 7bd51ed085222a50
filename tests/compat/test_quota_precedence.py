"""Which of the eight levels of client quotas counts, as kafka-configs sets and removes them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.security.client_quotas import QuotaKind
from barnabas.testing.broker import Broker
from tests.support.loads.kafka_tools import Jvm, tools

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
USER = ("--entity-type", "users", "--entity-name", "alice")
ANY_USER = ("--entity-type", "users", "--entity-default")
CLIENT = ("--entity-type", "clients", "--entity-name", "app")
ANY_CLIENT = ("--entity-type", "clients", "--entity-default")
LEVELS = [
    (*USER, *CLIENT),
    (*USER, *ANY_CLIENT),
    USER,
    (*ANY_USER, *CLIENT),
    (*ANY_USER, *ANY_CLIENT),
    ANY_USER,
    CLIENT,
    ANY_CLIENT,
]
"""The first that exists counts."""
SETTINGS_RATE = 900_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    rate = {"performance.producer_quota": SETTINGS_RATE}
    with Broker(settings=rate) as started:
        yield started


def rate_of(broker: Broker, user: str, client_id: str) -> float:
    """Return how many bytes a second a client may produce."""
    assert broker._process is not None
    node = broker._process.node
    bucket = node.quotas.of(user, client_id).bucket(QuotaKind.PRODUCE, node.timers.now_ms)
    assert bucket is not None
    return bucket.rate


def alter(jvm: Jvm, entity: tuple[str, ...], *change: str) -> None:
    done = jvm.run("kafka.admin.ConfigCommand", "--alter", *entity, *change)
    assert "Completed updating" in done.output, done.output


def test_eight_levels(jars: str, broker: Broker) -> None:
    with tools(RUN_TOOLS, jars, broker.bootstrap) as jvm:
        for place in reversed(range(len(LEVELS))):  # each counts before those that were there
            alter(jvm, LEVELS[place], "--add-config", f"producer_byte_rate={1000 * (place + 1)}")
            assert rate_of(broker, "alice", "app") == 1000 * (place + 1), LEVELS[place]
        others = {("alice", "x"): 2, ("bob", "app"): 4, ("bob", "x"): 5}
        for (user, client_id), level in others.items():
            assert rate_of(broker, user, client_id) == 1000 * level, (user, client_id)
        for place, entity in enumerate(LEVELS):
            alter(jvm, entity, "--delete-config", "producer_byte_rate")
            left = 1000 * (place + 2) if place + 1 < len(LEVELS) else SETTINGS_RATE
            assert rate_of(broker, "alice", "app") == left, entity
