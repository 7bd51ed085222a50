"""The gold job: event-time windows over silver, with Spark's own windows, watermark and state.

    silver -> packets -> watermark -> window and bucket of GPUs -> statistics -> gold

A window closes when the watermark passes its end, for all GPUs in the same micro-batch (append
mode). Spark aggregates the rows themselves, in packets (see `lake_source`): a window has few
samples of a GPU, and exact percentiles, falls of utilisation and changes of an XID all need them in
their order. So Spark groups, stores and closes; `rollups` computes, whole columns at a time, once
for each window. The driver, which has complete windows, adds the time that samples of earlier
windows cover (see `covering`), and hosts and models.

    LAKE/_work/gold_10s-lasts/batch-0000000042.parquet    the last sample of each GPU

Batch N starts from the last samples that the note of batch N-1 names, so that a repeated batch has
the same rows.

Silver has refused late samples by its own watermark, which follows the broker's clock. Spark's
watermark follows the samples, of which some may be ahead of that clock by `ahead_s`: it waits that
much longer, so that no sample that silver accepted is too late here.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs import batches
from barnabas.telemetry.lake.lake import WORK, Lake, Note, batch_name
from barnabas.telemetry.lake.lake_tables import EDGES, GOLD, ROLLED, values_of
from barnabas.telemetry.windows.covering import LAST, NOTHING, Lasts, cover
from barnabas.telemetry.windows.rollups import NEEDED, WITH_VALUES, by_gpu, with_levels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDTHS_S = {"gold_10s": 10, "gold_1m": 60}
BUCKETS = 16
"""How many groups of GPUs a window has: the number of pieces of state, and of tasks at most."""
SCHEMA = ", ".join(
    [f"{column.name} {column.type}" for column in (*GOLD, *EDGES)]
    + [f"{values_of(metric)} array<double>" for metric in ROLLED]
)


def samples(
    spark: "SparkSession", lake: Lake, width_s: int, batches_at_once: int, rows_at_once: int
) -> "DataFrame":
    """Return silver as a stream of packets for windows of a width."""
    from barnabas.telemetry.lake.lake_source import LakeSource

    spark.dataSource.register(LakeSource)
    options = {
        "lake": lake.root,
        "columns": ",".join(NEEDED),
        "widthSeconds": str(width_s),
        "buckets": str(BUCKETS),
        "batchesPerTrigger": str(batches_at_once),
        "rowsPerTrigger": str(rows_at_once),
        "tasks": str(spark.sparkContext.defaultParallelism),
    }
    return spark.readStream.format(LakeSource.name()).options(**options).load()


def windows(packets: "DataFrame", width_s: int, thresholds: Thresholds) -> "DataFrame":
    """Return windows of GPUs."""
    from pyspark.sql import functions as F  # noqa: N812 - the usual alias

    patience_s = thresholds.late_after_s + thresholds.ahead_s
    return (
        packets.withWatermark("timestamp", f"{patience_s} seconds")
        .groupBy(F.window("timestamp", f"{width_s} seconds"), "bucket")
        .agg(F.collect_list("packet").alias("packets"))
        .select("packets")
        .mapInArrow(_rolled(width_s, thresholds), SCHEMA)
    )


def _rolled(
    width_s: int, thresholds: Thresholds
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rolled(groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from barnabas.telemetry.lake.lake_source import unpacked

        for group in groups:
            contents = group.column(0).flatten().to_pylist()
            if contents:  # a packet with only the time has none
                found = by_gpu(unpacked(contents), width_s, thresholds)
                yield from found.cast(WITH_VALUES).to_batches()

    return rolled


def write_batch(
    lake: Lake, table: str, thresholds: Thresholds
) -> Callable[["DataFrame", int], None]:
    """Return the function for foreachBatch."""
    store = _LastsStore(lake, table)

    def write(closed: "DataFrame", batch_id: int) -> None:
        query_id = lake.query_id(table)
        if batches.done_before(lake, table, batch_id, query_id):
            # The rows are written, but Spark's state for this batch may not be.
            closed.write.format("noop").mode("overwrite").save()
            return
        before = batches.note_before(lake, table, batch_id)
        windows = closed.toArrow().cast(WITH_VALUES)
        covered, lasts = cover(store.after(before), windows, WIDTHS_S[table], thresholds)
        whole = with_levels(covered, thresholds)
        note = {"query": query_id, "batch": batch_id, "rows": whole.num_rows, **_extent(whole)}
        name = batch_name(batch_id)
        if whole.num_rows:
            order = pc.sort_indices(whole, [("window_start", "ascending")])
            lake.write_table(table, name, whole.take(order))
        files = [f"{name}.parquet"] if whole.num_rows else []
        note |= {"files": [{"name": file} for file in files]}
        note |= store.save(name, lasts) if whole.num_rows else store.same(before)
        lake.complete(table, note, files)
        store.remove_others((before, note))

    return write


class _LastsStore:
    """The last samples of GPUs, in the lake. Notes name the file; the latest are in memory."""

    def __init__(self, lake: Lake, table: str) -> None:
        self._lake = lake
        self._folder = f"{WORK}/{table}-lasts"
        self._latest: tuple[str, Lasts] | None = None

    def after(self, note: Note) -> Lasts:
        """Return the last samples after a batch; a batch of version 0.1 has none."""
        found = note.get("lasts")
        if found is None:
            return NOTHING
        if self._latest is None or self._latest[0] != found["file"]:
            if found["file"] not in self._lake.names(self._folder):
                raise batches.ForeignBatchError(
                    f"{self._lake.path(self._folder, found['file'])} is missing, though the newest "
                    "batch names it. Restore it, or start with an empty lake"
                )
            rows = self._lake.read_table(self._folder, [found["file"]], LAST.names).cast(LAST)
            self._latest = (found["file"], Lasts(rows, found["until_us"]))
        return self._latest[1]

    def save(self, name: str, lasts: Lasts) -> Note:
        """Write the last samples and return the entries for the note."""
        file = self._lake.write_table(self._folder, name, lasts.rows)
        self._latest = (file, lasts)
        return {"lasts": {"file": file, "until_us": lasts.until_us}}

    def same(self, note: Note) -> Note:
        """Return the entries for the note of a batch without windows."""
        return {"lasts": note["lasts"]} if "lasts" in note else {}

    def remove_others(self, notes: Iterable[Note]) -> None:
        """Remove the files of earlier batches than these.

        The last samples before the newest batch stay: it runs again if its note is lost.
        """
        kept = {note["lasts"]["file"] for note in notes if "lasts" in note}
        others = [name for name in self._lake.names(self._folder) if name not in kept]
        self._lake.remove(self._folder, others)


def _extent(whole: pa.Table) -> dict[str, int | None]:
    """Return the event time, for the jobs that follow."""
    ends = whole["window_end"].cast(pa.int64())
    return {"event_us": pc.max(ends).as_py() if whole.num_rows else None}
