"""The job that turns gold rows into findings and alerts: a thin `foreachBatch`.

    gold_10s -> rules and peers (Spark) -> Arrow -> assess (driver) -> findings, alerts, gpu-alerts

The job follows gold's notes, so that it reads complete batches only, in their order. Spark reduces
them to one narrow row a GPU and window, with what the rules found in it. What needs memory is
assessed on the driver: the state is one small record a GPU, and the rows of 16,384 GPUs take half a
second for each ten seconds.

Exactly once: a batch is a function of its rows and of the state that the batch before left, and
everything it writes carries the batch's number. Files of a batch that runs again replace
themselves, the sink sends each batch once, and the note of `findings` comes last.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from barnabas.telemetry import arrow, batches, peers, rules, tables, topics
from barnabas.telemetry.alerts import Alert, key_of
from barnabas.telemetry.assessment import Assessment, assess
from barnabas.telemetry.assessment_store import StateStore
from barnabas.telemetry.finding import Window
from barnabas.telemetry.lake import NOTES, Lake, batch_name
from barnabas.telemetry.thresholds import Thresholds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Send = Callable[["DataFrame", str, int], None]
"""Sends rows with key, value and topic, once for each query and batch."""

JOB = "findings"
SOURCE = "gold_10s"
NOTE_SCHEMA = "batch bigint, rows bigint"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def notes_stream(spark: "SparkSession", lake: Lake, files_at_once: int) -> "DataFrame":
    """Return the notes of gold as a stream."""
    reader = spark.readStream.schema(NOTE_SCHEMA).option("maxFilesPerTrigger", files_at_once)
    return reader.json(lake.path(NOTES, SOURCE))


def write_batch(
    lake: Lake, thresholds: Thresholds, send: Send
) -> Callable[["DataFrame", int], None]:
    """Return what foreachBatch calls."""
    store = StateStore(lake)

    def write(notes: "DataFrame", batch_id: int) -> None:
        query_id = lake.query_id(JOB)
        if batches.done_before(lake, JOB, batch_id, query_id):
            return
        gold = _gold(notes, lake)
        assessed = assess_batch(gold, store, batch_id, thresholds)
        files = {
            "alerts": arrow.table_of(assessed.alerts, tables.ALERTS),
            "findings": arrow.table_of(assessed.findings, tables.FINDINGS),
        }
        for table, rows in files.items():
            lake.write_table(table, batch_name(batch_id), rows)
        if assessed.alerts:
            send(records(notes.sparkSession, assessed.alerts), query_id, batch_id)
        store.save(batch_id, assessed.state)
        for table, rows in files.items():
            note = {"query": query_id, "batch": batch_id, "rows": rows.num_rows}
            lake.complete(table, note, [f"{batch_name(batch_id)}.parquet"])

    return write


def assess_batch(
    gold: "DataFrame | None", store: StateStore, batch_id: int, thresholds: Thresholds
) -> Assessment:
    """Return what rows of gold come to, given the batch before."""
    before = store.after(batch_id - 1)
    if gold is None:
        return Assessment(before, [], [])
    rows = reduced(gold, thresholds).toArrow()
    return assess(before, arrow.windows_from(rows), arrow.found_in(rows), thresholds)


def reduced(gold: "DataFrame", thresholds: Thresholds) -> "DataFrame":
    """Return what an assessment needs of rows of level gpu, with the column `found`."""
    cards = peers.with_peers(gold.where(F.col("level") == "gpu"), thresholds)
    every_rule = (*rules.window_rules(thresholds), peers.straggler())
    rows = rules.with_findings(cards, every_rule).withColumn("xids", F.col("xids.xid"))
    return rows.select(*Window._fields, rules.FOUND)


def records(spark: "SparkSession", alerts: list[Alert]) -> "DataFrame":
    """Return alerts as rows for the sink, in one partition: their order is that of time."""
    rows = [(*record_of(alert), topics.ALERTS) for alert in alerts]
    return spark.createDataFrame(rows, "key binary, value binary, topic string").coalesce(1)


def record_of(alert: Alert) -> tuple[bytes, bytes]:
    """Return an alert as a record: its key, and its columns as JSON."""
    columns = alert._asdict()
    for name in ("first_seen", "last_seen"):
        columns[name] = _iso(columns[name])
    return key_of(alert).encode(), json.dumps(columns, ensure_ascii=False).encode()


def _gold(notes: "DataFrame", lake: Lake) -> "DataFrame | None":
    """Return the rows that notes speak of; None where no window closed."""
    filled = notes.where("rows > 0").select("batch").collect()
    files = [lake.path(SOURCE, f"{batch_name(each.batch)}.parquet") for each in filled]
    schema = ", ".join(f"{each.name} {each.type}" for each in tables.GOLD)
    return notes.sparkSession.read.schema(schema).parquet(*files) if files else None


def _iso(time_us: int) -> str:
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
