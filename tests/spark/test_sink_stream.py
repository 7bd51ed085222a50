"""Tests `df.writeStream.format("barnabas")`: replayed batches write their rows once."""

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.testing.broker import Broker
from tests.support.loads.topic_reading import committed_records, create_topic

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


def forget_last_commit(checkpoint: Path) -> None:
    """Leave the checkpoint as a driver does that died before Spark noted its last batch."""
    last = max(int(each.name) for each in (checkpoint / "commits").glob("[0-9]*"))
    for place in (checkpoint / "commits" / str(last), checkpoint / "commits" / f".{last}.crc"):
        place.unlink(missing_ok=True)


def test_a_batch_is_replayed_with_another_number_of_tasks(
    spark: SparkSession, sink: str, broker: Broker, files: Path, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "other-tasks", 2)
    checkpoint = tmp_path / "checkpoint"
    add_file(files, 0)
    for tasks in (2, 5, 1):
        rows = stream(spark, files).repartition(tasks, "value").selectExpr("value", "value AS key")
        run(rows, sink, broker, topic, checkpoint)
        forget_last_commit(checkpoint)
    assert values(broker, topic) == list(range(ROWS_A_FILE))


def test_a_restored_checkpoint_stops_the_query_before_it_skips_new_rows(
    spark: SparkSession, sink: str, broker: Broker, files: Path, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "restored")
    checkpoint, backup = tmp_path / "checkpoint", tmp_path / "backup"
    rows = spark.readStream.text(str(files))
    add_file(files, 0)
    run(rows, sink, broker, topic, checkpoint)
    shutil.copytree(checkpoint, backup)
    add_file(files, 1)
    run(rows, sink, broker, topic, checkpoint)

    add_file(files, 2)
    with pytest.raises(StreamingQueryException, match="was written before with other rows"):
        run(rows, sink, broker, topic, backup)
    run(rows, sink, broker, topic, checkpoint)
    assert values(broker, topic) == list(range(3 * ROWS_A_FILE))


def test_a_copied_checkpoint_stops_a_query_with_another_topic(
    spark: SparkSession, sink: str, broker: Broker, files: Path, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, "original")
    other = create_topic(broker.bootstrap, "other")
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    add_file(files, 0)
    run(stream(spark, files), sink, broker, topic, checkpoint)
    shutil.copytree(checkpoint, copy)
    add_file(files, 1)
    run(stream(spark, files), sink, broker, topic, checkpoint)

    with pytest.raises(StreamingQueryException, match="transactionalIdPrefix of its own"):
        run(stream(spark, files), sink, broker, other, copy)
    assert values(broker, other) == []
