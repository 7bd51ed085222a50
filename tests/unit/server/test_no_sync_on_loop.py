"""Tests that no sync runs on the event loop while clients are served, for any request or chore."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.handlers.admin.delete_topics import DECIDED_AN_EVENT
from barnabas.node.cluster.local_topics import DISCARDED_AT_ONCE
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="paths are read from /proc")

LOOP_THREAD = "barnabas"
PARTITIONS = 100
TOPICS = 100
SETTINGS = {
    "storage.retention_check_interval": "100ms",
    "storage.compaction_check_interval": "100ms",
    "cluster.snapshot_after_records": 60,
}


class Syncs:
    """The synced folders and files, and their threads."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def watched(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
            self.made.append((threading.current_thread().name, path))
            call(descriptor)

        return sync

    def on_loop(self) -> list[str]:
        return [path for thread, path in self.made if thread == LOOP_THREAD]

    def under(self, folder: Path) -> int:
        return sum(1 for _, path in self.made if path.startswith(f"{folder.resolve()}/"))

    def of(self, folder: Path) -> int:
        return Counter(path for _, path in self.made)[str(folder.resolve())]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    found = Syncs()
    monkeypatch.setattr(os, "fsync", found.watched(os.fsync))
    monkeypatch.setattr(os, "fdatasync", found.watched(os.fdatasync))
    return found


@pytest.fixture
def broker(syncs: Syncs) -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as broker:
        syncs.made.clear()  # no client is served during a start
        yield broker


def create(admin: AdminClient, *topics: NewTopic) -> None:
    for made in admin.create_topics(list(topics)).values():
        made.result()


def fill(broker: Broker, topic: str, partitions: int, count: int = 1) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for _ in range(count):
        for partition in range(partitions):
            producer.produce(topic, bytes(300), b"key", partition, timestamp=1)
        producer.flush()  # a batch of several records would be larger than a segment may be


def test_records_are_deleted(broker: Broker, syncs: Syncs) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, NewTopic("orders", PARTITIONS, config={"retention.ms": "-1"}))
    fill(broker, "orders", PARTITIONS)
    syncs.made.clear()
    wanted = [TopicPartition("orders", number, 1) for number in range(PARTITIONS)]
    for done in admin.delete_records(wanted).values():
        assert done.result().low_watermark == 1
    assert syncs.on_loop() == []
    # For each partition, the file that holds its start, and its name.
    assert syncs.under(broker.data / "topics" / "orders") == 2 * PARTITIONS


def test_retention_drops_segments(broker: Broker, syncs: Syncs) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, NewTopic("orders", 4, config={"retention.ms": "1000", "segment.bytes": "1024"}))
    fill(broker, "orders", 4, count=20)
    topic = broker.data / "topics" / "orders"
    eventually(lambda: all((topic / str(n) / "log-start-offset").exists() for n in range(4)))
    eventually(lambda: len(list(topic.glob("*/*.log"))) == 4)
    assert syncs.on_loop() == []


def test_compacted_segments_are_swapped_in(broker: Broker, syncs: Syncs) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": "1024",
    }
    create(admin, NewTopic("orders", 1, config=config))
    fill(broker, "orders", 1, count=20)
    folder = broker.data / "topics" / "orders" / "0"
    eventually((folder / "cleaner-offset").exists)
    assert syncs.on_loop() == []


def test_topics_are_deleted(broker: Broker, syncs: Syncs) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    names = [f"orders-{number}" for number in range(TOPICS)]
    create(admin, *(NewTopic(name, 1) for name in names))
    for deleted in admin.delete_topics(names).values():
        deleted.result()
    folder = broker.data / "deleted"
    topics = broker.data / "topics"
    eventually(lambda: not [*topics.iterdir(), *folder.iterdir()])
    assert syncs.on_loop() == []
    assert 1 <= syncs.of(folder) <= ceil(TOPICS / min(DECIDED_AN_EVENT, DISCARDED_AT_ONCE))


def test_metadata_is_summed_up(broker: Broker, syncs: Syncs) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    metadata = broker.data / "__cluster_metadata"
    for number in range(20):  # the log starts after an earlier snapshot than the last
        create(admin, *(NewTopic(f"orders-{number}-{each}", 1) for each in range(20)))
        if (metadata / "log-start-offset").exists():
            break
    eventually((metadata / "log-start-offset").exists)
    assert list(metadata.glob("*.checkpoint"))
    assert syncs.on_loop() == []
