"""Fixtures: a broker in this process, a console that watches it, topics with records."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.broker import Broker
from tests.support.console.running_console import RunningConsole

PATIENCE_S = 30.0
WATCH_S = 0.5

NewTopicOf = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def watcher(broker: Broker) -> Iterator[Watcher]:
    settings = WatchSettings(properties={"bootstrap.servers": broker.bootstrap}, interval_s=WATCH_S)
    with Watcher(settings) as running:
        running.wait(PATIENCE_S)
        yield running


@pytest.fixture(scope="module")
def console(
    broker: Broker, watcher: Watcher, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningConsole]:
    audit: Path = tmp_path_factory.mktemp("console") / "audit"
    with RunningConsole(watcher, bootstrap=broker.bootstrap, audit=audit) as running:
        yield running


@pytest.fixture(scope="module")
def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


@pytest.fixture
def new_topic(admin: AdminClient) -> NewTopicOf:
    """Creates topics with names of their own."""

    def create(partitions: int = 1, name: str = "", **config: str) -> str:
        wanted = name or f"t-{uuid4().hex}"
        made = NewTopic(wanted, num_partitions=partitions, config=config)
        admin.create_topics([made], request_timeout=PATIENCE_S)[wanted].result()
        return wanted

    return create
