"""Tests joins: of two streams within an interval, and of a stream with a table."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from pyspark.testing import assertDataFrameEqual

from barnabas.spark import ChangelogTable, Timed, enrich, enrich_each_batch, interval_join
from barnabas.spark.helpers.columns import ColumnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEWS = "ad STRING, viewed TIMESTAMP"
CLICKS = "ad STRING, clicked TIMESTAMP"
BOTH = "ad STRING, viewed TIMESTAMP, clicked TIMESTAMP"


def moment(second: int | None) -> datetime | None:
    if second is None:
        return None
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def made(spark: "SparkSession", schema: str, *rows: tuple[Any, ...]) -> "DataFrame":
    return spark.createDataFrame([(row[0], *map(moment, row[1:])) for row in rows], schema)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [("a", 0, 0), ("a", 0, 10)]),
        ("left", [("a", 0, 0), ("a", 0, 10), ("b", 5, None)]),
        ("right", [("a", 0, 0), ("a", 0, 10), ("a", None, 11), ("c", None, 3)]),
    ],
)
def test_rows_of_one_key_meet_within_the_interval(
    spark: "SparkSession", how: Any, expected: list[tuple[Any, ...]]
) -> None:
    views = Timed(made(spark, VIEWS, ("a", 0), ("b", 5)), "viewed", "1 second")
    rows = [("a", 0), ("a", 10), ("a", 11), ("c", 3)]
    clicks = Timed(made(spark, CLICKS, *rows), "clicked", "1 second")
    joined = interval_join(views, clicks, "ad", after="10 seconds", how=how)
    assertDataFrameEqual(joined, made(spark, BOTH, *expected))


def test_before_looks_back(spark: "SparkSession") -> None:
    views = Timed(made(spark, VIEWS, ("a", 10)), "viewed", "1 second")
    clicks = Timed(made(spark, CLICKS, ("a", 4), ("a", 5), ("a", 11)), "clicked", "1 second")
    joined = interval_join(views, clicks, ["ad"], before="5 seconds", after="0 seconds")
    assertDataFrameEqual(joined, made(spark, BOTH, ("a", 10, 5)))


@pytest.mark.slow
def test_streams_give_up_on_rows_without_a_partner(spark: "SparkSession", tmp_path: Path) -> None:
    views, clicks = str(tmp_path / "views"), str(tmp_path / "clicks")
    for folder in (views, clicks):
        Path(folder).mkdir()
    joined = interval_join(
        Timed(spark.readStream.schema(VIEWS).parquet(views), "viewed", "1 second"),
        Timed(spark.readStream.schema(CLICKS).parquet(clicks), "clicked", "1 second"),
        "ad",
        after="10 seconds",
        how="left",
    )
    rounds = [([("a", 0), ("b", 0)], [("a", 3)]), ([("late", 100)], [("late", 100)])]
    for viewed, clicked in rounds:
        made(spark, VIEWS, *viewed).coalesce(1).write.mode("append").parquet(views)
        made(spark, CLICKS, *clicked).coalesce(1).write.mode("append").parquet(clicks)
        query = (
            joined.writeStream.format("parquet")
            .option("path", str(tmp_path / "joined"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "joined"))
    expected = [("a", 0, 3), ("b", 0, None), ("late", 100, 100)]
    assertDataFrameEqual(found, made(spark, BOTH, *expected))


def test_a_table_adds_its_columns(spark: "SparkSession") -> None:
    samples = spark.createDataFrame([("h1", 1), ("h2", 2)], "host STRING, watts INT")
    racks = spark.createDataFrame([("h1", "r1")], "host STRING, rack STRING")
    schema = "host STRING, watts INT, rack STRING"
    left = spark.createDataFrame([("h1", 1, "r1"), ("h2", 2, None)], schema)
    assertDataFrameEqual(enrich(samples, racks, "host", broadcast=True), left)
    assertDataFrameEqual(enrich(samples, racks, ["host"], how="inner"), left.where("host = 'h1'"))


def test_a_table_of_files_is_reopened_in_each_batch(spark: "SparkSession", tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "racks"), "host", deleted="rack IS NULL")
    racks = "host STRING, rack STRING, offset BIGINT"
    source, out = str(tmp_path / "source"), str(tmp_path / "out")
    Path(source).mkdir()

    def write(rows: "DataFrame", batch_id: int) -> None:
        rows.write.parquet(f"{out}/batch={batch_id}")

    stream = spark.readStream.schema("host STRING").parquet(source)
    for batch, rack in enumerate(["r1", "r2"]):
        table.upsert(spark.createDataFrame([("h", rack, batch)], racks), batch)
        spark.createDataFrame([("h",)], "host STRING").coalesce(1).write.mode("append").parquet(
            source
        )
        query = (
            stream.writeStream.foreachBatch(enrich_each_batch(table.read, "host", write))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = spark.read.parquet(out).select("batch", "host", "rack")
    expected = [(0, "h", "r1"), (1, "h", "r2")]
    assertDataFrameEqual(
        found, spark.createDataFrame(expected, "batch INT, host STRING, rack STRING")
    )


def test_what_cannot_be_is_refused_with_the_remedy(spark: "SparkSession", tmp_path: Path) -> None:
    views, clicks = made(spark, VIEWS), made(spark, CLICKS)
    left = Timed(views, "viewed", "1 second")
    with pytest.raises(ColumnError, match="viewed would be there twice; rename it on one side"):
        interval_join(left, left, "ad", after="1 second")
    with pytest.raises(ColumnError, match="There is no column page"):
        interval_join(left, Timed(clicks, "clicked", "1 second"), "page", after="1 second")
    with pytest.raises(ValueError, match="after is 'soon'"):
        interval_join(left, Timed(clicks, "clicked", "1 second"), "ad", after="soon")
    with pytest.raises(ColumnError, match="at least one column"):
        enrich(views, clicks, [])
    with pytest.raises(ValueError, match="how is 'full'"):
        enrich(views, clicks, "ad", how="full")  # type: ignore[arg-type]
    stream = spark.readStream.schema(CLICKS).parquet(str(tmp_path))
    with pytest.raises(
        ValueError, match="The table is a stream; join two streams with interval_join"
    ):
        enrich(views, stream, "ad")
