"""Starts the broker under test, with its settings and its topics."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from bench.stalls.frames import Line, batch, produce

CREATE_VERSION = 5
METADATA_VERSION = 8
POLITE, TIMES, EXPIRING, COMPACTED, WIDE = "polite", "times", "expiring", "compacted", "wide-{}"
TIMED_RECORDS = 10_000
"""The size of each batch of the topic whose offsets are looked up by time: about 1 MB."""
TIMED_FROM_MS = 1_700_000_000_000
SETTINGS: dict[str, object] = {
    "storage.retention_check_interval": "20s",
    "storage.compaction_check_interval": "1s",
    "storage.file_delete_delay": "1s",
    "storage.min_cleanable_dirty_ratio": "0.3",
    "cluster.snapshot_after_records": 5_000,
    "groups.heartbeat_wait": "0s",
    "groups.initial_rebalance_delay": "0s",
    "broker.auto_create_topics": "false",
}
"""All periodic work is frequent; heartbeats are answered at once, to be measured."""


class Sizes(NamedTuple):
    """The sizes of the load."""

    polite: int = 20
    """Partitions, one for each polite producer and each polite consumer."""
    timed: int = 100
    timed_batches: int = 3
    expiring: int = 2_000
    compacted: int = 4
    wide: int = 6_800
    """With the others about 9,000 partitions: a broker holds half as many as its limit of open
    files.
    """
    made: int = 100
    """Topics that are created, and deleted, at a time."""


WHOLE = Sizes()
SMALL = Sizes(timed=10, timed_batches=1, expiring=50, wide=100, made=10)
WIDE_PARTITIONS = 500


async def create(line: Line, topics: Sequence[CreatableTopic]) -> None:
    """Create topics; existing ones are left unchanged."""
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=120_000)
    answer = await line.message(request, CREATE_VERSION, CreateTopicsResponse)
    for topic in answer.topics:
        if topic.error_code:
            raise RuntimeError(f"{topic.name}: {topic.error_code} {topic.error_message}")


def topic(name: str, partitions: int = 1, **config: object) -> CreatableTopic:
    """Return a topic to create; keys of its config have `_` in place of dots."""
    entries = [
        CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
        for key, value in config.items()
    ]
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=entries
    )


async def prepare(address: tuple[str, int], sizes: Sizes) -> None:
    """Create every topic and fill those that are read."""
    line = await Line.open(address)
    await create(line, [topic(POLITE, sizes.polite), topic(TIMES, sizes.timed)])
    short = {"retention_ms": 10_000, "segment_ms": 5_000, "flush": "interval"}
    await create(line, [topic(EXPIRING, sizes.expiring, **short)])
    compacts = {"cleanup_policy": "compact", "segment_bytes": 1 << 20, "flush": "interval"}
    await create(line, [topic(COMPACTED, sizes.compacted, **compacts)])
    left, number = sizes.wide, 0
    while left > 0:
        await create(line, [topic(WIDE.format(number), min(left, WIDE_PARTITIONS))])
        left, number = left - WIDE_PARTITIONS, number + 1
    for turn in range(sizes.timed_batches):
        content = batch([b"k"] * TIMED_RECORDS, 90, TIMED_FROM_MS + turn * TIMED_RECORDS)
        for partition in range(sizes.timed):
            await line.ask(produce(TIMES, {partition: content}))
    for partition in range(sizes.polite):
        await line.ask(produce(POLITE, {partition: batch([b"k"], 100)}))
    await asyncio.wait_for(_all_led(line), 120)
    line.close()


async def _all_led(line: Line) -> None:
    """Wait until every partition has a leader."""
    while True:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=EXPIRING)])
        answer = await line.message(request, METADATA_VERSION, MetadataResponse)
        partitions: list[Any] = [p for found in answer.topics for p in found.partitions]
        if partitions and all(p.leader_id >= 0 for p in partitions):
            return
        await asyncio.sleep(0.1)
