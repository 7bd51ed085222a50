"""Runs fifty polite clients, each with one request in flight, and a probe of the event loop.

Every request has a due time; its latency counts from then on, so that a stall counts for each
request that it delayed. It runs in a separate process, which reports JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.testing.raw_client import frame_of, framed
from bench.stalls.frames import Line, batch, produce
from bench.stalls.ground import POLITE

PRODUCERS, CONSUMERS, MEMBERS = 20, 20, 10
INTERVAL_S = 0.1
PRODUCE_INTERVAL_S = 0.5
"""With 50 ms a sync, four threads sync 80 partitions a second; these producers need 40."""
PROBE_INTERVAL_S = 0.05
FETCH_VERSION, JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 11, 3, 2, 2
SESSION_MS = 10_000
MEMBER_UNKNOWN = (25, 22)

Address = tuple[str, int]
Ask = Callable[[], Awaitable[None]]


class Samples:
    """Latencies by kind, in the parts of the run."""

    def __init__(self) -> None:
        self.part = ""
        self.taken: dict[str, dict[str, list[float]]] = {}
        self.lost_sessions = 0
        self.errors: list[str] = []

    def add(self, kind: str, seconds: float) -> None:
        """Record one response."""
        self.taken.setdefault(self.part, {}).setdefault(kind, []).append(seconds)

    def report(self) -> dict[str, Any]:
        """Return the report, in milliseconds."""
        parts = {
            part: {kind: summary(found) for kind, found in sorted(kinds.items())}
            for part, kinds in self.taken.items()
        }
        return {"parts": parts, "lost_sessions": self.lost_sessions, "errors": self.errors[:20]}


def summary(seconds: list[float]) -> dict[str, float]:
    """Return the distribution of some latencies in milliseconds."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)

    return {
        "n": len(ordered),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "p999_ms": at(0.999),
        "max_ms": at(1.0),
        "over_10_ms": sum(each > 0.010 for each in ordered),
        "over_100_ms": sum(each > 0.100 for each in ordered),
        "over_1_s": sum(each > 1.0 for each in ordered),
    }


async def repeat(kind: str, ask: Ask, interval_s: float, first_s: float, samples: Samples) -> None:
    """Send requests at fixed times; a late one is sent as soon as the previous one is answered."""
    due = time.perf_counter() + first_s
    while True:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        try:
            await ask()
        except (OSError, EOFError, RuntimeError) as error:
            samples.errors.append(f"{kind}: {error!r}")
            return
        samples.add(kind, time.perf_counter() - due)
        due += interval_s


async def producer(address: Address, partition: int) -> Ask:
    """Return a function that sends one record and waits for the response."""
    line = await Line.open(address)
    frame = produce(POLITE, {partition: batch([b"k"], 100)})

    async def ask() -> None:
        await line.ask(frame)

    return ask


async def consumer(address: Address, partition: int) -> Ask:
    """Return a function that fetches the first records of a partition."""
    line = await Line.open(address)
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=4096)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=4096,
        session_epoch=-1,
        topics=[FetchTopic(topic=POLITE, partitions=[wanted])],
    )
    frame = framed(frame_of(request, FETCH_VERSION))

    async def ask() -> None:
        await line.ask(frame)

    return ask


async def member(address: Address, group: str, samples: Samples) -> Ask:
    """Return a function that sends one heartbeat, and rejoins if the session was lost."""
    line = await Line.open(address)
    beat = HeartbeatRequest(group_id=group)

    async def join() -> None:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0" * 10)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[protocol],
        )
        joined = await line.message(request, JOIN_VERSION, JoinGroupResponse)
        beat.generation_id, beat.member_id = joined.generation_id, joined.member_id
        mine = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"\0" * 10)
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[mine],
        )
        await line.message(sync, SYNC_VERSION, SyncGroupResponse)

    async def ask() -> None:
        answer = await line.message(beat, HEARTBEAT_VERSION, HeartbeatResponse)
        if answer.error_code in MEMBER_UNKNOWN:
            samples.lost_sessions += 1
            await join()

    await join()
    return ask


async def probe(address: Address) -> Ask:
    """Return a function that sends the smallest request."""
    line = await Line.open(address)
    frame = framed(frame_of(ApiVersionsRequest(), 0))

    async def ask() -> None:
        await line.ask(frame)

    return ask


async def measure(address: Address, parts: list[tuple[str, float]]) -> dict[str, Any]:
    """Run all clients for as long as the parts of the run last."""
    samples = Samples()
    asks: list[tuple[str, Ask, float]] = [("probe", await probe(address), PROBE_INTERVAL_S)]
    asks += [("produce", await producer(address, n), PRODUCE_INTERVAL_S) for n in range(PRODUCERS)]
    asks += [("fetch", await consumer(address, n), INTERVAL_S) for n in range(CONSUMERS)]
    asks += [
        ("heartbeat", await member(address, f"polite-{n}", samples), INTERVAL_S)
        for n in range(MEMBERS)
    ]
    running = []
    for number, (kind, ask, interval_s) in enumerate(asks):
        first_s = interval_s * number / len(asks)
        running.append(asyncio.create_task(repeat(kind, ask, interval_s, first_s, samples)))
    for part, seconds in parts:
        samples.part = part
        sys.stdout.write(json.dumps({"part": part}) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(seconds)
    for task in running:
        task.cancel()
    return samples.report()


def main() -> None:
    """Take an address and the parts of the run; print one line per part, then the report."""
    address, parts = json.loads(sys.argv[1])
    found = uvloop.run(measure(tuple(address), [tuple(part) for part in parts]))
    sys.stdout.write(json.dumps({"report": found}) + "\n")


if __name__ == "__main__":
    main()
