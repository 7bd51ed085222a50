"""Measures faults under load: brokers are killed or stopped, one or all in turn, while a producer
runs.

The producer (`native/gap.c`) sends at a fixed rate to a topic whose leaders are on all nodes. The
figure is the longest time that any of its partitions had no ack.
"""

import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

from bench.brokers import Flush
from bench.cluster_running import Cluster
from bench.cluster_view import UnansweredError, create_topic
from bench.cluster_work import Pace
from bench.loads import Figures, answer
from bench.places import GAP
from bench.process import LoadError, dying_with_parent, kill_group, last_line

PARTITIONS = 6
STEADY_S = 1.0
"""The time of load before a fault, and after all partitions have leaders again."""
READY_TIMEOUT_S = 40.0
FINISH_TIMEOUT_S = 90.0
PROBE_LIMIT_S = 60.0
PROBE_PAUSE_S = 0.02


class Watch:
    """A running producer, from its first acks on all partitions until its output is read."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        where = ["--bootstrap", bootstrap, "--topic", topic, "--partitions", str(PARTITIONS)]
        self._child = subprocess.Popen(
            dying_with_parent([GAP, *where]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        try:
            self._wait_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _wait_ready(self) -> None:
        watchdog = threading.Timer(READY_TIMEOUT_S, kill_group, [self._child.pid])
        watchdog.start()
        try:
            assert self._child.stdout
            assert self._child.stderr
            if self._child.stdout.readline() != "ready\n":
                raise LoadError(
                    last_line(self._child.stderr.read()) or "the producer did not start"
                )
        finally:
            watchdog.cancel()

    def finish(self) -> Figures:
        """Stop its sending, wait for requests in flight, and read its output."""
        try:
            output, errors = self._child.communicate(timeout=FINISH_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise LoadError("the producer did not finish") from error
        if self._child.returncode:
            raise LoadError(last_line(errors) or f"exit {self._child.returncode}")
        return answer(output)

    def _end(self) -> None:
        kill_group(self._child.pid)
        with self._child:
            pass


class Victim(Enum):
    """The node that the fault hits."""

    LEADER = "leader"
    """One that leads partitions and not the quorum."""
    CONTROLLER = "controller"
    """The quorum's leader; it leads partitions too."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One node is killed, or stopped as planned, under load; then it is started again."""

    victim: Victim
    is_planned: bool = False

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Repeat the fault, each time with a new topic whose leaders are spread."""
        for _ in range(pace.incidents):
            with (
                cluster.topic(PARTITIONS, Flush.LATER) as topic,
                Watch(cluster.bootstrap, topic) as watch,
            ):
                number = self.choose(cluster, topic)
                time.sleep(STEADY_S)
                figures = self.strike(cluster, number)
                wait_led_by_others(cluster, topic, number)
                time.sleep(STEADY_S)
                figures |= watch.finish()
                bring_back(cluster, number, topic)
            yield figures

    def choose(self, cluster: Cluster, topic: str) -> int:
        """The node to stop."""
        controller = cluster.controller()
        if self.victim is Victim.CONTROLLER:
            return controller
        return victim_among(cluster.leaders(topic).values(), controller)

    def strike(self, cluster: Cluster, number: int) -> Figures:
        """Stop it; if it was the controller, measure how long there is none."""
        began = time.monotonic()
        if self.is_planned:
            cluster.stop(number)
            return {"stop_ms": (time.monotonic() - began) * 1000}
        cluster.kill(number)
        if self.victim is Victim.CONTROLLER:
            return {"controller_ms": until_controlled(cluster, began) * 1000}
        return {}


def victim_among(leaders: Iterable[int], controller: int) -> int:
    """The lowest number that leads a partition and is not the controller."""
    others = {leader for leader in leaders if leader not in (controller, -1)}
    if not others:
        raise LoadError("only the controller leads partitions")
    return min(others)


def until_controlled(cluster: Cluster, began: float) -> float:
    """Seconds until a topic could be created, tried at the remaining nodes in turn."""
    names: list[str] = []
    while time.monotonic() - began < PROBE_LIMIT_S:
        for node in cluster.running():
            names.append(f"probe-{time.monotonic_ns()}")
            with suppress(UnansweredError):
                create_topic(node.port, names[-1], replicas=2)
                took = time.monotonic() - began
                cluster.delete(names)
                return took
            time.sleep(PROBE_PAUSE_S)
    raise LoadError(f"no topic could be created within {PROBE_LIMIT_S:.0f} s")


def wait_led_by_others(cluster: Cluster, topic: str, gone: int) -> None:
    """Return once every partition has another leader than the stopped node."""

    def is_led() -> bool:
        return all(leader not in (gone, -1) for leader in cluster.leaders(topic).values())

    cluster.wait("leaders elsewhere", is_led)


def bring_back(cluster: Cluster, number: int, topic: str) -> None:
    """Start a node again and wait until it has all records."""
    cluster.start(number)
    cluster.wait("healthy again", cluster.is_healthy)
    cluster.wait_whole([topic], PARTITIONS)


@dataclass(frozen=True, kw_only=True)
class RollingRestart:
    """Every node in turn is stopped and started, and all replicas get in sync again."""

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Twice if faults are repeated."""
        for _ in range(min(2, pace.incidents)):
            with (
                cluster.topic(PARTITIONS, Flush.LATER) as topic,
                Watch(cluster.bootstrap, topic) as watch,
            ):
                began = time.monotonic()
                for node in cluster.nodes:
                    cluster.stop(node.number)
                    bring_back(cluster, node.number, topic)
                total_s = time.monotonic() - began
                yield {"rolling_s": total_s, **watch.finish()}
