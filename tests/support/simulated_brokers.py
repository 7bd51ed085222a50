"""Whole brokers on simulated hosts, on a network without losses."""

from collections.abc import Callable

from barnabas.node.node import Node
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import World

PATIENCE_MS = 60_000


class SimulatedBrokers:
    """Hosts that form a cluster once a test starts them."""

    def __init__(self, count: int = 3, *, keep_trace: bool = False) -> None:
        self.world = World(1, keep_trace=keep_trace)
        self.cluster = Cluster.of(self.world, count)

    @property
    def controller(self) -> Host:
        """Return the host of the active controller."""
        found = self.cluster.controller
        assert found is not None
        return found

    def start_hosts(self) -> None:
        """Start every host."""
        for host in self.cluster.hosts:
            host.start()

    def run_until(self, done: Callable[[], bool], what: str) -> int:
        """Let time pass until a condition holds; return how long it took."""
        began_ms = self.world.now_ms
        self.world.run_until(done, began_ms + PATIENCE_MS, what)
        return self.world.now_ms - began_ms


def node_of(host: Host) -> Node:
    """Return the node of a host that is up."""
    assert host.node is not None
    return host.node
