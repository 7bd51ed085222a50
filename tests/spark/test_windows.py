"""Tests windows: which rows are in which, and that a stream drops old ones."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from pyspark.sql import functions as F  # noqa: N812
from pyspark.testing import assertDataFrameEqual

from barnabas.spark import hopping, session, tumbling, window_bounds
from barnabas.spark.helpers.columns import ColumnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLES = "gpu STRING, at TIMESTAMP, watts INT"
COUNTS = "window_start TIMESTAMP, window_end TIMESTAMP, gpu STRING, n BIGINT"


def moment(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def samples(spark: "SparkSession", *seconds: int, gpu: str = "a") -> "DataFrame":
    return spark.createDataFrame([(gpu, moment(second), 1) for second in seconds], SAMPLES)


def counts(spark: "SparkSession", *rows: tuple[int, int, int]) -> "DataFrame":
    made = [(moment(start), moment(end), "a", n) for start, end, n in rows]
    return spark.createDataFrame(made, COUNTS)


def test_tumbling_windows_follow_each_other(spark: "SparkSession") -> None:
    grouped = tumbling(
        samples(spark, 0, 9, 10, 25), "at", "10 seconds", lateness="0 seconds", by="gpu"
    )
    found = window_bounds(grouped.agg(F.count("*").alias("n")))
    assertDataFrameEqual(found, counts(spark, (0, 10, 2), (10, 20, 1), (20, 30, 1)))


def test_tumbling_windows_can_begin_elsewhere(spark: "SparkSession") -> None:
    grouped = tumbling(
        samples(spark, 0, 4, 5),
        "at",
        timedelta(seconds=10),
        lateness="0 seconds",
        by=["gpu"],
        offset="5 seconds",
    )
    found = window_bounds(grouped.agg(F.count("*").alias("n")))
    assertDataFrameEqual(found, counts(spark, (-5, 5, 2), (5, 15, 1)))


def test_hopping_windows_overlap(spark: "SparkSession") -> None:
    grouped = hopping(
        samples(spark, 0, 12), "at", "20 seconds", "10 seconds", lateness="0 seconds", by="gpu"
    )
    found = window_bounds(grouped.agg(F.count("*").alias("n")))
    assertDataFrameEqual(found, counts(spark, (-10, 10, 1), (0, 20, 2), (10, 30, 1)))


def test_sessions_end_after_a_gap(spark: "SparkSession") -> None:
    frame = samples(spark, 0, 4, 20)
    found = window_bounds(
        session(frame, "at", "5 seconds", lateness="0 seconds", by="gpu").agg(
            F.count("*").alias("n")
        )
    )
    assertDataFrameEqual(found, counts(spark, (0, 9, 2), (20, 25, 1)))


def test_the_gap_of_a_session_may_be_a_column(spark: "SparkSession") -> None:
    frame = samples(spark, 0, 4, 20)
    gap = F.expr("CASE WHEN watts = 1 THEN '30 seconds' ELSE '1 second' END")
    grouped = session(frame, "at", gap, lateness="0 seconds", by="gpu")
    assertDataFrameEqual(
        window_bounds(grouped.agg(F.count("*").alias("n"))), counts(spark, (0, 50, 3))
    )


def test_a_stream_gives_windows_once_and_drops_what_is_late(
    spark: "SparkSession", tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    stream = spark.readStream.schema(SAMPLES).parquet(str(source))
    grouped = tumbling(stream, "at", "10 seconds", lateness="5 seconds", by="gpu")
    frame = window_bounds(grouped.agg(F.count("*").alias("n")))
    dropped = 0
    for seconds in ((1, 2, 31), (3, 40)):
        samples(spark, *seconds).coalesce(1).write.mode("append").parquet(str(source))
        query = (
            frame.writeStream.format("parquet")
            .option("path", str(tmp_path / "windows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        dropped += sum(
            each["numRowsDroppedByWatermark"]
            for progress in query.recentProgress
            for each in progress["stateOperators"]
        )
    found = spark.read.parquet(str(tmp_path / "windows"))
    assertDataFrameEqual(found, counts(spark, (0, 10, 2)))
    assert dropped == 1


def test_what_cannot_be_is_refused_with_the_remedy(spark: "SparkSession") -> None:
    frame = samples(spark)
    with pytest.raises(ColumnError, match="no column when; the columns are gpu, at, watts"):
        tumbling(frame, "when", "10 seconds", lateness="0 seconds")
    with pytest.raises(ColumnError, match=r'gpu is string.*F.to_timestamp\("gpu"\)'):
        tumbling(frame, "gpu", "10 seconds", lateness="0 seconds")
    with pytest.raises(ValueError, match="length is '1 month'; write a duration like"):
        tumbling(frame, "at", "1 month", lateness="0 seconds")
    with pytest.raises(ValueError, match="rows between two windows would be in none"):
        hopping(frame, "at", "10 seconds", "20 seconds", lateness="0 seconds")
    with pytest.raises(ValueError, match="by="):
        session(frame, "at", "10 seconds", lateness="0 seconds", by=())
