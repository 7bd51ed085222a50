"""The job that turns gold rows into findings and alerts.

    gold_10s -> rules and peers (Spark) -> Arrow -> assess (driver) -> findings, alerts, gpu-alerts

The job follows gold's notes, so that it reads complete batches only, in their order. Spark reduces
them to one narrow row for each GPU and window, with the findings of the rules. Findings that need
history are assessed on the driver: the state is one small record for each GPU, and the rows of
16,384 GPUs take half a second for each ten seconds.

Exactly once: a batch is a function of its rows and of the state after the previous batch, and
everything it writes has the batch's number. A batch that runs again replaces its files, the sink
sends each batch once, and the note of `findings` is written last.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry.findings import bottlenecks, rules, skew
from barnabas.telemetry.findings import fleet_comparison as peers
from barnabas.telemetry.findings.alerts import Alert, key_of
from barnabas.telemetry.findings.assessment import Assessment, FleetState, assess
from barnabas.telemetry.findings.assessment_store import StateStore
from barnabas.telemetry.findings.finding import Window
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs import batches
from barnabas.telemetry.lake import arrow, lake_tables
from barnabas.telemetry.lake.lake import NOTES, Lake, batch_name
from barnabas.telemetry.samples import telemetry_topics as topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Send = Callable[["DataFrame", str, int], None]
"""Sends rows with key, value and topic, once for each query and batch."""

JOB = "findings"
SOURCE = "gold_10s"
NOTE_SCHEMA = "batch bigint, rows bigint"
ROWS_AT_ONCE = 200_000
"""Rows of gold that are assessed together: all of them pass through the driver, as objects."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def notes_stream(spark: "SparkSession", lake: Lake, files_at_once: int) -> "DataFrame":
    """Return the notes of gold as a stream."""
    reader = spark.readStream.schema(NOTE_SCHEMA).option("maxFilesPerTrigger", files_at_once)
    return reader.json(lake.path(NOTES, SOURCE))


def write_batch(
    lake: Lake, thresholds: Thresholds, send: Send
) -> Callable[["DataFrame", int], None]:
    """Return the function for foreachBatch."""
    store = StateStore(lake)

    def write(notes: "DataFrame", batch_id: int) -> None:
        query_id = lake.query_id(JOB)
        if batches.done_before(lake, JOB, batch_id, query_id):
            return
        before = batches.note_before(lake, JOB, batch_id)
        clocks = Clocks(lake, before.get("skews"))
        assessed = Assessment(store.after(batch_id - 1), [], [])
        for gold in _gold(notes, lake):
            next_one = assess_batch(gold, assessed.state, thresholds, clocks)
            findings = [*assessed.findings, *next_one.findings]
            assessed = Assessment(next_one.state, findings, [*assessed.alerts, *next_one.alerts])
        files = {
            "alerts": arrow.table_of(assessed.alerts, lake_tables.ALERTS),
            "findings": arrow.table_of(assessed.findings, lake_tables.FINDINGS),
        }
        for table, rows in files.items():
            lake.write_table(table, batch_name(batch_id), rows)
        if assessed.alerts:
            send(records(notes.sparkSession, assessed.alerts), query_id, batch_id)
        store.save(batch_id, assessed.state)
        for table, rows in files.items():
            note = {"query": query_id, "batch": batch_id, "rows": rows.num_rows}
            note |= {"skews": clocks.state} if clocks.state else {}
            lake.complete(table, note, [f"{batch_name(batch_id)}.parquet"])

    return write


class Clocks:
    """The wrong clocks that silver detected, up to the closed windows."""

    def __init__(self, lake: Lake, state: skew.State | None) -> None:
        self._lake = lake
        self.state = state

    def due(self, windows: list[Window]) -> list[skew.Skew]:
        """Return the Skews up to these windows, and continue after them."""
        ends = (each.window_end for each in windows)
        found, self.state = skew.due(self._lake, self.state, ends)
        return found


def assess_batch(
    gold: "DataFrame", before: FleetState, thresholds: Thresholds, clocks: Clocks | None = None
) -> Assessment:
    """Return the result of the rows of a batch of gold, given the previous state."""
    rows = reduced(gold, thresholds).toArrow()
    windows = arrow.windows_from(rows)
    skews = clocks.due(windows) if clocks else []
    return assess(before, windows, arrow.found_in(rows), thresholds, skews)


def reduced(gold: "DataFrame", thresholds: Thresholds) -> "DataFrame":
    """Return the columns of rows of level gpu that an assessment needs, with `found`."""
    cards = peers.with_peers(gold.where(F.col("level") == "gpu"), thresholds)
    every_rule = (*rules.window_rules(thresholds), peers.straggler())
    rows = rules.with_findings(cards, every_rule).withColumns(
        {"xids": F.col("xids.xid"), bottlenecks.LINK_SHARE: bottlenecks.link_share()}
    )
    return rows.select(*Window._fields, rules.FOUND)


def records(spark: "SparkSession", alerts: list[Alert]) -> "DataFrame":
    """Return alerts as rows for the sink, in one partition, in the order of time."""
    rows = [(*record_of(alert), topics.ALERTS) for alert in alerts]
    return spark.createDataFrame(rows, "key binary, value binary, topic string").coalesce(1)


def record_of(alert: Alert) -> tuple[bytes, bytes]:
    """Return an alert as a record: its key, and its columns as JSON."""
    columns = alert._asdict()
    for name in ("first_seen", "last_seen"):
        columns[name] = _iso(columns[name])
    return key_of(alert).encode(), json.dumps(columns, ensure_ascii=False).encode()


def _gold(notes: "DataFrame", lake: Lake) -> "Iterator[DataFrame]":
    """Return the rows of the batches in notes, in order and in pieces of a bounded size."""
    filled = notes.where("rows > 0").select("batch", "rows").orderBy("batch").collect()
    schema = ", ".join(f"{each.name} {each.type}" for each in lake_tables.GOLD)
    reader = notes.sparkSession.read.schema(schema)
    for group in _grouped([(f"{batch_name(each.batch)}.parquet", each.rows) for each in filled]):
        rows = reader.parquet(*(lake.path(SOURCE, name) for name in group))
        yield from _by_time(rows, _cuts(lake, group))


def _grouped(files: list[tuple[str, int]]) -> list[list[str]]:
    """Combine small files, given their numbers of rows."""
    groups: list[list[str]] = []
    together = 0
    for name, rows in files:
        if not groups or together + rows > ROWS_AT_ONCE:
            groups.append([])
            together = 0
        groups[-1].append(name)
        together += rows
    return groups


def _cuts(lake: Lake, files: list[str]) -> list[int]:
    """Return the window starts at which to divide rows; rows of a window stay together."""
    starts = lake.read_table(SOURCE, files, ["window_start"])["window_start"]
    times, counts = np.unique(starts.cast("int64").to_numpy(), return_counts=True)
    piece = (np.cumsum(counts) - 1) // ROWS_AT_ONCE
    return [int(time) for time in times[1:][np.diff(piece) > 0]]


def _by_time(rows: "DataFrame", cuts: list[int]) -> "Iterator[DataFrame]":
    start = F.col("window_start")
    for low, high in pairwise([None, *cuts, None]):
        some = rows if low is None else rows.where(start >= F.timestamp_micros(F.lit(low)))
        yield some if high is None else some.where(start < F.timestamp_micros(F.lit(high)))


def _iso(time_us: int) -> str:
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
