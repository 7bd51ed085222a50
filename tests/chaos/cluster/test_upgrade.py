"""Brokers of two releases in one cluster under load: upgraded, rolled back, upgraded, finalized."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.testing import process
from barnabas.testing.cluster_processes import ClusterProcesses
from tests.support.clusters.cluster_upgrade import upgrade

pytestmark = [pytest.mark.slow]

OLDER = f"from barnabas.metadata import features; features.LATEST_LEVEL = 1; {process.SERVE}"
"""Starts a broker that knows feature levels, but not the latest one."""
CANNOT_GO_ON = 70


@pytest.mark.timeout(900)
def test_an_upgrade_and_a_rollback_take_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = upgrade(tmp_path)
    assert report["problems"] == []
    assert report["errors"] == []
    assert report["read"] == report["acknowledged"]
    for name in ("acknowledged", "committed", "aborted", "commits", "retried", "longest_pause_ms"):
        record_property(name, report[name])


def test_a_broker_that_is_too_old_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ClusterProcesses(tmp_path) as cluster:
        node = cluster.nodes[3]
        assert node.terminate() == 0
        monkeypatch.setattr(process, "SERVE", OLDER)
        node.spawn()
        assert node.wait() == CANNOT_GO_ON
        (said,) = node.log_lines("this release is too old for its cluster, so it stops")
        assert "Install on this machine the release that the other brokers run" in said["problem"]
        monkeypatch.undo()
        node.start()
        cluster.wait_healthy()
