"""Tests precision and recall of the findings on simulated fleets, with seeds not used for tuning.

The counters of simulated cards are invented: this shows that findings distinguish the faults as
they are understood, not that real cards look like this.
"""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

from barnabas.telemetry.findings.evaluation import Label, Reported, Score, evaluate
from barnabas.telemetry.findings.finding import us
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.samples.sample_messages import Snapshot, content_type, decode
from barnabas.telemetry.simulation import Fault, FleetSettings, simulate
from barnabas.telemetry.simulation.truth import FINDING
from tests.support.pipelines.phase_findings import findings_of, silver_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAULTS = (
    Fault.IDLE,
    Fault.PARKED_MEMORY,
    Fault.STARVED,
    Fault.POWER_CAPPED,
    Fault.LAUNCH_BOUND,
    Fault.MEMORY_BOUND,
    Fault.PCIE_BOUND,
    Fault.NVLINK_BOUND,
)


def scores(spark: "SparkSession", seed: int) -> dict[str, Score]:
    fleet = simulate(
        FleetSettings(gpus=96, seed=seed, duration_ms=240_000, faults=FAULTS, fault_share=0.5)
    )
    found = [decode(each.value, content_type(each.headers)) for each in fleet.messages()]
    snapshots = [each for each in found if isinstance(each, Snapshot)]
    findings = findings_of(spark, silver_of(snapshots), Thresholds())
    labels = [
        Label(each.gpu_id, each.name, each.start_ms * 1000, each.end_ms * 1000, each.optional)
        for each in fleet.truth
        if each.kind == FINDING
    ]
    reported = [
        Reported(each.gpu_id, each.finding, each.window_start, each.window_end) for each in findings
    ]
    first = min(each.timestamp_ms for each in snapshots) * 1000 // us(10) * us(10)
    last = max(each.timestamp_ms for each in snapshots) * 1000
    windows = [(start, start + us(10)) for start in range(first, last, us(10))]
    return {each.finding: each for each in evaluate(labels, reported, windows, Thresholds())}


@pytest.mark.parametrize("seed", [20_261_118, 71_077_345])
def test_every_fault_of_a_job_is_distinguished_from_the_others(
    spark: "SparkSession", seed: int
) -> None:
    found = scores(spark, seed)
    for fault in (Fault.MEMORY_BOUND, Fault.PCIE_BOUND, Fault.NVLINK_BOUND):
        assert (found[fault].precision, found[fault].recall) == (1.0, 1.0), found[fault]
        assert found[fault].due > 20
    for fault in (Fault.IDLE, Fault.PARKED_MEMORY, Fault.LAUNCH_BOUND, Fault.POWER_CAPPED):
        assert found[fault].precision == 1.0, found[fault]
        assert (found[fault].recall or 0) > 0.95, found[fault]
    assert found[Fault.STARVED].precision == 1.0, found[Fault.STARVED]
