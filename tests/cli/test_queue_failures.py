"""Tests work queues when members die, locks end and brokers restart: nothing is lost."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from barnabas.client import LockLostError, Queue
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0
SHORT_LOCKS = {
    "share.record_lock_duration": "1s",
    "share.min_record_lock_duration": "1s",
}
HOLDER = """
import sys
from barnabas.client import Queue
queue = Queue("jobs", sys.argv[1])
held = []
while len(held) < 2:
    held += queue.take_batch(2, 1)
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings=SHORT_LOCKS) as broker:
        yield broker


@pytest.fixture
def queue(broker: Broker) -> Iterator[Queue]:
    with Queue.create("jobs", broker.bootstrap, partitions=1) as queue:
        yield queue


def test_what_a_killed_process_held_comes_again(broker: Broker, queue: Queue) -> None:
    queue.put_many(["one", "two"])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, broker.bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"holding\n"
        holder.kill()
    found: dict[str, int] = {}
    while len(found) < 2:
        for message in queue.take_batch(2, PATIENCE_S):
            found[message.text] = message.deliveries
            message.ack()
    assert found == {"one": 2, "two": 2}


def test_an_answer_after_the_lock_is_reported(broker: Broker, queue: Queue) -> None:
    queue.put_many(["late", "good"])
    late, good = queue.take_batch(2, PATIENCE_S)
    with Queue("jobs", broker.bootstrap) as other:
        again = other.take(PATIENCE_S)
        assert again is not None
        assert (again.text, again.deliveries) == ("late", 2)
        assert late.seconds_left == 0
        with pytest.raises(LockLostError):
            late.extend()
        late.ack()
        good.ack()
        with pytest.raises(LockLostError, match="gets the message again") as raised:
            queue.flush(PATIENCE_S)
        (offsets,) = raised.value.offsets.values()
        assert 0 in offsets
        queue.flush(PATIENCE_S)  # reported once
        again.ack()


def test_extend_keeps_a_message_longer_than_its_lock(broker: Broker, queue: Queue) -> None:
    queue.put("long")
    message = queue.take(PATIENCE_S)
    assert message is not None
    with Queue("jobs", broker.bootstrap) as other:
        for _ in range(5):
            message.extend()
            assert other.take(0.4) is None
    message.ack()
    queue.flush(PATIENCE_S)


def test_buffered_messages_are_held_until_they_are_taken(broker: Broker) -> None:
    with Queue.create("ahead", broker.bootstrap, partitions=1, prefetch=10) as queue:
        queue.put_many(["one", "two"])
        first = queue.take(PATIENCE_S)
        assert first is not None
        first.ack()
        with Queue("ahead", broker.bootstrap) as other:
            assert other.take(2.5) is None
        second = queue.take(PATIENCE_S)
        assert second is not None
        assert (second.text, second.deliveries) == ("two", 1)
        second.ack()
        queue.flush(PATIENCE_S)


def test_a_broker_that_restarts_loses_nothing(broker: Broker, queue: Queue) -> None:
    queue.put_many([f"{each}" for each in range(10)])
    done = set()
    for message in queue.take_batch(4, PATIENCE_S):
        message.ack()
        done.add(message.text)
    queue.flush(PATIENCE_S)
    held = queue.take(PATIENCE_S)
    assert held is not None
    address = broker.bootstrap
    broker.stop()
    broker._flags["broker.port"] = int(address.rpartition(":")[2])
    broker.start()
    held.ack()
    with pytest.raises(LockLostError):
        queue.flush(PATIENCE_S)
    left = {}

    def look() -> bool:
        for message in queue.take_batch(10, 1.0):
            assert message.text not in done
            left[message.text] = message.deliveries
            message.ack()
        return len(left) == 10 - len(done)

    eventually(look)
    queue.flush(PATIENCE_S)
    assert left[held.text] >= 1
    assert eventually(lambda: queue.stats().depth == 0)
