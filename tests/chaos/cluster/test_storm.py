"""Faults of every class on three real brokers under load, and every promise kept."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clusters.cluster_faults import PowerLoss
from tests.support.clusters.cluster_ground import DISKS
from tests.support.clusters.cluster_storm import fresh_scene, storm
from tests.support.clusters.cluster_workload import Crowd, Workload

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

FAULTS = int(os.environ.get("CHAOS_FAULTS", "1"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))


@pytest.mark.timeout(120 + 600 * FAULTS)
def test_a_storm_takes_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = storm(tmp_path, faults=FAULTS, seed=SEED, crowd=Crowd())
    assert report["problems"] == []
    for name in ("faults", "missing", "acknowledged", "committed", "aborted", "commits"):
        record_property(name, report[name])


@pytest.mark.timeout(240)
def test_a_broken_promise_is_noticed(tmp_path: Path) -> None:
    """Where nothing is synced, power that fails everywhere takes what was acknowledged."""
    settings: dict[str, object] = {"storage.flush": "interval", "storage.fsync_interval": "1h"}
    crowd = Crowd(transactors=0, members=0)
    with fresh_scene(tmp_path, SEED, settings) as scene:
        if reason := scene.ground.missing.get(DISKS):
            pytest.skip(reason)
        with Workload(scene.cluster.bootstrap, tmp_path / "ledgers", crowd) as load:
            load.wait_for(5000)
            losses = {number: PowerLoss() for number in scene.cluster.nodes}
            for number, loss in losses.items():
                loss.begin(scene, number)
            for number in losses:
                scene.ground.disks[number].mount()
                scene.node(number).spawn()
            for number in losses:
                scene.node(number).wait_ready()
            scene.cluster.wait_healthy()
            for producer in load.producers:
                producer.close()  # they would try for ever to follow on what is gone
            load.finish()
            problems = load.verdict().problems
    assert any("lost: " in problem for problem in problems), problems
