"""Faults of every class on three real brokers under load, and every promise kept."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.testing.cluster_storm import storm
from barnabas.testing.cluster_workload import Crowd

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
