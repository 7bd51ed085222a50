"""Runs the rules over a recording whose phases are known: a row for each phase.

    FOLDER/metrics.csv    wide CSV with DCGM's names
    FOLDER/phases.csv     phase,bound,start_unix,end_unix

as `tools/record_gpu.py` writes them. The recording passes through the steps of the pipeline,
without topics and lakes: snapshots, silver, gold, rules, assessment. A phase is short, and the
edges of windows are arbitrary. So the recording is analyzed ten times, each shifted by a second.
"""

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.collect.inputs import FileFormat, read_lines, read_rows
from barnabas.telemetry.findings.assessment import FleetState, assess
from barnabas.telemetry.findings.evaluation import MAY_BE_CAPPED, expected_in
from barnabas.telemetry.findings.finding import Finding, us
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs.alerting import reduced
from barnabas.telemetry.lake import arrow, lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.samples.catalogue import Name
from barnabas.telemetry.samples.metrics import BY_NAME
from barnabas.telemetry.samples.readings import Refusal, Tally
from barnabas.telemetry.samples.sample_messages import Snapshot
from barnabas.telemetry.windows.covering import NOTHING, cover
from barnabas.telemetry.windows.rollups import by_gpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SILVER = arrow_schema(lake_tables.SILVER)
GOLD = arrow_schema(lake_tables.GOLD)
WINDOW_US = us(10)
SHIFTS = 10
SETTLED_US = us(1)
"""The time after the start of a phase in which sensors average over its edge."""


@dataclass(frozen=True)
class PhaseRow:
    """The findings in the windows that lie completely in one phase."""

    phase: str
    bound: str
    windows: int
    expected: tuple[str, ...]
    found: dict[str, int]
    """The number of windows by finding."""

    @property
    def problems(self) -> list[str]:
        """Return missing and wrong findings; empty if the findings describe the phase."""
        missed = [
            f"{name} in {self.found.get(name, 0)} of {self.windows}"
            for name in self.expected
            if self.found.get(name, 0) < self.windows
        ]
        allowed = {*self.expected, *((Name.POWER_CAPPED,) if self.bound in MAY_BE_CAPPED else ())}
        wrong = [f"{name} in {count}" for name, count in self.found.items() if name not in allowed]
        return [f"misses {each}" for each in missed] + [f"wrongly {each}" for each in wrong]


def silver_of(snapshots: Iterable[Snapshot]) -> pa.Table:
    """Return snapshots as rows of silver."""
    rows = [
        {
            "gpu_id": each.gpu_id,
            "timestamp": each.timestamp_ms * 1000,
            "hostname": each.hostname,
            "device": each.device,
            "model": each.model,
            "namespace": each.labels.get("namespace"),
            "pod": each.labels.get("pod"),
            **{BY_NAME[name].column: float(value) for name, value in each.metrics.items()},
        }
        for each in snapshots
    ]
    return pa.Table.from_pylist(rows, SILVER)


def findings_of(spark: "SparkSession", silver: pa.Table, thresholds: Thresholds) -> list[Finding]:
    """Return the findings for rows of silver, as the jobs would."""
    width_s = WINDOW_US // us(1)
    closed = by_gpu(silver, width_s, thresholds)
    gold = cover(NOTHING, closed, width_s, thresholds)[0].select(GOLD.names)
    batch = reduced(spark.createDataFrame(gold), thresholds).toArrow()
    windows, found = arrow.windows_from(batch), arrow.found_in(batch)
    return assess(FleetState(), windows, found, thresholds).findings


def read_folder(folder: Path) -> list[Snapshot]:
    """Return the recording of a folder; raises ValueError if a line cannot be parsed."""
    path = folder / "metrics.csv"
    readings = read_rows(
        read_lines(path),
        FileFormat.DCGM,
        where=str(path),
        hostname="recorded",
        zone=UTC,
        tally=Tally(),
        joined=False,
    )
    found = []
    for reading in readings:
        if isinstance(reading, Refusal):
            raise ValueError(f"{reading.where}: {reading.reason}")  # noqa: TRY004 - it is no type
        found.append(reading)
    return found


def phase_rows(
    spark: "SparkSession", folder: Path, thresholds: Thresholds | None = None
) -> list[PhaseRow]:
    """Return a row for each phase of a recording."""
    silver = silver_of(read_folder(folder))
    shifted = pa.concat_tables(_shifted(silver, number) for number in range(SHIFTS))
    by_window: dict[tuple[str, int], set[str]] = {}
    for each in findings_of(spark, shifted, thresholds or Thresholds()):
        by_window.setdefault((each.gpu_id, each.window_start), set()).add(each.finding)
    path = folder / "phases.csv"
    return [_row(row, path, by_window) for row in csv.DictReader(path.read_text().splitlines())]


def _shifted(silver: pa.Table, seconds: int) -> pa.Table:
    """Return the recording with its own card and host, some seconds later."""
    time = silver["timestamp"].cast(pa.int64())
    later = pc.add(time, us(seconds)).cast(SILVER.field("timestamp").type)
    name = pa.array([str(seconds)] * silver.num_rows, pa.string())
    for column, values in (("timestamp", later), ("gpu_id", name), ("hostname", name)):
        place = SILVER.get_field_index(column)
        silver = silver.set_column(place, SILVER.field(place), values)
    return silver


def _row(row: dict[str, str], path: Path, by_window: dict[tuple[str, int], set[str]]) -> PhaseRow:
    begun, ended = us(float(row["start_unix"])) + SETTLED_US, us(float(row["end_unix"]))
    windows, counts = 0, Counter[str]()
    for seconds in range(SHIFTS):
        first = -(-(begun + us(seconds)) // WINDOW_US) * WINDOW_US
        for start in range(first, ended + us(seconds) - WINDOW_US + 1, WINDOW_US):
            windows += 1
            counts.update(by_window.get((str(seconds), start), ()))
    expected = tuple(name.value for name in expected_in(row, path))
    return PhaseRow(row["phase"], row.get("bound", ""), windows, expected, dict(counts))
