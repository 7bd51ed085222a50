"""Run a cluster of broker processes that tests can kill, pause, disconnect and restart.

    with ClusterProcesses(folder) as cluster:
        create_topic(cluster.bootstrap, "load", 6)
        node = cluster.nodes[cluster.leader_of("load", 0)]
        node.kill()
        node.spawn()
        cluster.wait_healthy()

The addresses of the nodes (`place`), their directories and their environment variables are
optional; by default they share 127.0.0.1 and a directory.
"""

import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from barnabas.testing.cluster_view import NO_LEADER, ClusterView, NoAnswerError, any_view, view
from barnabas.testing.places import Loopback, Place
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually

PATIENCE_S = 90.0
LOG_SHOWN = 6000
SETTINGS: Mapping[str, object] = {
    "replication.default_replication_factor": 3,
    "replication.min_insync_replicas": 2,
    "replication.replica_lag_time_max": "3s",
    "cluster.broker_session_timeout": "3s",
    "cluster.broker_heartbeat_interval": "500ms",
    "groups.offsets_partitions": 6,
    "share.state_partitions": 6,
    "transactions.log_partitions": 6,
    "transactions.abort_check_interval": "1s",
}
"""Replication factor 3, min ISR 2, and short timeouts, so that failovers are fast."""


class Config(NamedTuple):
    """A settings file for a node, or for all, with listeners for clients."""

    file: Path
    listener: str
    """The plaintext listener that gets the address of a node."""
    arguments: tuple[str, ...] = ()
    """Further options of `barnabas serve`."""


class ClusterNode(BrokerSubprocess):
    """One broker process of a cluster."""

    def __init__(
        self,
        number: int,
        data: Path,
        place: Place,
        voters: str,
        settings: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
        config: Config | None = None,
    ) -> None:
        host, port = place.client_address(number)
        peer_host, peer_port = place.peer_address(number)
        peers: tuple[str, ...] = ("--peer-listen", f"{peer_host}:{peer_port}", "--voters", voters)
        if config is None and not peer_host.startswith("127."):
            peers = (*peers, "--allow-plaintext-peers")
        file = () if config is None else ("--config", str(config.file), *config.arguments)
        arguments = ("--node-id", str(number), *peers, *file)
        super().__init__(
            data,
            settings=settings,
            environment=environment or {},
            arguments=arguments,
            host=host,
            port=port,
            listener="" if config is None else config.listener,
        )
        self.number = number
        self._place = place

    def _prefix(self) -> list[str]:
        return [*self._place.prefix(self.number), *super()._prefix()]


class ClusterProcesses:
    """All broker processes of one cluster."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        place: Place | None = None,
        data: Mapping[int, Path] | None = None,
        environments: Mapping[int, Mapping[str, str]] | None = None,
        config: Config | Mapping[int, Config] | None = None,
    ) -> None:
        """Take a directory, settings that override `SETTINGS`, and options by node id.

        A settings file is for all nodes, or each has its own.
        """
        numbers = range(1, brokers + 1)
        self.place = place or Loopback()
        voters = ",".join(_voter(n, self.place.peer_address(n)) for n in numbers)
        self.nodes: dict[int, ClusterNode] = {}
        for number in numbers:
            self.nodes[number] = ClusterNode(
                number,
                (data or {}).get(number, folder / f"node-{number}"),
                self.place,
                voters,
                {**SETTINGS, **(settings or {})},
                (environments or {}).get(number),
                config[number] if isinstance(config, Mapping) else config,
            )

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: all nodes."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    def start(self) -> Self:
        """Start all nodes and return once the cluster is healthy."""
        for node in self.nodes.values():
            node.spawn()
        for node in self.nodes.values():
            node.wait_ready()
        self.wait_healthy()
        return self

    def view(self, topics: Iterable[str] | None = None, *, but: Sequence[int] = ()) -> ClusterView:
        """Ask a running node for the state of the cluster, except the nodes in `but`."""
        asked = [n.address for n in self.nodes.values() if n.running and n.number not in but]
        return any_view(asked, topics)

    def problems(self, topics: Iterable[str] = ()) -> list[str]:
        """Return the reasons why the cluster is not healthy, as seen by every node."""
        found = []
        for node in self.nodes.values():
            try:
                seen = view(node.address)
            except NoAnswerError as error:
                found.append(f"node {node.number}: {error}")
                continue
            told = seen.problems(self.nodes, topics)
            found += [f"node {node.number}: {problem}" for problem in told]
        return found

    def wait_healthy(self, topics: Iterable[str] = (), patience_s: float = PATIENCE_S) -> None:
        """Return once every node sees all nodes, a quorum leader, and all replicas in sync."""
        wanted = tuple(topics)
        last: list[str] = ["no node was asked"]

        def healthy() -> bool:
            last[:] = self.problems(wanted)
            return not last

        try:
            eventually(healthy, patience_s)
        except AssertionError as error:
            raise AssertionError(f"not healthy within {patience_s} s: {last[:12]}") from error

    def wait_replaced(self, number: int, patience_s: float = PATIENCE_S) -> None:
        """Return once other nodes lead all partitions, and the quorum, instead of this node."""
        eventually(lambda: self._is_replaced(number), patience_s)

    def leader_of(self, topic: str, partition: int) -> int:
        """Return the node that leads a partition, once there is one."""
        return eventually(lambda: self._leader(topic, partition))

    def follower_of(self, topic: str, partition: int) -> int:
        """Return a node that follows a partition's leader."""
        leader = self.leader_of(topic, partition)
        replicas = self.view((topic,)).partitions[topic, partition].replicas
        return next(node for node in replicas if node != leader)

    def controller(self) -> int:
        """Return the quorum's leader, once there is one."""
        return eventually(self._quorum_leader)

    def stop(self) -> dict[int, int]:
        """Stop all nodes at the same time; return their exit codes."""
        running = {number: node for number, node in self.nodes.items() if node.running}
        for node in running.values():
            node.send(signal.SIGTERM)
        return {number: node.wait() for number, node in running.items()}

    def close(self) -> None:
        """End all processes."""
        for node in self.nodes.values():
            node.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._show_logs()
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._show_logs()
        self.close()

    def _leader(self, topic: str, partition: int) -> int:
        try:
            seen = self.view((topic,)).partitions.get((topic, partition))
        except NoAnswerError:
            return 0
        return seen.leader if seen and seen.leader in self.nodes else 0

    def _is_replaced(self, number: int) -> bool:
        try:
            seen = self.view(but=(number,))
        except NoAnswerError:
            return False
        leaders = {partition.leader for partition in seen.partitions.values()}
        return seen.quorum_leader != number and leaders.isdisjoint((number, NO_LEADER))

    def _quorum_leader(self) -> int:
        try:
            found = self.view(()).quorum_leader
        except NoAnswerError:
            return 0
        return found if found in self.nodes else 0

    def _show_logs(self) -> None:
        for number, node in self.nodes.items():
            sys.stderr.write(f"--- log of node {number}\n{node.log_text()[-LOG_SHOWN:]}\n")


def _voter(number: int, address: tuple[str, int]) -> str:
    return f"{number}@{address[0]}:{address[1]}"
