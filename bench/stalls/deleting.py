"""Measures the latency of 2,000 records per second while 200 topics are deleted on a slow disk.

    python -m bench.stalls.deleting
    python -m bench.stalls.deleting --source OTHER/src     # another commit's broker

The disk takes 50 ms per sync. A producer sends 20 records every 10 ms to a topic that is synced in
the background, so that its responses wait for the event loop and not for the disk. A probe sends
the smallest request every 5 ms. Meanwhile a client overwrites the same keys in a compacted topic,
whose segments the broker swaps. Topics are created and deleted three times.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.testing.process import BrokerSubprocess
from bench.places import ROOT
from bench.stalls.frames import Line, batch, produce
from bench.stalls.ground import COMPACTED, POLITE, SETTINGS, Sizes, create, topic
from bench.stalls.polite import Ask, Samples, probe, repeat
from bench.stalls.rude import Count, compacted
from tests.support.clusters.cluster_shim import Control, compiled_shim

SYNC_MS = 50
TURNS = 3
CALM_S = 10.0
PRODUCE_INTERVAL_S, RECORDS = 0.010, 20
PROBE_INTERVAL_S = 0.005
DELETE_VERSION = 5
Address = tuple[str, int]


async def producer(address: Address) -> Ask:
    """Return a function that sends a batch and waits until the leader has it."""
    line = await Line.open(address)
    frame = produce(POLITE, {0: batch([b"k"] * RECORDS, 100)}, acks=1)

    async def ask() -> None:
        await line.ask(frame)

    return ask


async def make(line: Line, names: list[str]) -> None:
    """Create topics with one record each."""
    await create(line, [topic(name) for name in names])
    content = batch([b"k"], 100)
    for name in names:
        await line.ask(produce(name, {0: content}, acks=1))


async def measure(address: Address, topics: int, control: Control) -> tuple[Samples, list[float]]:
    """Delete topics while clients write; return latencies, and the seconds of each deletion."""
    line, samples = await Line.open(address), Samples()
    await create(line, [topic(POLITE, flush="interval")])
    small = {"cleanup_policy": "compact", "segment_bytes": 1 << 20, "flush": "interval"}
    await create(line, [topic(COMPACTED, 4, **small)])
    control.delay_syncs(SYNC_MS)
    asks = [
        ("produce", await producer(address), PRODUCE_INTERVAL_S),
        ("probe", await probe(address), PROBE_INTERVAL_S),
    ]
    samples.part = "swaps alone"
    running = [asyncio.create_task(repeat(*each, 0.0, samples)) for each in asks]
    running.append(asyncio.create_task(compacted(address, Sizes(compacted=4), Count())))
    await asyncio.sleep(CALM_S)
    took = []
    for turn in range(TURNS):
        names = [f"short-lived-{turn}-{number}" for number in range(topics)]
        samples.part = f"{topics} topics made"
        await make(line, names)
        samples.part = f"{topics} topics deleted"
        begun = time.perf_counter()
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=120_000)
        await line.message(request, DELETE_VERSION, DeleteTopicsResponse)
        took.append(time.perf_counter() - begun)
        await asyncio.sleep(CALM_S)
    for task in running:
        task.cancel()
    return samples, took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--source", default=str(ROOT / "src"), help="the broker's source folder")
    parser.add_argument("--topics", type=int, default=200)
    options, console = parser.parse_args(), Console()
    with tempfile.TemporaryDirectory(prefix="deleting-") as work:
        control = Control(Path(work) / "control", compiled_shim(Path(work)))
        environment = {**control.environment, "PYTHONPATH": str(Path(options.source).resolve())}
        data = Path(work) / "data"
        with BrokerSubprocess(data, settings=SETTINGS, environment=environment) as broker:
            samples, took = uvloop.run(measure(broker.address, options.topics, control))
            control.delay_syncs(0)
    table = Table("part", "kind", "n", "p50 ms", "p99 ms", "max ms", "> 10 ms", "> 1 s")
    for part, kinds in samples.report()["parts"].items():
        for kind, found in kinds.items():
            names = ("n", "p50_ms", "p99_ms", "max_ms", "over_10_ms", "over_1_s")
            table.add_row(part, kind, *(str(found[name]) for name in names))
    console.print(table)
    console.print("seconds a deletion:", [round(each, 2) for each in took])


if __name__ == "__main__":
    main()
