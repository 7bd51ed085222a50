"""Measures how long clients wait when a node stops, as distributions.

    python -m tests.support.clusters.cluster_failover --rounds 20 --session 9s --report FILE

A gap is the largest pause between two acknowledged produces to a partition that the node led, over
all such partitions and all producers. It includes the producer's normal waiting time, and the time
until the failure is detected. A controller is absent until a broker can create a topic again.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.testing.cluster_processes import SETTINGS, ClusterProcesses
from barnabas.testing.cluster_view import NoAnswerError
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_ledger import now_us, read_acks
from tests.support.clusters.cluster_workload import LOAD, Crowd, Workload

KILL = "SIGKILL of a leader"
STOP = "planned stop of a leader"
CONTROLLER = "SIGKILL of the controller"
SECOND_US = 1_000_000
CREATE_VERSION = 5
PROBE_S = 1.0
FAILOVER_S = 60.0
CROWD = Crowd(producers=2, rate=500, transactors=0, members=0, watched=0, ledger_partitions=1)


def largest_gap_us(times_us: Iterable[int], since_us: int, until_us: int) -> int:
    """Return the longest time without an event that overlaps a time span.

    A pause at its end counts up to that end.
    """
    inside = [time for time in sorted(times_us) if time < until_us] + [until_us]
    gaps = [after - before for before, after in pairwise(inside) if after > since_us]
    return max(gaps, default=until_us - since_us)


def distribution(samples_s: Sequence[float]) -> dict[str, Any]:
    """Return a summary of measurements."""
    ordered = sorted(samples_s)
    if not ordered:
        return {"n": 0}
    return {
        "n": len(ordered),
        "min_s": ordered[0],
        "p50_s": _quantile(ordered, 0.5),
        "p90_s": _quantile(ordered, 0.9),
        "max_s": ordered[-1],
        "samples_s": list(samples_s),
    }


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest sample that is not exceeded by the given share of all samples."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


class Failovers:
    """Runs rounds of one kind after the other on one cluster."""

    def __init__(self, cluster: ClusterProcesses, load: Workload) -> None:
        self._cluster = cluster
        self._load = load
        self._probes = 0
        self.gaps_s: dict[str, list[float]] = {KILL: [], STOP: [], CONTROLLER: []}
        self.controllers_s: list[float] = []

    def round(self, kind: str) -> None:
        """Stop one node, measure, and start it again."""
        cluster = self._cluster
        cluster.wait_healthy((LOAD,))
        self._load.wait_for(500)
        victim = cluster.controller() if kind == CONTROLLER else cluster.leader_of(LOAD, 0)
        led = [
            p for (_, p), seen in cluster.view((LOAD,)).partitions.items() if seen.leader == victim
        ]
        gone_us = now_us()
        cluster.nodes[victim].send(signal.SIGTERM if kind == STOP else signal.SIGKILL)
        if kind == CONTROLLER:
            self.controllers_s.append(self._until_decided(victim, gone_us))
        if led:
            back_us = self._until_led(victim, led)
            gaps = [largest_gap_us(self._times(p), gone_us, back_us) for p in led]
            self.gaps_s[kind].append(max(gaps) / SECOND_US)
        cluster.nodes[victim].wait()
        cluster.nodes[victim].start()

    def _until_led(self, victim: int, partitions: Sequence[int]) -> int:
        """Return when every partition had a leader again and took a record from it."""

        def moved() -> bool:
            try:
                seen = self._cluster.view((LOAD,), but=(victim,)).partitions
            except NoAnswerError:
                return False
            leaders = [seen[LOAD, partition].leader for partition in partitions]
            return all(leader in self._cluster.nodes and leader != victim for leader in leaders)

        eventually(moved, FAILOVER_S)
        moved_us = now_us()
        eventually(lambda: all(max(self._times(p)) > moved_us for p in partitions), FAILOVER_S)
        return now_us()

    def _until_decided(self, victim: int, gone_us: int) -> float:
        """Return the seconds until the other nodes have created a topic."""
        self._probes += 1
        name = f"probe-{self._probes}"
        nodes = [node for number, node in self._cluster.nodes.items() if number != victim]
        eventually(lambda: any(created(node.address, name) for node in nodes), FAILOVER_S)
        return (now_us() - gone_us) / SECOND_US

    def _times(self, partition: int) -> list[int]:
        ledgers = [read_acks(producer.ledger) for producer in self._load.producers]
        return [time for each in ledgers if partition in each for time in each[partition].times_us]


def created(address: tuple[str, int], name: str) -> bool:
    """Return whether a node creates a topic, or finds it created by an earlier attempt."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=2)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(PROBE_S * 1000))
    try:
        with RawClient(address, PROBE_S) as client:
            answer = client.ask(request, CREATE_VERSION, CreateTopicsResponse)
    except (OSError, EOFError):
        return False
    return answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def measure(
    folder: Path, rounds: int, session: str, tell: Callable[[str], object]
) -> dict[str, Any]:
    """Run all rounds; return the distributions."""
    settings: dict[str, object] = {"cluster.broker_session_timeout": session}
    with (
        ClusterProcesses(folder, settings=settings) as cluster,
        Workload(cluster.bootstrap, folder / "ledgers", CROWD) as load,
    ):
        failovers = Failovers(cluster, load)
        for number in range(rounds):
            for kind in (KILL, STOP, CONTROLLER):
                failovers.round(kind)
                tell(f"{number + 1} {kind}: {failovers.gaps_s[kind][-1:]} s")
        load.finish()
    return {
        "settings": {**SETTINGS, **settings},
        "gaps": {kind: distribution(samples) for kind, samples in failovers.gaps_s.items()},
        "controller failover": distribution(failovers.controllers_s),
    }


def main() -> int:
    """Read the command line, measure, and write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--session", default="9s", help="the brokers' session timeout")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        figures = measure(Path(folder), options.rounds, options.session, _say)
    text = json.dumps(figures, indent=1)
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(text + "\n")
    _say(text)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
