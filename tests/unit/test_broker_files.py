"""Tests that a broker closes files: all when it stops, a topic's when it is deleted."""

import contextlib
import gc
import os

import pytest
from confluent_kafka.admin import AdminClient

from barnabas import Broker
from barnabas.client import Consumer, Producer
from barnabas.testing.waiting import eventually

DESCRIPTORS = "/proc/self/fd"


@pytest.mark.skipif(not os.path.isdir(DESCRIPTORS), reason="needs /proc")  # noqa: PTH112
def test_stopped_brokers_hold_no_files() -> None:
    def use() -> int:
        with Broker() as broker, Producer(broker.bootstrap) as producer:
            for topic in ("a", "b", "c"):
                producer.send(topic, value=b"x")
        gc.collect()
        return len(os.listdir(DESCRIPTORS))  # noqa: PTH208

    counts = [use() for _ in range(4)]
    assert counts[1] == counts[-1]


@pytest.mark.skipif(not os.path.isdir(DESCRIPTORS), reason="needs /proc")  # noqa: PTH112
def test_a_deleted_topic_gives_its_room_on_the_disk_back_at_once() -> None:
    gc.disable()  # otherwise a reference cycle would keep the files until a collection
    try:
        with Broker() as broker, Producer(broker.bootstrap) as producer:
            for _ in range(5):  # of which all except the first use `handlers/shapes.py`
                producer.send("a", value=b"x")
            with Consumer(broker.bootstrap, group="readers") as consumer:
                consumer.subscribe(["a"])
                assert next(iter(consumer)).value == b"x"
            assert any("/topics/a/" in path for path in open_files())
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.delete_topics(["a"])["a"].result()
            gone = ("/topics/a/", "/deleted/")
            eventually(lambda: not any(part in path for path in open_files() for part in gone))
    finally:
        gc.enable()


def open_files() -> list[str]:
    """Return the open files of this process, by their current names."""
    found = []
    for descriptor in os.listdir(DESCRIPTORS):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"{DESCRIPTORS}/{descriptor}"))  # noqa: PTH115
    return found
