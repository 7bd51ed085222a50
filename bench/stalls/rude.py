"""Clients and operators that cause much work at once, each a task in one process.

topics     a hundred topics made, then deleted, again and again
times      offsets by time over a hundred partitions of 1 MB batches
latest     DeleteRecords, then the record with the largest timestamp
expiring   a record for each of two thousand partitions, which retention then drops
compacted  the same thousand keys over and over
greedy     256 KB of pipelined ListOffsets, as fast as answers come
hidden     a JoinGroup that waits, then a thousand Metadata requests behind it
bombs      1.9 KB of zstd that holds 2.5 million records
broken     frames that are cut, too long or garbage, on connections that come and go
admin      Metadata of all topics
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records import Record, build
from barnabas.testing.raw_client import frame_of, framed
from bench.stalls.frames import Line, batch, offsets, produce
from bench.stalls.ground import (
    COMPACTED,
    EXPIRING,
    POLITE,
    TIMED_FROM_MS,
    TIMED_RECORDS,
    TIMES,
    Sizes,
    create,
    topic,
)

Address = tuple[str, int]
Job = Callable[[Address, Sizes, "Count"], Awaitable[None]]
MAX_TIMESTAMP = -3
GREEDY_BYTES = 256 * 1024
BOMB_RECORDS = 2_500_000
EXPIRING_A_REQUEST = 100
METADATA_VERSION = 8
HIDDEN_REQUESTS = 1_000


class Count:
    """How often a job was done, and how long it took at most."""

    def __init__(self) -> None:
        self.done = 0
        self.longest_s = 0.0
        self.problem: str | None = None

    def took(self, since: float) -> None:
        """Record one time."""
        self.done += 1
        self.longest_s = max(self.longest_s, time.perf_counter() - since)


async def topics(address: Address, sizes: Sizes, count: Count) -> None:
    """Create and delete topics by the hundred."""
    line, turn, name = await Line.open(address), 0, random.randrange(1 << 32)
    while True:
        begun = time.perf_counter()
        names = [f"short-lived-{name}-{turn}-{number}" for number in range(sizes.made)]
        await create(line, [topic(name) for name in names])
        gone = DeleteTopicsRequest(topic_names=names, timeout_ms=120_000)
        await line.message(gone, 5, DeleteTopicsResponse)
        count.took(begun)
        turn += 1
        await asyncio.sleep(0.5)


async def times(address: Address, sizes: Sizes, count: Count) -> None:
    """Look up the middle of a batch in every partition."""
    line, rng = await Line.open(address), random.Random(1)
    while True:
        begun = time.perf_counter()
        span_ms = TIMED_RECORDS * sizes.timed_batches
        at_ms = TIMED_FROM_MS + rng.randrange(span_ms)
        await line.ask(offsets(TIMES, range(sizes.timed), at_ms))
        count.took(begun)
        await asyncio.sleep(1)


async def latest(address: Address, sizes: Sizes, count: Count) -> None:
    """Delete a record of every partition, then request the largest timestamp of each."""
    line, offset = await Line.open(address), 0
    while True:
        begun = time.perf_counter()
        offset = min(offset + 1, TIMED_RECORDS // 2)
        wanted = [
            DeleteRecordsPartition(partition_index=number, offset=offset)
            for number in range(sizes.timed)
        ]
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=TIMES, partitions=wanted)], timeout_ms=60_000
        )
        await line.message(request, 1, DeleteRecordsResponse)
        await line.ask(offsets(TIMES, range(sizes.timed), MAX_TIMESTAMP))
        count.took(begun)
        await asyncio.sleep(10)


async def expiring(address: Address, sizes: Sizes, count: Count) -> None:
    """Write to every partition that retention empties."""
    line = await Line.open(address)
    while True:
        begun = time.perf_counter()
        content = batch([b"k"], 100)
        for first in range(0, sizes.expiring, EXPIRING_A_REQUEST):
            some = range(first, min(first + EXPIRING_A_REQUEST, sizes.expiring))
            await line.ask(produce(EXPIRING, dict.fromkeys(some, content), acks=1))
        count.took(begun)
        await asyncio.sleep(20)


async def compacted(address: Address, sizes: Sizes, count: Count) -> None:
    """Overwrite the same keys."""
    line, keys = await Line.open(address), [b"key-%d" % number for number in range(1_000)]
    while True:
        begun = time.perf_counter()
        content = batch(keys, 100)
        for partition in range(sizes.compacted):
            await line.ask(produce(COMPACTED, {partition: content}, acks=1))
        count.took(begun)
        await asyncio.sleep(0.4)


async def greedy(address: Address, sizes: Sizes, count: Count) -> None:
    """Pipeline small requests without end."""
    frame = offsets(POLITE, [0], -1)
    number = GREEDY_BYTES // len(frame)
    line = await Line.open(address)
    while True:
        begun = time.perf_counter()
        line.send(frame * number)
        for _ in range(number):
            await line.answer()
        count.took(begun)


async def hidden(address: Address, sizes: Sizes, count: Count) -> None:
    """Let responses wait behind one that does not come for a while."""
    number = 0
    while True:
        begun = time.perf_counter()
        first, second = await Line.open(address), await Line.open(address)
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0" * 10)
        join = JoinGroupRequest(
            group_id=f"hidden-{number}",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        joining = framed(frame_of(join, 3))
        await first.ask(joining)
        metadata = MetadataRequest(topics=[MetadataRequestTopic(name=EXPIRING)])
        behind = framed(frame_of(metadata, METADATA_VERSION)) * HIDDEN_REQUESTS
        second.send(joining + behind)  # the second member waits for the first to rejoin
        await asyncio.sleep(5)
        first.close()
        second.close()
        number += 1
        count.took(begun)


async def bombs(address: Address, sizes: Sizes, count: Count) -> None:
    """Send a small batch that decompresses to a large one, repeatedly."""
    record = Record(0, TIMED_FROM_MS, b"", b"")
    content = bytes(build([record] * BOMB_RECORDS, codec=Codec.ZSTD))
    frame = produce(COMPACTED, {0: content})
    line = await Line.open(address)
    while True:
        begun = time.perf_counter()
        await line.ask(frame)
        count.took(begun)
        await asyncio.sleep(10)


async def broken(address: Address, sizes: Sizes, count: Count) -> None:
    """Open connections, send an invalid or incomplete frame, and close them."""
    rng = random.Random(2)
    whole = produce(POLITE, {0: batch([b"k"], 100)})
    while True:
        begun = time.perf_counter()
        line = await Line.open(address)
        said = (whole[: rng.randrange(len(whole))], b"\x7f\xff\xff\xff", rng.randbytes(64))
        line.send(rng.choice(said))
        await asyncio.sleep(0.02)
        line.close()
        count.took(begun)


async def admin(address: Address, sizes: Sizes, count: Count) -> None:
    """Request all topics with all their partitions."""
    line = await Line.open(address)
    frame = framed(frame_of(MetadataRequest(topics=None), METADATA_VERSION))
    while True:
        begun = time.perf_counter()
        await line.ask(frame)
        count.took(begun)
        await asyncio.sleep(5)


JOBS: dict[str, Job] = {
    "topics": topics,
    "times": times,
    "latest": latest,
    "expiring": expiring,
    "compacted": compacted,
    "greedy": greedy,
    "hidden": hidden,
    "bombs": bombs,
    "broken": broken,
    "admin": admin,
}


async def job(name: str, address: Address, sizes: Sizes, count: Count) -> None:
    """Repeat a job; restart it if the broker closes the connection."""
    while True:
        try:
            await JOBS[name](address, sizes, count)
        except (OSError, EOFError, RuntimeError) as error:
            count.problem = count.problem or repr(error)
            await asyncio.sleep(1)


async def run(address: Address, sizes: Sizes, names: list[str], seconds: float) -> dict[str, Any]:
    """Run the named jobs in parallel."""
    counts = {name: Count() for name in names}
    tasks = [asyncio.create_task(job(name, address, sizes, counts[name])) for name in names]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    return {
        name: {"done": c.done, "longest_s": round(c.longest_s, 3), "problem": c.problem}
        for name, c in counts.items()
    }


def main() -> None:
    """Take an address, sizes, names of jobs and seconds; print how often each was done."""
    address, sizes, names, seconds = json.loads(sys.argv[1])
    found = uvloop.run(run(tuple(address), Sizes(*sizes), names, seconds))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
