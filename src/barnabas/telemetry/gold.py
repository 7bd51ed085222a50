"""Gold: windows of event time over silver, by Spark's own window, watermark and state.

    silver -> packets -> watermark -> window and bucket of GPUs -> statistics -> gold

A window closes when the watermark passes its end, for all GPUs in the same micro-batch (append
mode). What is aggregated are the rows themselves, in packets (see `lake_source`): a window holds
few samples of a GPU, and exact percentiles, falls of utilisation and changes of an XID all need
them in their order. So Spark groups, keeps and closes; `rollups` computes, whole columns at a time,
once for each window. Hosts and models follow on the driver, where a window is whole.

Silver has refused what is late, by its own watermark, which follows the broker's clock. Spark's
follows the samples, of which some may be ahead of that clock by `ahead_s`: it waits that much
longer, so that nothing that silver took is too late here.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry import batches
from barnabas.telemetry.lake import Lake, batch_name
from barnabas.telemetry.rollups import NEEDED, WITH_VALUES, by_gpu, values_of, with_levels
from barnabas.telemetry.tables import GOLD, ROLLED
from barnabas.telemetry.thresholds import Thresholds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDTHS_S = {"gold_10s": 10, "gold_1m": 60}
BUCKETS = 16
"""How many groups of GPUs share a window: as many pieces of state, and tasks at most."""
SCHEMA = ", ".join(
    [f"{column.name} {column.type}" for column in GOLD]
    + [f"{values_of(metric)} array<double>" for metric in ROLLED]
)


def samples(spark: "SparkSession", lake: Lake, width_s: int, batches_at_once: int) -> "DataFrame":
    """Return silver as a stream of packets for windows of a width."""
    from barnabas.telemetry.lake_source import LakeSource

    spark.dataSource.register(LakeSource)
    options = {
        "lake": lake.root,
        "columns": ",".join(NEEDED),
        "widthSeconds": str(width_s),
        "buckets": str(BUCKETS),
        "batchesPerTrigger": str(batches_at_once),
        "tasks": str(spark.sparkContext.defaultParallelism),
    }
    return spark.readStream.format(LakeSource.name()).options(**options).load()


def windows(packets: "DataFrame", width_s: int, thresholds: Thresholds) -> "DataFrame":
    """Return windows of GPUs."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

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
        from barnabas.telemetry.lake_source import unpacked

        for group in groups:
            contents = group.column(0).flatten().to_pylist()
            if contents:  # a packet that only tells the time has none
                found = by_gpu(unpacked(contents), width_s, thresholds)
                yield from found.cast(WITH_VALUES).to_batches()

    return rolled


def write_batch(lake: Lake, table: str) -> Callable[["DataFrame", int], None]:
    """Return what foreachBatch calls."""

    def write(closed: "DataFrame", batch_id: int) -> None:
        query_id = lake.query_id(table)
        if batches.done_before(lake, table, batch_id, query_id):
            # The rows are there, but Spark's state for this batch may not be.
            closed.write.format("noop").mode("overwrite").save()
            return
        whole = with_levels(closed.toArrow().cast(WITH_VALUES))
        note = {"query": query_id, "batch": batch_id, "rows": whole.num_rows, **_extent(whole)}
        name = batch_name(batch_id)
        if whole.num_rows:
            order = pc.sort_indices(whole, [("window_start", "ascending")])
            lake.write_table(table, name, whole.take(order))
        files = [f"{name}.parquet"] if whole.num_rows else []
        lake.complete(table, {**note, "files": [{"name": file} for file in files]}, files)

    return write


def _extent(whole: pa.Table) -> dict[str, int | None]:
    """Return how far event time is, for those who follow."""
    ends = whole["window_end"].cast(pa.int64())
    return {"event_us": pc.max(ends).as_py() if whole.num_rows else None}
