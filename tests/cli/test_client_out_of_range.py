"""Tests offsets that a log does not have: the consumer raises, or resets as configured."""

import asyncio
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import AdminClient

from barnabas.client import (
    AsyncConsumer,
    Consumer,
    OffsetOutOfRangeError,
    Producer,
    Record,
    TopicPartition,
)

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0
COUNT = 50
PROTOCOLS: list[dict[str, Any]] = [
    {},
    {"partition.assignment.strategy": "cooperative-sticky"},
    {"group.protocol": "consumer"},
]


@pytest.fixture
def place(bootstrap: str, topic: str) -> TopicPartition:
    """A partition of fifty records."""
    with Producer(bootstrap) as producer:
        producer.send_batch(topic, [Record(value=f"{each}", partition=0) for each in range(COUNT)])
    return TopicPartition(topic, 0)


def delete_before(admin: AdminClient, place: TopicPartition, offset: int) -> None:
    for done in admin.delete_records([RawPartition(*place, offset)]).values():
        done.result(PATIENCE_S)


def offset_of(consumer: Consumer) -> int:
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    return message.offset


def until_refused_after(
    consumer: Consumer, count: int
) -> tuple[list[tuple[int, int]], set[tuple[TopicPartition, int]]]:
    """Read until an offset is out of range, after so many messages; return both."""
    read: list[tuple[int, int]] = []
    refused: set[tuple[TopicPartition, int]] = set()
    while True:
        try:
            message = consumer.poll(PATIENCE_S)
        except OffsetOutOfRangeError as error:
            refused.add((error.partition, error.offset))
            if len(read) >= count:
                return read, refused
        else:
            assert message is not None
            read.append((message.partition, message.offset))


def test_a_seek_past_the_end_is_an_error_until_the_next_seek(
    bootstrap: str, place: TopicPartition
) -> None:
    with Consumer(bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek(place, 1_000_000)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match="has offsets 0 to 49") as caught:
                consumer.poll(PATIENCE_S)
        assert (caught.value.partition, caught.value.offset) == (place, 1_000_000)
        consumer.seek(place, 40)
        assert [message.offset for message in islice(consumer, 10)] == list(range(40, 50))


def next_offset(consumer: Consumer, producer: Producer, place: TopicPartition) -> int:
    """Produce until the consumer reads a record, and return its offset.

    The consumer finds the end by itself, so the first records may be before it.
    """
    for _ in range(100):
        producer.send(place.topic, "one more", partition=0)
        message = consumer.poll(0.3)
        if message is not None:
            return message.offset
    raise AssertionError("the consumer reads nothing")


def test_the_end_itself_is_in_range(bootstrap: str, place: TopicPartition) -> None:
    with Consumer(bootstrap) as consumer, Producer(bootstrap) as producer:
        consumer.assign([place], COUNT)
        assert next_offset(consumer, producer, place) >= COUNT


@pytest.mark.parametrize("word", ["beginning", "earliest"])
def test_out_of_range_may_mean_the_beginning(
    bootstrap: str, place: TopicPartition, word: Any
) -> None:
    with Consumer(bootstrap, out_of_range=word) as consumer:
        consumer.assign([place], 1_000_000)
        assert offset_of(consumer) == 0


def test_out_of_range_may_mean_the_end(bootstrap: str, place: TopicPartition) -> None:
    with Consumer(bootstrap, out_of_range="end") as consumer, Producer(bootstrap) as producer:
        consumer.assign([place], 1_000_000)
        assert next_offset(consumer, producer, place) >= COUNT


def test_an_async_consumer_says_it_too(bootstrap: str, place: TopicPartition) -> None:
    async def dialogue() -> None:
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.assign([place], 1_000_000)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.poll(PATIENCE_S)
            await consumer.seek(place, "beginning")
            message = await consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.offset == 0

    asyncio.run(asyncio.wait_for(dialogue(), 2 * PATIENCE_S))


@pytest.mark.parametrize("settings", PROTOCOLS)
def test_a_group_whose_records_were_deleted_gets_an_error_and_seeks(
    bootstrap: str, admin: AdminClient, place: TopicPartition, group: str, settings: Any
) -> None:
    other = TopicPartition(place.topic, 1)
    with Consumer(bootstrap, group=group, settings=settings) as consumer:
        consumer.assign([place])
        consumer.commit({place: 5})
    delete_before(admin, place, 20)
    with Producer(bootstrap) as producer:
        producer.send_batch(place.topic, [Record(value="v", partition=1) for _ in range(3)])
    with Consumer(bootstrap, group=group, settings=settings, auto_commit=False) as consumer:
        consumer.subscribe([place.topic])
        read, refused = until_refused_after(consumer, 3)
        assert read == [(1, 0), (1, 1), (1, 2)]
        assert refused == {(place, 5)}
        consumer.seek(place, "beginning")
        assert offset_of(consumer) == 20
        assert consumer.poll(PATIENCE_S) is not None
        consumer.commit()
    with Consumer(bootstrap, group=group, settings=settings) as consumer:
        consumer.subscribe([place.topic])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert (message.partition, message.offset) == (0, 22)
        assert consumer.position(other) in (3, None)


@pytest.mark.parametrize("settings", PROTOCOLS)
@pytest.mark.parametrize(("start", "first"), [("beginning", 0), ("end", COUNT)])
def test_a_new_group_begins_at_its_start(
    bootstrap: str, place: TopicPartition, group: str, settings: Any, start: Any, first: int
) -> None:
    with (
        Consumer(bootstrap, group=group, start=start, settings=settings) as consumer,
        Producer(bootstrap) as producer,
    ):
        assigned: list[TopicPartition] = []
        consumer.subscribe([place.topic], on_assign=assigned.extend)
        while start == "end" and not assigned:
            assert consumer.poll(0.1) is None
        producer.send(place.topic, "one more", partition=0)
        assert offset_of(consumer) == first


@pytest.mark.parametrize("settings", PROTOCOLS)
def test_a_seek_in_on_assign_is_the_only_start(
    bootstrap: str, place: TopicPartition, group: str, settings: Any
) -> None:
    with Consumer(bootstrap, group=group, settings=settings) as consumer:
        consumer.subscribe([place.topic], on_assign=lambda _: consumer.seek(place, 40))
        assert [message.offset for message in islice(consumer, 10)] == list(range(40, 50))


def test_librdkafkas_own_setting_wins(bootstrap: str, place: TopicPartition, group: str) -> None:
    settings = {"auto.offset.reset": "earliest"}
    with Consumer(bootstrap, settings=settings) as consumer:
        consumer.assign([place], 1_000_000)
        assert offset_of(consumer) == 0
