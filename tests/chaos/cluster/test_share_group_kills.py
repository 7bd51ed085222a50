"""Tests a share group of real clients while the leader of its partition dies: nothing is lost."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer, ShareConsumer

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.loads.load import create_topic

pytestmark = pytest.mark.chaos

TOPIC, GROUP = "jobs", "workers"
RECORDS = 3_000
MEMBERS = 3
PATIENCE_S = 90.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path, settings={"share.heartbeat_interval": "300ms"}) as running:
        yield running


class Worker(threading.Thread):
    """A member that accepts what it gets, until it is told to stop."""

    def __init__(self, bootstrap: str, found: Counter[int], stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._consumer = ShareConsumer(
            {"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0}
        )
        self._consumer.subscribe([TOPIC])
        self._found = found
        self._stopping = stop

    def run(self) -> None:
        while not self._stopping.is_set():
            with suppress(KafkaException):  # a broker that is gone; the client tries again
                self._found.update(int(each.value()) for each in self._consumer.poll(0.2))
        self._consumer.close()


def test_a_leader_dies_and_every_record_is_handled(cluster: ClusterProcesses) -> None:
    create_topic(cluster.bootstrap, TOPIC, 2)
    found: Counter[int] = Counter()
    stop = threading.Event()
    workers = [Worker(cluster.bootstrap, found, stop) for _ in range(MEMBERS)]
    for worker in workers:
        worker.start()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    try:
        # The group begins with the first record after its first fetch from each partition.
        def all_have_begun() -> bool:
            for partition in range(2):
                producer.produce(TOPIC, str(-1 - partition), partition=partition)
            producer.flush(PATIENCE_S)
            return {-1, -2} <= found.keys()

        eventually(all_have_begun, PATIENCE_S)
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number))
            if number == RECORDS // 2:
                producer.flush(PATIENCE_S)
                cluster.nodes[cluster.leader_of(TOPIC, 0)].kill()
        assert producer.flush(PATIENCE_S) == 0
        eventually(lambda: set(range(RECORDS)) <= found.keys(), PATIENCE_S)
    finally:
        stop.set()
        for worker in workers:
            worker.join(PATIENCE_S)
    again = sum(count - 1 for number, count in found.items() if number >= 0)
    assert again <= 2_000, "more came again than members can have held"
