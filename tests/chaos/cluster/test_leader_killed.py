"""The simplest cluster fault: a leader is killed under load, and no producer loses a record."""

from pathlib import Path

import pytest

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_replicas import check_copies, copies_of
from tests.support.clusters.cluster_workload import LOAD, Crowd, Workload

pytestmark = pytest.mark.chaos

CROWD = Crowd(partitions=3, producers=1, rate=500, members=1, watched=1)


@pytest.mark.timeout(120)
def test_a_killed_leader_takes_nothing_with_it(tmp_path: Path) -> None:
    settings = {"cluster.broker_session_timeout": "2s"}
    with (
        ClusterProcesses(tmp_path, settings=settings) as cluster,
        Workload(cluster.bootstrap, tmp_path / "ledgers", CROWD) as load,
    ):
        load.wait_for(500)
        leader = cluster.leader_of(LOAD, 0)
        cluster.nodes[leader].kill()
        eventually(lambda: cluster.leader_of(LOAD, 0) != leader)
        load.wait_for(500)
        cluster.nodes[leader].start()
        cluster.wait_healthy((LOAD,))
        load.finish()
        verdict = load.verdict()
        ends = load.high_watermarks()
        assert set(cluster.stop().values()) == {0}
        assert verdict.problems == []
        assert verdict.acknowledged > 1000
        assert verdict.committed > 0
        data = {number: node.data for number, node in cluster.nodes.items()}
        for (topic, partition), end in ends.items():
            copies = copies_of(data, topic, partition)
            assert sorted(copies) == [1, 2, 3]
            assert check_copies(copies, end) == []
