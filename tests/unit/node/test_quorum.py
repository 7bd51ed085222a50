"""Tests what a node knows of the metadata log."""

from barnabas.node.node import Node
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.host import Host
from barnabas.sim.world import World


def started() -> Node:
    host = Host(World(1), Faults())
    host.start()
    assert host.node is not None
    return host.node


def test_a_snapshot_counts_as_applied() -> None:
    """A broker that starts from a snapshot must report its offset, or it is never unfenced."""
    quorum = started().quorum
    cluster_id, records = quorum.image.cluster_id, list(quorum.snapshot())
    quorum.offset, quorum.raft.identity.cluster_id = 0, None
    quorum.load_snapshot(records)
    assert quorum.offset == quorum.raft.high_watermark > 0
    assert quorum.raft.identity.cluster_id == quorum.image.cluster_id == cluster_id
