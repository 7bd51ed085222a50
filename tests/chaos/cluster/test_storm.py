"""Faults of every class on three real brokers under load, and every guarantee kept."""

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
@pytest.mark.parametrize("secure", [False, True], ids=["plaintext", "secure"])
def test_a_storm_takes_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None], *, secure: bool
) -> None:
    report = storm(tmp_path, faults=FAULTS, seed=SEED, crowd=Crowd(), secure=secure)
    assert report["problems"] == []
    for name in ("faults", "missing", "acknowledged", "committed", "aborted", "commits"):
        record_property(name, report[name])


@pytest.mark.timeout(240)
def test_a_broken_guarantee_is_detected(tmp_path: Path) -> None:
    """Without syncs, a power cut of all machines loses acknowledged records."""
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
                producer.close()  # they would retry forever on lost records
            load.finish()
            problems = load.verdict().problems
    assert any("lost: " in problem for problem in problems), problems
