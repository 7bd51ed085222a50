"""A broker that lacks a listener: what clients of that listener see of the partitions it leads."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.broker import Broker
from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually

pytestmark = [pytest.mark.compat, pytest.mark.timeout(200)]

PATIENCE_S = 60.0
LACKING = 3


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    """Three brokers with the listener MAIN; the last one has no listener EXTRA."""
    voters = ",".join(f"{number}@127.0.0.1:{free_port()}" for number in (1, 2, 3))
    made = []
    for number in (1, 2, 3):
        settings: dict[str, object] = {
            "listeners.MAIN.listen": "127.0.0.1:0",
            "broker.id": number,
            "cluster.voters": voters,
            "cluster.broker_session_timeout": "9s",
        }
        if number != LACKING:
            settings["listeners.EXTRA.listen"] = "127.0.0.1:0"
        made.append(Broker(tmp_path / str(number), settings=settings))
    with ThreadPoolExecutor(3) as threads:
        try:
            list(threads.map(Broker.start, made))
            yield made
        finally:
            list(threads.map(Broker.stop, made))


def at(broker: Broker, listener: str) -> dict[str, object]:
    return {"bootstrap.servers": "{}:{}".format(*broker.listeners[listener]), "log_level": 0}


def test_its_partitions_are_not_reachable_and_others_are(brokers: list[Broker]) -> None:
    admin = AdminClient(at(brokers[0], "MAIN"))
    topic = NewTopic("placed", 3, replica_assignment=[[1], [2], [LACKING]])
    admin.create_topics([topic])["placed"].result(PATIENCE_S)
    extra = AdminClient(at(brokers[0], "EXTRA"))

    def leaders() -> dict[int, tuple[int, int | None]]:
        partitions = extra.list_topics("placed", timeout=PATIENCE_S).topics["placed"].partitions
        return {
            number: (found.leader, found.error.code() if found.error else None)
            for number, found in partitions.items()
        }

    expected = {0: (1, None), 1: (2, None), 2: (-1, KafkaError.LISTENER_NOT_FOUND)}
    eventually(lambda: leaders() == expected, PATIENCE_S)
    told: list[KafkaError | None] = []
    producer = Producer({**at(brokers[0], "EXTRA"), "message.timeout.ms": 5_000})
    for partition in (0, 1):
        producer.produce(
            "placed", b"x", partition=partition, on_delivery=lambda e, _: told.append(e)
        )
    producer.flush(PATIENCE_S)
    assert told == [None, None]
    known = extra.list_topics(timeout=PATIENCE_S).brokers
    assert set(known) == {1, 2}
