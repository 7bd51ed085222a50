"""Tests aiokafka in groups: offsets, resets, metadata of commits, pauses, administration."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

aiokafka = pytest.importorskip("aiokafka")
admin = pytest.importorskip("aiokafka.admin")
errors = pytest.importorskip("aiokafka.errors")

pytestmark = pytest.mark.compat

FIRST_MS = 1_700_000_000_000
PATIENCE_S = 30
Open = Callable[..., AbstractAsyncContextManager[Any]]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE_S))


@pytest.fixture
def consumer(python_consumer: dict[str, Any]) -> Open:
    """Return a function that creates consumers, which are stopped at the end of the block."""

    @asynccontextmanager
    async def make(*topics: str, **changes: object) -> AsyncIterator[Any]:
        made = aiokafka.AIOKafkaConsumer(*topics, **(python_consumer | changes))
        await made.start()
        try:
            yield made
        finally:
            await made.stop()

    return make


@asynccontextmanager
async def client_of(bootstrap: str) -> AsyncIterator[Any]:
    made = admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def place(topic: str, partition: int) -> Any:
    return aiokafka.TopicPartition(topic, partition)


async def read(consumer: Any, count: int) -> list[tuple[int, int]]:
    """Return partition and offset of the next records."""
    found: list[tuple[int, int]] = []
    while len(found) < count:
        some = await consumer.getmany(timeout_ms=500, max_records=count - len(found))
        found += [(one.partition, one.offset) for records in some.values() for one in records]
    return found


def test_a_group_continues_where_it_was_committed(consumer: Open, numbered: str) -> None:
    async def scenario() -> None:
        first, second = place(numbered, 0), place(numbered, 1)
        async with consumer(numbered) as reader:
            found = await read(reader, 40)
            assert sorted(found) == [(p, offset) for p in range(2) for offset in range(20)]
            await reader.commit({first: 7, second: 15})
            assert [await reader.committed(one) for one in (first, second)] == [7, 15]
        rest = [(0, n) for n in range(7, 20)] + [(1, n) for n in range(15, 20)]
        async with consumer(numbered) as reader:
            assert sorted(await read(reader, 18)) == rest

    run(scenario())


def test_stopping_commits_where_the_client_does_it_itself(consumer: Open, numbered: str) -> None:
    async def scenario() -> None:
        async with consumer(numbered, enable_auto_commit=True) as reader:
            await read(reader, 40)
        async with consumer() as reader:
            reader.assign([place(numbered, 0), place(numbered, 1)])
            assert [await reader.committed(place(numbered, p)) for p in range(2)] == [20, 20]

    run(scenario())


def test_a_group_without_offsets_begins_at_the_end(
    group_bootstrap: str, consumer: Open, numbered: str
) -> None:
    async def scenario() -> None:
        async with (
            consumer(numbered, auto_offset_reset="latest") as reader,
            aiokafka.AIOKafkaProducer(bootstrap_servers=group_bootstrap) as producer,
        ):
            found: dict[Any, list[Any]] = {}
            while not found:
                await producer.send_and_wait(numbered, b"new", partition=0)
                found = await reader.getmany(timeout_ms=500)
            ((first, *_),) = found.values()
            assert first.offset >= 20

    run(scenario())


def test_a_group_without_offsets_may_be_refused(consumer: Open, numbered: str) -> None:
    async def scenario() -> None:
        async with consumer(numbered, auto_offset_reset="none") as reader:
            with pytest.raises(errors.NoOffsetForPartitionError):
                await read(reader, 1)

    run(scenario())


def test_a_group_is_sent_back_to_a_time(consumer: Open, numbered: str) -> None:
    async def scenario() -> None:
        places = [place(numbered, 0), place(numbered, 1)]
        async with consumer() as writer:
            writer.assign(places)
            found = await writer.offsets_for_times(dict.fromkeys(places, FIRST_MS + 95))
            await writer.commit({where: one.offset for where, one in found.items()})
        rest = [(p, offset) for p in range(2) for offset in range(10, 20)]
        async with consumer(numbered) as reader:
            assert sorted(await read(reader, 20)) == rest

    run(scenario())


def test_a_commit_carries_a_note(group_bootstrap: str, consumer: Open, numbered: str) -> None:
    async def scenario() -> None:
        async with consumer() as writer:
            writer.assign([place(numbered, 0)])
            await writer.commit({place(numbered, 0): (3, "a note: ä")})
            group = writer._group_id
        async with client_of(group_bootstrap) as client:
            listed = await client.list_consumer_group_offsets(group)
        assert listed == {place(numbered, 0): aiokafka.structs.OffsetAndMetadata(3, "a note: ä")}

    run(scenario())


def test_paused_partitions_wait(consumer: Open, numbered: str) -> None:
    async def scenario() -> None:
        async with consumer(numbered) as reader:
            before = await read(reader, 1)
            reader.pause(*reader.assignment())
            assert [await reader.getmany(timeout_ms=100) for _ in range(5)] == [{}] * 5
            reader.resume(*reader.assignment())
            assert len({*before, *await read(reader, 39)}) == 40

    run(scenario())


def test_partitions_taken_by_hand_use_the_offsets_of_the_group(
    consumer: Open, numbered: str
) -> None:
    async def scenario() -> None:
        async with consumer() as first:
            first.assign([place(numbered, 0)])
            first.seek(place(numbered, 0), 4)
            assert await read(first, 3) == [(0, 4), (0, 5), (0, 6)]
            await first.commit()
        async with consumer() as second:
            second.assign([place(numbered, 0)])
            assert await read(second, 1) == [(0, 7)]

    run(scenario())


def test_groups_are_listed_and_described(
    group_bootstrap: str, consumer: Open, group: str, numbered: str
) -> None:
    async def scenario() -> None:
        async with (
            consumer(numbered, client_id="teller") as reader,
            client_of(group_bootstrap) as client,
        ):
            await read(reader, 1)
            assert (group, "consumer") in await client.list_consumer_groups()
            (answer,) = await client.describe_consumer_groups([group])
            ((error, name, state, kind, protocol, members, *_),) = answer.groups
            assert (error, name, state, kind) == (0, group, "Stable", "consumer")
            assert protocol == "roundrobin"
            assert len(members) == 1

    run(scenario())
