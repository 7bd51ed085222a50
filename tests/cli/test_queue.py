"""Tests work queues against a broker: who gets which message, once, again, or never again."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from uuid import uuid4

import pytest

from barnabas.client import (
    ArgumentError,
    BrokerUnreachableError,
    ClosedError,
    Consumer,
    GroupError,
    Queue,
    QueueMessage,
    Record,
    SettingError,
    TopicExistsError,
    UnknownTopicError,
    UnsupportedError,
    UsageError,
)
from barnabas.testing.waiting import eventually

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0


@pytest.fixture
def name() -> str:
    return f"q-{uuid4().hex}"


@pytest.fixture
def queue(bootstrap: str, name: str) -> Iterator[Queue]:
    with Queue.create(name, bootstrap, partitions=2) as queue:
        yield queue


def taken(queue: Queue, count: int) -> list[QueueMessage]:
    """Take messages until there are enough."""
    found: list[QueueMessage] = []

    def look() -> bool:
        found.extend(queue.take_batch(count - len(found), 1.0))
        return len(found) >= count

    eventually(look)
    return found


def test_what_was_put_before_any_member_came_is_taken(queue: Queue) -> None:
    result = queue.put("resize", key="cat", headers={"size": "9"})
    message = queue.take(PATIENCE_S)
    assert message is not None
    assert (message.text, message.key, message.headers) == ("resize", b"cat", (("size", b"9"),))
    assert (message.topic, message.partition) == (queue.topic, result.partition)
    assert (message.offset, message.timestamp_ms) == (result.offset, result.timestamp_ms)
    assert message.deliveries == 1
    assert 0 < message.seconds_left <= 60
    message.ack()
    queue.flush(PATIENCE_S)
    assert queue.take(0) is None


def test_competing_consumers_get_each_message_once(bootstrap: str, queue: Queue) -> None:
    count, members = 400, 4
    got: Counter[str] = Counter()
    by_member: Counter[str] = Counter()
    lock = threading.Lock()

    def work(member: str) -> None:
        with Queue(queue.topic, bootstrap, prefetch=5) as mine:
            while sum(got.values()) < count:
                for message in mine.take_batch(5, 0.2):
                    with lock:
                        got[message.text] += 1
                        by_member[member] += 1
                    message.ack()

    threads = [threading.Thread(target=work, args=(f"{each}",)) for each in range(members)]
    for thread in threads:
        thread.start()
    queue.put_many([f"{each}" for each in range(count)])
    for thread in threads:
        thread.join(PATIENCE_S)
    assert got == Counter({f"{each}": 1 for each in range(count)})
    assert len(by_member) > 1


def test_a_nack_brings_the_message_again(queue: Queue) -> None:
    queue.put("again")
    (first,) = taken(queue, 1)
    first.nack()
    (second,) = taken(queue, 1)
    assert (second.text, first.deliveries, second.deliveries) == ("again", 1, 2)
    second.ack()


def test_a_rejected_message_never_comes_again(queue: Queue) -> None:
    queue.put_many(["poison", "good"])
    for message in taken(queue, 2):
        if message.text == "poison":
            message.reject()
        else:
            message.nack()
    (again,) = taken(queue, 1)
    assert (again.text, again.deliveries) == ("good", 2)
    again.ack()
    queue.flush(PATIENCE_S)
    eventually(lambda: queue.stats().depth == 0)


def test_a_message_comes_as_often_as_the_group_allows(queue: Queue) -> None:
    queue.put("poison")
    deliveries = []
    for _ in range(5):
        (message,) = taken(queue, 1)
        deliveries.append(message.deliveries)
        message.nack()
    queue.flush(PATIENCE_S)
    assert deliveries == [1, 2, 3, 4, 5]
    assert queue.take(0.5) is None


def test_an_exception_gives_back_what_is_held(bootstrap: str, queue: Queue) -> None:
    queue.put("job")

    def fail() -> None:
        with Queue(queue.topic, bootstrap, auto_ack=True) as worker:
            for _ in worker:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    (again,) = taken(queue, 1)
    assert again.deliveries == 2


def test_auto_ack_answers_when_the_next_message_is_wanted(bootstrap: str, queue: Queue) -> None:
    queue.put_many([f"{each}" for each in range(30)])
    with Queue(queue.topic, bootstrap, auto_ack=True, prefetch=10) as worker:
        assert {each.text for each in islice(worker, 30)} == {f"{each}" for each in range(30)}
    assert eventually(lambda: queue.stats().depth == 0)


def test_a_message_has_one_answer(queue: Queue) -> None:
    queue.put("job")
    (message,) = taken(queue, 1)
    with pytest.raises(UnsupportedError, match="without a delay"):
        message.nack(delay=5)
    message.extend()
    message.ack()
    for again in (message.ack, message.nack, message.reject, message.extend):
        with pytest.raises(UsageError, match="answered already"):
            again()


def test_stats_count_what_is_not_done(queue: Queue) -> None:
    empty = queue.stats()
    assert (empty.depth, empty.members, len(empty.partitions)) == (0, 0, 2)
    queue.put_many([Record(value=f"{each}", partition=each % 2) for each in range(6)])
    for message in taken(queue, 2):
        message.ack()
    queue.flush(PATIENCE_S)
    eventually(lambda: queue.stats().depth == 4)
    stats = queue.stats()
    assert (stats.members, stats.state, stats.in_flight) == (1, "Stable", None)


def test_close_from_another_thread_ends_an_iteration(bootstrap: str, queue: Queue) -> None:
    worker = Queue(queue.topic, bootstrap)
    iteration = iter(worker)
    queue.put("first")
    next(iteration).ack()
    closer = threading.Timer(0.05, worker.close)
    closer.start()
    assert list(iteration) == []
    closer.join()


def closed(queue: Queue) -> list[Callable[[], object]]:
    return [lambda: queue.put("x"), lambda: queue.take(0), queue.stats, queue.flush]


def test_a_closed_queue_says_so(bootstrap: str, name: str) -> None:
    queue = Queue(name, bootstrap)
    queue.close()
    queue.close()
    for call in closed(queue):
        with pytest.raises(ClosedError):
            call()


def test_mistakes_say_what_to_write(bootstrap: str, name: str, queue: Queue) -> None:
    with pytest.raises(TopicExistsError, match="exist_ok"):
        Queue.create(name, bootstrap)
    Queue.create(name, bootstrap, exist_ok=True).close()
    with pytest.raises(SettingError):
        Queue(name, bootstrap, prefetch=0)
    with pytest.raises(SettingError):
        Queue(name, bootstrap, group="")
    with pytest.raises(ArgumentError):
        Queue.create(f"{name}-2", bootstrap, partitions=0)
    with pytest.raises(ArgumentError):
        queue.take_batch(0)
    with pytest.raises(UnknownTopicError):
        Queue(f"{name}-none", bootstrap).stats()


def test_a_group_of_consumers_is_no_queue(bootstrap: str, queue: Queue) -> None:
    group = f"g-{uuid4().hex}"
    queue.put("job")
    with Consumer(bootstrap, group=group) as consumer:
        consumer.subscribe([queue.topic])
        next(iter(consumer))
        with Queue(queue.topic, bootstrap, group=group) as other, pytest.raises(GroupError):
            other.take(PATIENCE_S)


def test_no_broker_is_an_error_and_no_wait() -> None:
    with Queue("jobs", "127.0.0.1:1") as queue, pytest.raises(BrokerUnreachableError):
        queue.take(PATIENCE_S)
