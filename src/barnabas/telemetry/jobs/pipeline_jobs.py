"""Defines the streaming jobs of the pipeline, each with its own checkpoint in the lake.

    topic gpu-telemetry -> bronze
    topic gpu-telemetry -> silver -> gold_10s, gold_1m
    gold_10s -> findings, alerts, topic gpu-alerts

`start` runs them side by side until they are stopped; `drain` runs them one stage after the other
until all present messages are in the tables. A job may be killed at any point: its next start
continues from its checkpoint, and the lake has every batch once (see `lake`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs import alerting, bronze, gold, silver
from barnabas.telemetry.jobs.silver import SilverSettings
from barnabas.telemetry.lake import lake, lake_checkpoints
from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.samples import telemetry_topics as topics
from barnabas.telemetry.samples import topic_setup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.speculation": "false",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
"""Settings of a session that runs the jobs; speculation would have two tasks write one file.

A kill within the first batch leaves an incomplete checkpoint, from which Spark would not start
again; this package itself checks that a checkpoint belongs to its table (see `batches`)."""


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings of the jobs."""

    bootstrap: str
    lake: str
    table_format: str = "parquet"
    thresholds: Thresholds = field(default_factory=Thresholds)
    trigger_s: float = 10.0
    """How often a job looks for more; even a small micro-batch costs a third of a second."""
    messages_a_batch: int = 200_000
    """The maximum; it bounds the memory of a task when a job has to catch up. Gold takes no more
    rows at once: if cards are sampled rarely, each row is a separate window, and the driver holds
    all windows that close at the same time."""
    batches_at_once: int = 8
    """The maximum number of batches of one job in a batch of the next."""
    connector: str = "barnabas"
    """The format of source and sink; `kafka` is Spark's own, whose writes are at least once."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Properties of the client, such as those for TLS, without `kafka.`."""
    source_options: Mapping[str, str] = field(default_factory=dict)
    """More options for the source; they override the others."""
    value_bytes_max: int = SilverSettings.value_bytes_max
    latest: bool = True
    topic: str = topics.SAMPLES


@dataclass(frozen=True)
class Job:
    """One streaming query, before it has a trigger."""

    name: str
    stage: int
    """Jobs of a stage read what jobs of earlier stages wrote."""
    writer: Callable[["SparkSession", Lake, JobSettings], "DataStreamWriter"]


def _bronze(spark: "SparkSession", lake_: Lake, settings: JobSettings) -> "DataStreamWriter":
    return messages(spark, settings).writeStream.foreachBatch(bronze.write_batch(lake_))


def _silver(spark: "SparkSession", lake_: Lake, settings: JobSettings) -> "DataStreamWriter":
    silver_settings = SilverSettings(
        thresholds=settings.thresholds,
        value_bytes_max=settings.value_bytes_max,
        latest=settings.latest,
    )
    write = silver.write_batch(lake_, silver_settings, sender(settings))
    return messages(spark, settings).writeStream.foreachBatch(write)


def _gold(table: str) -> Callable[["SparkSession", Lake, JobSettings], "DataStreamWriter"]:
    def writer(spark: "SparkSession", lake_: Lake, settings: JobSettings) -> "DataStreamWriter":
        width_s = gold.WIDTHS_S[table]
        packets = gold.samples(
            spark, lake_, width_s, settings.batches_at_once, settings.messages_a_batch
        )
        windows = gold.windows(packets, width_s, settings.thresholds)
        write = gold.write_batch(lake_, table, settings.thresholds)
        return windows.writeStream.foreachBatch(write)

    return writer


def _findings(spark: "SparkSession", lake_: Lake, settings: JobSettings) -> "DataStreamWriter":
    notes = alerting.notes_stream(spark, lake_, settings.batches_at_once)
    write = alerting.write_batch(lake_, settings.thresholds, sender(settings))
    return notes.writeStream.foreachBatch(write)


JOBS = (
    Job("bronze", 0, _bronze),
    Job("silver", 0, _silver),
    Job("gold_10s", 1, _gold("gold_10s")),
    Job("gold_1m", 1, _gold("gold_1m")),
    Job("findings", 2, _findings),
)


def start(
    spark: "SparkSession", settings: JobSettings, jobs: tuple[Job, ...] = JOBS
) -> "dict[str, StreamingQuery]":
    """Start jobs and return the running queries by name."""
    place = prepare(spark, settings)
    trigger = {"processingTime": f"{round(settings.trigger_s * 1000)} milliseconds"}
    return {job.name: launched(spark, place, settings, job, trigger) for job in jobs}


def drain(spark: "SparkSession", settings: JobSettings, jobs: tuple[Job, ...] = JOBS) -> None:
    """Run jobs until no work is left; raise the error that stopped one of them."""
    place = prepare(spark, settings)
    for stage in sorted({job.stage for job in jobs}):
        chosen = [job for job in jobs if job.stage == stage]
        trigger = {"availableNow": True}
        _await_all([launched(spark, place, settings, job, trigger) for job in chosen])


def _await_all(queries: "list[StreamingQuery]") -> None:
    """Wait for all; if one fails, stop the others."""
    try:
        for query in queries:
            query.awaitTermination()
    finally:
        for query in queries:
            query.stop()


def prepare(spark: "SparkSession", settings: JobSettings) -> Lake:
    """Prepare connector, topics and tables; return the lake."""
    if settings.connector == "barnabas":
        from barnabas.spark import register

        register(spark)
    topic_setup.create_missing({"bootstrap.servers": settings.bootstrap, **settings.client})
    place = lake.create(settings.lake, settings.table_format)
    lake_checkpoints.relocate(place)
    return place


def launched(
    spark: "SparkSession", place: Lake, settings: JobSettings, job: Job, trigger: dict[str, Any]
) -> "StreamingQuery":
    """Start one job; `prepare` comes before."""
    writer = job.writer(spark, place, settings).queryName(job.name).trigger(**trigger)
    return writer.option("checkpointLocation", place.checkpoint(job.name)).start()


def messages(spark: "SparkSession", settings: JobSettings) -> "DataFrame":
    """Return the topic as a stream."""
    options = {
        **_client(settings),
        "subscribe": settings.topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(settings.messages_a_batch),
        **settings.source_options,
    }
    return spark.readStream.format(settings.connector).options(**options).load()


def sender(settings: JobSettings) -> silver.Send:
    """Return the function that sends rows to topics, once for each query and batch.

    One task sends all rows of a batch, so that they are in one transaction: a replay finds all of
    them or none. The lake detects a replaced checkpoint (`batches.py`), so the sink need not
    compare rows.
    """

    def send(rows: "DataFrame", query_id: str, batch_id: int) -> None:
        options = dict(_client(settings))
        if settings.connector == "barnabas":
            options |= {"txnAppId": f"telemetry-{query_id}", "txnVersion": str(batch_id)}
            options["checkReplays"] = "false"
        writer = rows.coalesce(1).write.format(settings.connector).options(**options)
        writer.mode("append").save()

    return send


def _client(settings: JobSettings) -> dict[str, str]:
    given = {"bootstrap.servers": settings.bootstrap, **settings.client}
    return {f"kafka.{name}": value for name, value in given.items()}
