"""Tests the console while its broker is away: lists stay, a tail pauses, changes say why not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from tests.support.console.running_console import PATIENCE_S, Event, RunningConsole

WATCH_S = 0.5
TOPIC = "orders"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerSubprocess]:
    with BrokerSubprocess(tmp_path / "data") as running:
        yield running


@pytest.fixture
def console(broker: BrokerSubprocess) -> Iterator[RunningConsole]:
    properties = {"bootstrap.servers": broker.bootstrap}
    settings = WatchSettings(properties=properties, interval_s=WATCH_S, answer_timeout_s=2.0)
    with Watcher(settings) as watcher:
        watcher.wait(PATIENCE_S)
        with RunningConsole(watcher, bootstrap=broker.bootstrap) as running:
            yield running


def until(events: Iterator[Event], name: str) -> Event:
    """Return the next event of a name."""
    return next(event for event in events if event.name == name)


def send(broker: BrokerSubprocess, value: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(TOPIC, value)
    assert producer.flush(PATIENCE_S) == 0


def test_a_tail_pauses_and_goes_on_and_lists_stay(
    console: RunningConsole, broker: BrokerSubprocess
) -> None:
    console.post("/api/topics", {"name": TOPIC, "partitions": 1})
    eventually(lambda: console.get("/api/topics")["total"] == 1, PATIENCE_S)
    with console.events("/api/messages/tail", topic=TOPIC) as events:
        send(broker, "before")
        assert until(events, "record")["value"]["text"] == "before"
        broker.kill()
        assert until(events, "paused")["reason"]
        eventually(
            lambda: console.get("/api/overview")["health"]["verdict"] == "unavailable", PATIENCE_S
        )
        assert console.get("/api/topics")["total"] == 1
        assert console.get("/api/messages", 502, topic=TOPIC)["code"] == "no_broker"
        found = console.post("/api/topics", {"name": "other", "partitions": 1}, 502)
        assert found["code"] == "no_broker"
        broker.start()
        until(events, "resumed")
        send(broker, "after")
        assert until(events, "record")["value"]["text"] == "after"
    eventually(lambda: console.get("/api/overview")["health"]["verdict"] == "healthy", PATIENCE_S)
