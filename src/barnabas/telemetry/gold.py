"""Gold: windows that have closed, aggregated once, from the table of silver.

A window closes when the watermark passes its end; silver refuses what comes later, so that a closed
window is whole, and what silver took is in gold exactly once. The job follows silver's notes: each
says how far the watermark is and which slices of time its files hold. A batch takes the notes that
are new, finds the windows that closed, reads their rows from silver and writes one file. Open
windows wait in silver, not in operator state: a batch carries on only their names and files, in
its own note.

Windows do not depend on each other, so that tasks take windows, not keys: there is no shuffle.
Widths are computed from silver each on its own, because percentiles of percentiles are none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry import batches, silver
from barnabas.telemetry.batches import Report
from barnabas.telemetry.lake import NOTES, WORK, Lake, Note, batch_name
from barnabas.telemetry.rollups import GOLD, NEEDED, rollup
from barnabas.telemetry.thresholds import Thresholds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDTHS_S = {"gold_10s": 10, "gold_1m": 60}
NOTE_SCHEMA = """
    batch bigint, watermark_us bigint, files array<struct<name: string, slices: array<bigint>>>
"""


@dataclass
class Progress:
    """What a gold job knows between batches."""

    watermark_us: int | None = None
    open: dict[int, list[str]] = field(default_factory=dict)
    """The files of silver that hold rows of a window, by the window's start in seconds."""


def advanced(
    before: Progress, notes: Sequence[Note], width_s: int
) -> tuple[Progress, dict[int, list[str]]]:
    """Take silver's notes in; return the new progress and the windows that closed."""
    windows = {start: list(files) for start, files in before.open.items()}
    watermark_us = before.watermark_us
    for note in sorted(notes, key=lambda each: each["batch"]):
        if note["watermark_us"] is not None:
            watermark_us = max(watermark_us or note["watermark_us"], note["watermark_us"])
        for file in note["files"]:
            for start in dict.fromkeys(s // width_s * width_s for s in file["slices"]):
                windows.setdefault(start, []).append(file["name"])
    closed = {s: f for s, f in windows.items() if _is_closed(s + width_s, watermark_us)}
    still = {s: f for s, f in windows.items() if s not in closed}
    return Progress(watermark_us, still), dict(sorted(closed.items()))


def _is_closed(end_s: int, watermark_us: int | None) -> bool:
    return watermark_us is not None and end_s * 1_000_000 <= watermark_us


def notes_stream(spark: "SparkSession", lake: Lake, files_at_once: int) -> "DataFrame":
    """Return silver's notes as a stream."""
    reader = spark.readStream.schema(NOTE_SCHEMA).option("maxFilesPerTrigger", files_at_once)
    return reader.json(lake.path(NOTES, silver.TABLE))


def write_batch(
    lake: Lake, table: str, thresholds: Thresholds
) -> Callable[["DataFrame", int], None]:
    """Return what foreachBatch calls."""
    width_s = WIDTHS_S[table]

    def write(notes: "DataFrame", batch_id: int) -> None:
        query_id = lake.query_id(table)
        if batches.done_before(lake, table, batch_id, query_id):
            return
        before = _progress(batches.note_before(lake, table, batch_id))
        new = [row.asDict(recursive=True) for row in notes.collect()]
        progress, closed = advanced(before, new, width_s)
        rows = 0
        if closed:
            work = _Closing(lake, table, batch_id, width_s, thresholds)
            rows = work.write(notes.sparkSession, closed)
        note = {"query": query_id, "batch": batch_id, "rows": rows, **vars(progress)}
        lake.complete(table, note, [f"{batch_name(batch_id)}.parquet"] if closed else [])

    return write


def _progress(note: Note) -> Progress:
    opened = {int(start): files for start, files in note.get("open", {}).items()}
    return Progress(note.get("watermark_us"), opened)


@dataclass(frozen=True)
class _Closing:
    """The windows that close in one batch."""

    lake: Lake
    table: str
    batch_id: int
    width_s: int
    thresholds: Thresholds

    @property
    def folder(self) -> str:
        """Where tasks leave their parts for the driver."""
        return f"{WORK}/{self.table}"

    def write(self, spark: "SparkSession", closed: dict[int, list[str]]) -> int:
        """Compute the windows on the executors, write the batch's file, return its rows."""
        runs = same_files(closed)
        tasks = min(len(runs), spark.sparkContext.defaultParallelism)
        shares = [runs[n::tasks] for n in range(tasks)]
        parts = batches.reports(spark.range(0, tasks, 1, tasks), self._task(shares))
        files = [part["file"] for part in parts]
        whole = self.lake.read_table(self.folder, files, GOLD.names)
        whole = whole.take(pc.sort_indices(whole, [("window_start", "ascending")]))
        self.lake.write_table(self.table, batch_name(self.batch_id), whole)
        self.lake.remove(self.folder, files)
        return int(whole.num_rows)

    def _task(self, shares: "list[list[Run]]") -> batches.Task:
        def close(part: int, _: Iterator[pa.RecordBatch]) -> Report:
            found = [self._windows(run) for run in shares[part]]
            name = batch_name(self.batch_id, part)
            file = self.lake.write_table(self.folder, name, pa.concat_tables(found))
            return {"part": part, "file": file}

        return close

    def _windows(self, run: "Run") -> pa.Table:
        start, end = _moment(run.starts[0]), _moment(run.starts[-1] + self.width_s)
        inside = (pc.field("timestamp") >= start) & (pc.field("timestamp") < end)
        rows = self.lake.read_table(silver.TABLE, run.files, list(NEEDED), inside)
        found = rollup(rows, self.width_s, self.thresholds)
        wanted = pa.array([_moment(each) for each in run.starts])
        return found.filter(pc.is_in(found["window_start"], wanted))


class Run(NamedTuple):
    """Windows whose rows are in the same files, so that one read serves them all."""

    starts: list[int]
    files: list[str]


def same_files(closed: dict[int, list[str]]) -> list[Run]:
    """Return neighbouring windows of the same files together."""
    grouped = groupby(sorted(closed.items()), key=lambda each: each[1])
    return [Run([start for start, _ in members], files) for files, members in grouped]


def _moment(seconds: int) -> pa.Scalar:
    return pa.scalar(seconds * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
