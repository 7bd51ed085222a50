"""Tests mistakes of callers: each raises a `ClientError` at once that says how to fix it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client import (
    ArgumentError,
    AsyncConsumer,
    AsyncProducer,
    ClosedError,
    Consumer,
    Producer,
    Record,
    SettingError,
    TopicPartition,
    UsageError,
)

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0
PLACE = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"start": "earlist"},
            r'start=.earlist. is not known; write "beginning" \(or "earliest"\)',
        ),
        ({"start": 5}, "start=5 is not known"),
        ({"out_of_range": "eror"}, 'out_of_range=.eror. is not known; write "error"'),
        ({"auto_commit": "no"}, "auto_commit=.no. is not known; write True or False"),
        ({"group": ""}, "is not a group name"),
        ({"bootstrap": ""}, "is not an address"),
        ({"bootstrap": None}, "is not an address"),
        ({"settings": ["client.id"]}, "settings is a dict"),
    ],
)
def test_a_consumer_refuses_options_that_it_does_not_know(
    options: dict[str, Any], text: str
) -> None:
    with pytest.raises(SettingError, match=text):
        Consumer(**options)
    with pytest.raises(SettingError, match=text):
        AsyncConsumer(**options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compression": "gzipp"}, "write none, gzip, snappy, lz4, zstd"),
        ({"acks": "alll"}, 'write "all", "1" or "0"'),
        ({"bootstrap": ""}, "is not an address"),
        ({"bootstrap": ["127.0.0.1:9092"]}, "is not an address"),
    ],
)
def test_a_producer_refuses_options_that_it_does_not_know(
    options: dict[str, Any], text: str
) -> None:
    with pytest.raises(SettingError, match=text):
        Producer(**options)


def test_kafkas_words_for_a_start_are_taken(bootstrap: str, topic: str, group: str) -> None:
    place = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        producer.send_batch(topic, [Record(value=f"{each}", partition=0) for each in range(3)])
    with Consumer(bootstrap, group=group, start="earliest") as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.offset == 0
    with Consumer(bootstrap) as consumer:
        consumer.assign([place], "latest")
        assert consumer.position(place) in (3, None)
        consumer.seek(place, "earliest")
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.offset == 0


CONSUMER_MISTAKES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda each: each.assign([PLACE], "begining"), "start=.begining. is not known; write an offs"),
    (lambda each: each.assign([PLACE], -2), "-2 is not an offset"),
    (lambda each: each.assign([PLACE], 5.0), "5.0 is not an offset"),
    (lambda each: each.assign([PLACE], True), "True is not an offset"),
    (lambda each: each.assign(PLACE), "one partition is not a list"),
    (lambda each: each.assign("orders"), r"consumer\.partitions\(topic\) returns one"),
    (lambda each: each.assign(["orders"]), "is not a partition"),
    (lambda each: each.seek(PLACE, "ende"), "start=.ende. is not known"),
    (lambda each: each.seek("orders", 0), "is not a partition"),
    (lambda each: each.pause(PLACE), "one partition is not a list"),
    (lambda each: each.resume("orders"), "is not a list of partitions"),
    (lambda each: each.position("orders"), "is not a partition"),
    (lambda each: each.offsets(("orders", "0")), "is not a partition"),
    (lambda each: each.partitions(None), "None is not a topic"),
    (lambda each: each.subscribe("orders"), r"subscribe takes a list.*write \[.orders.\]"),
    (lambda each: each.subscribe([]), "no topic"),
    (lambda each: each.commit({PLACE: -5}), "-5 is not an offset"),
    (lambda each: each.commit([PLACE]), "offsets is a dict"),
    (lambda each: each.poll("1"), "is not a number of seconds"),
]


@pytest.mark.parametrize(("call", "text"), CONSUMER_MISTAKES)
def test_consumers_say_which_argument_is_wrong(
    bootstrap: str, group: str, call: Callable[[Any], Any], text: str
) -> None:
    with Consumer(bootstrap, group=group) as consumer, pytest.raises(ArgumentError, match=text):
        call(consumer)

    async def dialogue() -> None:
        async with AsyncConsumer(bootstrap, group=group) as consumer:
            with pytest.raises(ArgumentError, match=text):
                await call(consumer)

    asyncio.run(dialogue())


def test_an_argument_error_is_a_value_error(bootstrap: str) -> None:
    with Consumer(bootstrap) as consumer, pytest.raises(ValueError, match="is not known"):
        consumer.assign([PLACE], "begining")  # type: ignore[arg-type]


def test_a_batch_has_at_least_one_message(bootstrap: str) -> None:
    with Consumer(bootstrap) as consumer, pytest.raises(ArgumentError, match="count_max=0"):
        consumer.poll_batch(0)


@pytest.mark.parametrize("call", ["pause", "resume", "seek"])
def test_what_is_not_assigned_cannot_be_paused_or_sought(
    bootstrap: str, topic: str, call: str
) -> None:
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        other = TopicPartition(topic, 1)
        arguments: tuple[Any, ...] = (other, 0) if call == "seek" else ([other],)
        with pytest.raises(UsageError, match=f"{topic}-1 is not assigned"):
            getattr(consumer, call)(*arguments)


RECORD_MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"value": 5}, "a value is bytes, str or None, not int"),
    ({"value": "v", "key": 1.5}, "a key is bytes, str or None, not float"),
    ({"value": "\ud800"}, "cannot be sent as UTF-8"),
    ({"value": "v", "headers": {"a": 5}}, "headers=.* cannot be sent"),
    ({"value": "v", "headers": {5: "a"}}, "the name of a header is a str"),
    ({"value": "v", "headers": "abc"}, "headers=.* cannot be sent"),
    ({"value": "v", "partition": "0"}, "partition=.0. is not a whole number"),
    ({"value": "v", "partition": 2**40}, "is not a partition number"),
    ({"value": "v", "timestamp_ms": 1.5}, "timestamp_ms=1.5 is not a whole number"),
    ({"value": "v", "timestamp_ms": 0}, "timestamp_ms=0"),
    ({"value": "v", "timestamp_ms": 2**70}, "the record cannot be sent"),
]


@pytest.mark.parametrize(("fields", "text"), RECORD_MISTAKES)
def test_a_record_that_cannot_be_sent_is_refused_and_not_waited_for(
    bootstrap: str, topic: str, fields: dict[str, Any], text: str
) -> None:
    with Producer(bootstrap) as producer:
        with pytest.raises(ArgumentError, match=text):
            producer.send(topic, **fields)
        producer.flush(PATIENCE_S)

    async def dialogue() -> None:
        async with AsyncProducer(bootstrap) as producer:
            with pytest.raises(ArgumentError, match=text):
                await producer.send(topic, **fields)
            await asyncio.wait_for(producer.flush(), PATIENCE_S)

    asyncio.run(dialogue())


@pytest.mark.parametrize("name", [None, b"orders", "", "a b"])
def test_a_topic_that_cannot_be_is_refused(bootstrap: str, name: Any) -> None:
    with Producer(bootstrap) as producer, pytest.raises(ArgumentError, match="topic"):
        producer.send(name, "v")


def test_a_text_is_no_batch_and_a_bad_record_ends_one(bootstrap: str, topic: str) -> None:
    bad: Any = ["one", "two", 3]
    with Producer(bootstrap) as producer:
        with pytest.raises(ArgumentError, match="send_batch takes a list of records, not str"):
            producer.send_batch(topic, "abc")
        with pytest.raises(ArgumentError, match="not int"):
            producer.send_batch(topic, bad)

    async def dialogue() -> None:
        async with AsyncProducer(bootstrap) as producer:
            with pytest.raises(ArgumentError, match="not int"):
                await producer.send_batch(topic, bad)

    asyncio.run(dialogue())
    with Consumer(bootstrap) as consumer:
        ends = [consumer.offsets(each)[1] for each in consumer.partitions(topic)]
    assert sum(ends) == 4, "the two records before the bad one, twice"


def test_a_timeout_is_a_number_or_none(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap)
    future = producer.send_async(topic, "v")
    with pytest.raises(ArgumentError, match="is not a number of seconds"):
        producer.close("5")  # type: ignore[arg-type]
    producer.close(None)
    assert future.result(0).topic == topic


CLOSED_CONSUMER: list[Callable[[Any], Any]] = [
    lambda each: each.subscribe(["orders"]),
    lambda each: each.assign([PLACE]),
    lambda each: each.poll(0),
    lambda each: each.commit(),
    lambda each: each.pause([PLACE]),
    lambda each: each.pause([]),
    lambda each: each.resume([PLACE]),
    lambda each: each.seek(PLACE, 0),
    lambda each: each.position(PLACE),
    lambda each: each.partitions("orders"),
    lambda each: each.offsets(PLACE),
]


@pytest.mark.parametrize("failed", [False, True])
def test_every_call_of_a_closed_consumer_is_refused(
    bootstrap: str, topic: str, group: str, failed: bool
) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, "v", partition=0)
    consumer = Consumer(bootstrap, group=group)
    consumer.assign([TopicPartition(topic, 0)])
    assert consumer.poll(PATIENCE_S) is not None
    consumer.__exit__(ValueError if failed else None, None, None)
    more: list[Callable[[Any], Any]] = [iter, lambda each: each.poll_batch(1, 0)]
    for call in [*CLOSED_CONSUMER, *more, Consumer.__enter__]:
        with pytest.raises(ClosedError):
            call(consumer)
    consumer.close()


def test_every_call_of_a_closed_async_consumer_is_refused(bootstrap: str, group: str) -> None:
    async def dialogue() -> None:
        consumer = AsyncConsumer(bootstrap, group=group)
        await asyncio.gather(consumer.close(), consumer.close())
        assert consumer._session._left
        for call in [*CLOSED_CONSUMER, AsyncConsumer.__aenter__]:
            with pytest.raises(ClosedError):
                await call(consumer)
        with pytest.raises(ClosedError):
            aiter(consumer)

    asyncio.run(dialogue())


def test_every_call_of_a_closed_producer_is_refused(bootstrap: str) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda each: each.send("orders", "v"),
        lambda each: each.send_async("orders", "v"),
        lambda each: each.send_batch("orders", []),
        lambda each: each.flush(),
    ]
    producer = Producer(bootstrap)
    producer.close()
    for call in [*calls, Producer.__enter__]:
        with pytest.raises(ClosedError):
            call(producer)

    async def dialogue() -> None:
        closed = AsyncProducer(bootstrap)
        await closed.close()
        for call in [*calls, AsyncProducer.__aenter__]:
            with pytest.raises(ClosedError):
                await call(closed)

    asyncio.run(dialogue())
