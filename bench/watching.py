"""Measures a watcher of a large cluster: time and memory of a collection, and of the page.

    python -m bench.watching --partitions 9900 --groups 10000

One broker has topics of 100 partitions and groups without members, each with commits for a few
partitions. The broker is a process of its own, so that the figures are those of the watcher.
"""

import argparse
import resource
import statistics
import tempfile
import threading
import time
from pathlib import Path

from rich.console import Console

from barnabas.exporter.cluster_series import families
from barnabas.exporter.series_text import page
from barnabas.monitor.cluster_collecting import Collector
from barnabas.monitor.observing import Observer
from barnabas.monitor.states import ClusterState
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from barnabas.wire.cluster_wire import Kind, Wire
from barnabas.wire.pipeline import Pipeline

TOPIC_PARTITIONS = 100
COMMITS_AT_ONCE = 50
ROUNDS = 6
INTERVAL_S = 10.0
PATIENCE_S = 300.0
CEILINGS: dict[type[Message], int] = {OffsetCommitRequest: 9}


def main() -> None:
    """Fill a broker, then collect several times."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerSubprocess(Path(folder))
        broker.spawn()
        broker.wait_ready()
        try:
            with_topics(broker, options.partitions)
            with_groups(broker, options.groups, options.partitions, options.commits)
            measure(broker, Console())
        finally:
            broker.close()


def with_topics(broker: BrokerSubprocess, partitions: int) -> None:
    """Create topics of `TOPIC_PARTITIONS` partitions."""
    link = Pipeline(*broker.address, answer_timeout_s=PATIENCE_S)
    for number in range(partitions // TOPIC_PARTITIONS):
        topic = CreatableTopic(
            name=f"topic-{number}", num_partitions=TOPIC_PARTITIONS, replication_factor=1
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=int(PATIENCE_S * 1000))
        answer = link.ask(request, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    link.close()


def with_groups(broker: BrokerSubprocess, groups: int, partitions: int, commits: int) -> None:
    """Commit the beginning of some partitions for each group."""
    with Wire({"bootstrap.servers": broker.bootstrap}) as wire:
        wire.coordinator(Kind.GROUP, "group-0")  # creates the topic of the coordinators
    link = Pipeline(*broker.address, ceilings=CEILINGS, answer_timeout_s=PATIENCE_S)
    for first in range(0, groups, COMMITS_AT_ONCE):
        numbers = range(first, min(groups, first + COMMITS_AT_ONCE))
        for number in numbers:
            link.send(_commit(number, partitions, commits))
        codes = [
            each.error_code
            for _ in numbers
            for topic in link.receive(OffsetCommitResponse).topics
            for each in topic.partitions
        ]
        if any(codes):  # the coordinator is being made
            eventually(lambda: _commits_succeed(link, partitions, commits), PATIENCE_S)
            for number in numbers:
                link.ask(_commit(number, partitions, commits), OffsetCommitResponse)
    link.close()


def _commits_succeed(link: Pipeline, partitions: int, commits: int) -> bool:
    answer = link.ask(_commit(0, partitions, commits), OffsetCommitResponse)
    return not any(each.error_code for topic in answer.topics for each in topic.partitions)


def _commit(number: int, partitions: int, commits: int) -> OffsetCommitRequest:
    topic = number % (partitions // TOPIC_PARTITIONS)
    return OffsetCommitRequest(
        group_id=f"group-{number}",
        topics=[
            OffsetCommitRequestTopic(
                name=f"topic-{topic}",
                partitions=[
                    OffsetCommitRequestPartition(partition_index=each, committed_offset=0)
                    for each in range(commits)
                ],
            )
        ],
    )


def measure(broker: BrokerSubprocess, console: Console) -> None:
    """Collect, observe and render several times; print the medians and the memory."""
    before = _peak_mib()
    collector = Collector({"bootstrap.servers": broker.bootstrap}, answer_timeout_s=60)
    observer = Observer(INTERVAL_S)
    collecting, observing, rendering = [], [], []
    state: ClusterState | None = None
    size = 0
    stall = Stalls(broker)
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        collected = collector.collect()
        collected = collector.with_times(collected, observer.unread(collected))
        collecting.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        state = observer.observe(collected)
        observing.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        size = len(page(families(state, "bench")))
        rendering.append(time.perf_counter() - began_s)
    stall.stop()
    collector.close()
    assert state is not None
    console.print(f"partitions {state.overview.partitions.total}, groups {len(state.groups)}")
    console.print(f"troubles {list(state.troubles)}")
    for name, times in (("collect", collecting), ("observe", observing), ("render", rendering)):
        console.print(f"{name:8} {statistics.median(times):.2f} s, at most {max(times):.2f} s")
    console.print(f"page {size / 1e6:.1f} MB, peak memory +{_peak_mib() - before:.0f} MiB")
    console.print(f"slowest answer to another client meanwhile: {stall.slowest_s * 1000:.0f} ms")


class Stalls:
    """Another client, which asks the broker for its metadata of no topic again and again."""

    def __init__(self, broker: BrokerSubprocess) -> None:
        self.slowest_s = 0.0
        self._over = threading.Event()
        self._link = Pipeline(*broker.address)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self._thread.join()
        self._link.close()

    def _run(self) -> None:
        while not self._over.wait(0.005):
            began_s = time.perf_counter()
            self._link.ask(MetadataRequest(topics=[]), MetadataResponse)
            self.slowest_s = max(self.slowest_s, time.perf_counter() - began_s)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.watching", description=__doc__)
    parser.add_argument("--partitions", type=int, default=9_900)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=3, help="partitions of each group")
    return parser.parse_args()


if __name__ == "__main__":
    main()
