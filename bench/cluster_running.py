"""A running cluster whose nodes can be started, killed, stopped and restarted one by one.

Healthy means that every node answers, lists all brokers and knows a leader of the quorum. Other
conditions to wait for are that partitions have leaders, or have all replicas in sync.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import Flush, free_port
from bench.cluster_systems import Node, Shape, System
from bench.cluster_view import UnansweredError, View, controller, view
from bench.places import LOGS, WORK
from bench.process import LoadError, Process, Usage, wait_until
from bench.running import SETTLED_BYTES, bytes_under, finish

PATIENCE_S = 300.0
STOP_PATIENCE_S = 30.0
POLL_S = 0.02
METADATA_FOLDER = "__cluster_metadata*"
METADATA_FILES = (".log", ".checkpoint")


class Cluster:
    """The nodes of one system, on fresh folders."""

    def __init__(self, system: System, shape: Shape) -> None:
        self.system = system
        self.shape = shape
        self._folder = WORK / "data" / f"cluster-{system.name}"
        self.nodes = [
            Node(number, free_port(), free_port(), self._folder / f"node-{number}")
            for number in range(1, shape.nodes + 1)
        ]
        self._processes: dict[int, Process] = {}
        self._topics = 0
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.ready_ms = 0.0
        """From the start of all processes until the cluster was healthy the first time."""

    def __enter__(self) -> Self:
        shutil.rmtree(self._folder, ignore_errors=True)
        try:
            self.system.prepare(self.nodes, self.shape)
            self.ready_ms = self.start_all() * 1000
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- processes -------------------------------------------------------------------------------

    def start_all(self, is_ready: Callable[[], bool] | None = None) -> float:
        """Start every node; return the seconds until the cluster is healthy, or another condition
        holds.
        """
        began = time.monotonic()
        for node in self.nodes:
            self.start(node.number)
        self.wait("start", is_ready or self.is_healthy)
        return time.monotonic() - began

    def start(self, number: int) -> None:
        """Start one node without waiting."""
        node = self.nodes[number - 1]
        log = LOGS / f"cluster-{self.system.name}-{number}.log"
        self._processes[number] = Process(self.system.command(node, self.nodes), log)

    def kill(self, number: int) -> None:
        """Kill a node with SIGKILL, and wait until it is gone."""
        self._processes.pop(number).kill()

    def stop(self, number: int) -> None:
        """A planned stop of one node, until its process has ended."""
        self._processes.pop(number).stop(STOP_PATIENCE_S)

    def stop_all(self) -> None:
        """A planned stop of all nodes at once.

        The last one may wait for a quorum that is gone; after a while it is killed.
        """
        processes, self._processes = list(self._processes.values()), {}
        for process in processes:
            process.ask_to_stop()
        give_up = time.monotonic() + STOP_PATIENCE_S
        for process in processes:
            process.stop(max(0.0, give_up - time.monotonic()))

    def close(self) -> None:
        """Stop all nodes and empty their folders."""
        processes, self._processes = list(self._processes.values()), {}
        for process in processes:
            process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def usage(self) -> Usage:
        """The resource usage of all nodes so far."""
        each = [process.usage() for process in self._processes.values()]
        return Usage(
            cpu_s=sum(usage.cpu_s for usage in each),
            resident_mb=sum(usage.resident_mb for usage in each),
            resident_max_mb=sum(usage.resident_max_mb for usage in each),
        )

    # --- questions -------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """The bootstrap address: any node."""
        return ",".join(node.address for node in self.nodes)

    def port(self, number: int) -> int:
        """The client address of a node."""
        return self.nodes[number - 1].port

    def running(self) -> list[Node]:
        """The nodes that were not stopped."""
        return [node for node in self.nodes if node.number in self._processes]

    def is_healthy(self) -> bool:
        """Whether all nodes answer, know each other and know the quorum's leader."""
        everyone = {node.number for node in self.nodes}
        return self.controller() > 0 and all(
            view(node.port, []).brokers >= everyone for node in self.running()
        )

    def holds(
        self, topics: Sequence[str] | None, partitions: int, is_so: Callable[[View], bool]
    ) -> bool:
        """Whether all running nodes know so many partitions, and each view meets a condition."""
        return all(
            len(seen.partitions) == partitions and is_so(seen)
            for seen in (view(node.port, topics) for node in self.running())
        )

    def controller(self) -> int:
        """The quorum's leader according to the first node that knows it, or -1."""
        for node in self.running():
            with suppress(UnansweredError):
                if (leader := controller(node.port)) > 0:
                    return leader
        return -1

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition, according to a running node."""
        return view(self.running()[0].port, [topic]).leaders(topic)

    def metadata_bytes(self) -> int:
        """Log and snapshots of the metadata, on the node that has most."""
        return max(metadata_bytes(node.data) for node in self.nodes)

    def wait(self, what: str, is_true: Callable[[], bool]) -> None:
        """Poll until a condition holds; fail at once if a node ends meanwhile."""

        def holds() -> bool:
            for number, process in self._processes.items():
                if not process.alive:
                    raise LoadError(f"node {number} ended: {process.last_words()[:200]}")
            try:
                return is_true()
            except UnansweredError:
                return False

        wait_until(what, holds, PATIENCE_S, POLL_S)

    # --- topics ----------------------------------------------------------------------------------

    @contextmanager
    def topic(self, partitions: int, flush: Flush, replicas: int | None = None) -> Iterator[str]:
        """A new topic with all its replicas in sync, which is deleted afterwards with its bytes."""
        self._topics += 1
        name = f"bench-{self._topics}"
        replicas = replicas or self.shape.replicas
        config = self.system.topic_config(flush)
        config |= {"min.insync.replicas": str(min(replicas, self.shape.in_sync_min))}
        try:
            self.create([NewTopic(name, partitions, replicas, config=config)])
            self.wait_whole([name], partitions)
            yield name
        finally:
            self.delete([name])

    def create(self, topics: Sequence[NewTopic]) -> None:
        """Create topics."""
        try:
            finish(self._admin.create_topics(list(topics)))
        except (KafkaException, TimeoutError) as error:
            raise LoadError(f"cannot create topics: {error}") from error

    def wait_whole(self, topics: Sequence[str], partitions: int) -> None:
        """Return once all replicas of all partitions are in sync, according to every node."""
        self.wait("all replicas in sync", lambda: self.holds(topics, partitions, is_whole))

    def delete(self, names: Sequence[str]) -> None:
        """Delete topics, and wait until their bytes are gone, so that rows do not affect each
        other.
        """
        with suppress(KafkaException, TimeoutError):
            finish(self._admin.delete_topics(list(names)))
        limit = SETTLED_BYTES * len(self.nodes)
        with suppress(LoadError):
            wait_until("deletion", lambda: bytes_under(self._folder) < limit, 8)
        os.sync()


def is_led(seen: View) -> bool:
    """Whether every partition has a leader."""
    return all(partition.is_led for partition in seen.partitions.values())


def is_whole(seen: View) -> bool:
    """Whether every partition has all its replicas in sync."""
    return all(partition.is_whole for partition in seen.partitions.values())


def metadata_bytes(folder: Path) -> int:
    """The bytes of the metadata's log and snapshots below a node's folder; indexes left out."""
    found: Iterable[Path] = folder.rglob(f"{METADATA_FOLDER}/*")
    return sum(path.stat().st_size for path in found if path.suffix in METADATA_FILES)
