"""`df.writeStream.format("barnabas")`: batches that are replayed write their rows once."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing.broker import Broker
from barnabas.testing.topic_reading import committed_records, create_topic

ROWS_A_FILE = 500


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def add_file(folder: Path, number: int) -> None:
    first = number * ROWS_A_FILE
    lines = "\n".join(str(each) for each in range(first, first + ROWS_A_FILE))
    (folder / f"{number}.txt").write_text(lines)


def run(rows: DataFrame, sink: str, broker: Broker, topic: str, checkpoint: Path) -> list[int]:
    """Run a stream to the end of its input; return the batches that it wrote."""
    query = (
        rows.writeStream.format(sink)
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress["batchId"] for progress in query.recentProgress]


def values(broker: Broker, topic: str) -> list[int]:
    found = committed_records(broker.bootstrap, topic)
    return sorted(int(each.value or b"") for each in found)


def stream(spark: SparkSession, files: Path) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(files))


def test_a_batch_that_is_replayed_is_not_written_again(
    spark: SparkSession, sink: str, broker: Broker, files: Path, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "replayed", 2)
    checkpoint = tmp_path / "checkpoint"
    for number in range(2):
        add_file(files, number)
    run(stream(spark, files), sink, broker, topic, checkpoint)
    assert values(broker, topic) == list(range(2 * ROWS_A_FILE))

    # As if the driver had died after the rows were written and before Spark noted it.
    commits = checkpoint / "commits"
    for place in (commits / "1", commits / ".1.crc"):
        place.unlink(missing_ok=True)
    add_file(files, 2)
    assert 1 in run(stream(spark, files), sink, broker, topic, checkpoint)
    assert values(broker, topic) == list(range(3 * ROWS_A_FILE))


def test_rows_are_written_again_without_exactly_once(
    spark: SparkSession, sink: str, broker: Broker, files: Path, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "doubled")
    checkpoint = tmp_path / "checkpoint"
    add_file(files, 0)

    def once_more() -> None:
        query = (
            stream(spark, files)
            .writeStream.format(sink)
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("exactlyOnce", "false")
            .option("topic", topic)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    once_more()
    for place in (checkpoint / "commits" / "0", checkpoint / "commits" / ".0.crc"):
        place.unlink(missing_ok=True)
    once_more()
    assert len(values(broker, topic)) == 2 * ROWS_A_FILE


def test_a_shuffle_before_the_sink(
    spark: SparkSession, sink: str, broker: Broker, files: Path, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "shuffled", 2)
    for number in range(2):
        add_file(files, number)
    rows = stream(spark, files).repartition(2, "value").selectExpr("value", "value AS key")
    run(rows, sink, broker, topic, tmp_path / "checkpoint")
    assert values(broker, topic) == list(range(2 * ROWS_A_FILE))
