"""Tests the same cards at every sampling rate: hours, energy and verdicts, through the real code.

`pytest -s tests/spark/test_sampling.py` prints the tables behind the bounds of docs/telemetry.md.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.telemetry.findings.assessment import Assessment, FleetState, assess
from barnabas.telemetry.findings.evaluation import Label, Score, evaluate, read_intervals, read_lake
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs.alerting import reduced
from barnabas.telemetry.lake import arrow, lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.lake.lake_reading import Lake
from barnabas.telemetry.report.gathering import gather
from barnabas.telemetry.report.report_model import Report, Wish
from barnabas.telemetry.report.report_page import page
from barnabas.telemetry.report.summary import document, sampling_lines
from barnabas.telemetry.samples import recording
from barnabas.telemetry.samples.metrics import METRICS
from barnabas.telemetry.samples.sample_messages import Snapshot
from barnabas.telemetry.simulation import FleetSettings, simulate
from barnabas.telemetry.windows.covering import rollup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THRESHOLDS = Thresholds()
SILVER = arrow_schema(lake_tables.SILVER)
COLUMN = {metric.dcgm: metric.column for metric in METRICS}
START = datetime(2026, 11, 15, tzinfo=UTC)
RATES_S = (0.1, 1.0, 10.0, 30.0)


@dataclass(frozen=True)
class Seen:
    """The pipeline's results for samples."""

    report: Report
    scores: list[Score]

    def seconds(self, finding: str) -> float:
        return self.report.finding_totals.get(finding, (0, 0, 0.0))[2]

    def row(self) -> str:
        names = ("idle", "parked_memory", "power_capped", "launch_bound", "starved")
        found = "".join(f"{self.seconds(name):>15.1f}" for name in names)
        fleet = self.report.fleet
        return f"{3600 * fleet.gpu_hours:>9.1f} s {1000 * fleet.energy_kwh:>8.2f} Wh{found}"


def seen(
    spark: "SparkSession", folder: Path, rows: list[dict[str, Any]], labels: Iterable[Label] = ()
) -> Seen:
    """Run samples through gold, rules, memory and the report."""
    silver = pa.Table.from_pylist(rows, schema=SILVER)
    gold = rollup(silver, 10, THRESHOLDS)
    batch = reduced(spark.createDataFrame(gold), THRESHOLDS).toArrow()
    windows, found = arrow.windows_from(batch), arrow.found_in(batch)
    assessed = assess(FleetState(), windows, found, THRESHOLDS)
    _write(folder, gold, rollup(silver, 60, THRESHOLDS), assessed)
    reported, closed = read_lake(folder)
    intervals_s = read_intervals(folder)
    scores = evaluate(labels, reported, closed, THRESHOLDS, intervals_s=intervals_s)
    return Seen(gather(Lake(folder), Wish()), scores)


def _write(folder: Path, gold: pa.Table, minutes: pa.Table, assessed: Assessment) -> None:
    contents = {
        "gold_10s": gold,
        "gold_1m": minutes,
        "findings": arrow.table_of(assessed.findings, lake_tables.FINDINGS),
        "alerts": arrow.table_of(assessed.alerts, lake_tables.ALERTS),
    }
    for name, rows in contents.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(rows, folder / name / "batch-0000000000.parquet")


def row_of(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "gpu_id": snapshot.gpu_id,
        "timestamp": datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        "hostname": snapshot.hostname,
        "model": snapshot.model,
        **{COLUMN[name]: float(value) for name, value in snapshot.metrics.items()},
    }


def recorded(interval_s: float, offset: float = 0.0) -> list[dict[str, Any]]:
    """Return the recording with a sample per interval, the first shifted by a share of it."""
    every = [row_of(each) for each in recording.snapshots()]
    if interval_s <= 0.1:
        return every
    step = timedelta(seconds=interval_s)
    due = every[0]["timestamp"] + offset * step
    chosen = []
    for row in every:
        if row["timestamp"] >= due:
            chosen.append(row)
            due += step
    return chosen


OFFSETS = (0.0, 0.2, 0.4, 0.6, 0.8)


@pytest.fixture(scope="module")
def by_rate(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> dict[float, list[Seen]]:
    """The recording at each rate, started at five places of the interval."""
    found = {}
    for rate_s in RATES_S:
        offsets = OFFSETS if rate_s > 0.1 else OFFSETS[:1]
        found[rate_s] = [
            seen(spark, tmp_path_factory.mktemp("recorded") / "lake", recorded(rate_s, offset))
            for offset in offsets
        ]
    show("\nevery, covered, energy; seconds of idle, parked, capped, launch-bound, starved")
    for rate_s, each in found.items():
        for one in each:
            show(f"{rate_s:>5g} s {one.row()}")
    return found


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


@pytest.mark.parametrize("rate_s", RATES_S)
def test_the_recording_covers_the_same_time_at_every_rate(
    by_rate: dict[float, list[Seen]], rate_s: float
) -> None:
    """The first and the last interval may be incomplete."""
    (fine,) = by_rate[0.1]
    for each in by_rate[rate_s]:
        lost_s = 3600 * (fine.report.fleet.gpu_hours - each.report.fleet.gpu_hours)
        assert -10 <= lost_s <= 2 * rate_s


@pytest.mark.parametrize(("rate_s", "within"), [(1.0, 0.05), (10.0, 0.15), (30.0, 0.15)])
def test_the_recording_draws_the_same_power_at_every_rate(
    by_rate: dict[float, list[Seen]], rate_s: float, within: float
) -> None:
    """It has no energy counter, and nine phases in five minutes: ten samples at 30 s."""
    (fine,) = by_rate[0.1]

    def watts(each: Seen) -> float:
        return each.report.fleet.energy_kwh / each.report.fleet.gpu_hours

    for each in by_rate[rate_s]:
        assert watts(each) == pytest.approx(watts(fine), rel=within)
    assert mean(map(watts, by_rate[rate_s])) == pytest.approx(watts(fine), rel=within / 2)


def test_findings_of_the_recording_that_need_fine_samples_are_not_guessed(
    by_rate: dict[float, list[Seen]],
) -> None:
    for rate_s in (0.1, 1.0):
        for each in by_rate[rate_s]:
            assert each.seconds("starved") >= 30
            assert each.seconds("launch_bound") >= 10
            assert each.report.quality.not_looked_for == []
    for rate_s in (10.0, 30.0):
        for each in by_rate[rate_s]:
            assert (each.seconds("starved"), each.seconds("launch_bound")) == (0, 0)
            (launch, starved) = sampling_lines(each.report)
            assert f"samples every 2 s; this card was sampled every {rate_s:g} s" in launch
            assert starved.startswith("Starved was not looked for: it needs samples every 2 s")
            assert starved in page(each.report)


@pytest.mark.parametrize("rate_s", [10.0, 30.0])
def test_power_caps_of_the_recording_last_as_long_at_every_rate(
    by_rate: dict[float, list[Seen]], rate_s: float
) -> None:
    (fine,) = by_rate[0.1]
    found = mean(each.seconds("power_capped") for each in by_rate[rate_s])
    assert found == pytest.approx(fine.seconds("power_capped"), abs=rate_s)


# Four idle and four busy cards for three hours


def cards(interval_s: float) -> list[dict[str, Any]]:
    idle = {"gpu_util": 0.0, "power_usage": 75.0, "fb_used": 500.0, "sm_clock": 345.0}
    busy = {"gpu_util": 97.0, "power_usage": 600.0, "fb_used": 1e5, "sm_clock": 1900.0}
    return [
        {
            "gpu_id": f"GPU-{card}",
            "timestamp": START + timedelta(seconds=step * interval_s),
            "hostname": "node-1",
            "power_limit": 700.0,
            "fb_total": 143_771.0,
            **(idle if card < 4 else busy),
        }
        for step in range(round(3 * 3600 / interval_s))
        for card in range(8)
    ]


@pytest.mark.parametrize("interval_s", [5, 10, 30])
def test_idle_cards_cost_the_same_at_every_rate(
    spark: "SparkSession", tmp_path: Path, interval_s: float
) -> None:
    report = seen(spark, tmp_path / "lake", cards(interval_s)).report
    (whole,) = report.waste["all"]
    lost = 4 * interval_s / 3600
    assert 12 - lost <= whole.idle_hours <= 12
    assert whole.energy_cost + whole.card_cost == pytest.approx(30.135, abs=2.6 * lost)
    assert report.finding_totals.keys() == {"idle"}
    assert report.finding_totals["idle"][:2] == (4, 4)
    hours = {state: sum(each) / 3600 for state, each in report.shares.counts.items()}
    assert hours["idle"] == pytest.approx(12, abs=lost)
    assert hours["working"] == pytest.approx(12, abs=4 * 60 / 3600)
    assert document(report)["fleet"]["energy_kwh"] == pytest.approx(8.1, rel=0.01)


# Fleets with labels


def fleet(seed: int, interval_ms: int, minutes: int) -> tuple[list[dict[str, Any]], list[Label]]:
    settings = FleetSettings(
        gpus=64, seed=seed, interval_ms=interval_ms, duration_ms=minutes * 60_000
    )
    simulation = simulate(settings)
    labels = [
        Label(each.gpu_id, each.name, each.start_ms * 1000, each.end_ms * 1000, each.optional)
        for each in simulation.truth
        if each.kind == "finding"
    ]
    return [_row(json.loads(each.value)) for each in simulation.messages()], labels


def _row(body: dict[str, Any]) -> dict[str, Any]:
    known = {name: body["labels"].get(name) for name in ("namespace", "pod")}
    metrics = {COLUMN[name]: float(value) for name, value in body["metrics"].items()}
    same = {name: body[name] for name in ("gpu_id", "hostname", "model")}
    return {**same, **known, **metrics, "timestamp": datetime.fromisoformat(body["timestamp"])}


@pytest.mark.slow
@pytest.mark.parametrize(("interval_ms", "minutes"), [(1_000, 20), (30_000, 60)])
def test_findings_of_fleets_are_as_good_at_every_rate(
    spark: "SparkSession", tmp_path: Path, interval_ms: int, minutes: int
) -> None:
    is_fine = interval_ms == 1_000
    for seed in (7001, 7002):
        rows, labels = fleet(seed, interval_ms, minutes)
        scores = {e.finding: e for e in seen(spark, tmp_path / str(seed), rows, labels).scores}
        for name, score in scores.items():
            show(f"{interval_ms} ms, seed {seed}: {name} {score.precision} {score.recall}")
            assert score.precision is None or score.precision >= 0.95, score
            if name in ("starved", "launch_bound") and not is_fine:
                assert (score.not_looked_for, score.right + score.wrong, score.due) == (1, 0, 0)
            elif score.recall is not None:
                # A job that starts and stops is throttled whenever a sample finds it running.
                assert score.recall >= (0.5 if name == "power_capped" else 0.75), score
            assert score.episodes_met == score.episodes
