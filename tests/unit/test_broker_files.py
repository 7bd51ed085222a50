"""A broker inside another program lets go of everything when it stops."""

import gc
import os

import pytest

from barnabas import Broker
from barnabas.client import Producer

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
