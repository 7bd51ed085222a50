"""Tests, with Spark, that queries report their progress and that traces go through them."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.client import Consumer, Producer, Record, TopicPartition
from barnabas.monitor.stream_progress import StreamProgress, StreamTable
from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_S = 60.0
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"


class Topic:
    """The table of a topic of reports, as far as it was read."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer(bootstrap)
        self._consumer.assign([TopicPartition("__barnabas_streams", 0)], "beginning")
        self._table = StreamTable()

    def next(self) -> StreamProgress:
        """Wait for a report and return the query that it is about."""
        message = self._consumer.poll(PATIENCE_S)
        assert message is not None, self._table.rows
        assert message.key is not None
        self._table.apply(message.key, message.value)
        assert self._table.ignored == 0
        (row,) = [each for each in self._table.rows if each.name == message.key.decode()]
        return row

    def until(self, state: str) -> StreamProgress:
        while True:
            row = self.next()
            if row.state == state:
                return row

    def close(self) -> None:
        self._consumer.close()


def fill(bootstrap: str, count: int) -> None:
    with Producer(bootstrap) as producer:
        producer.send_batch("numbers", [Record(value=str(each)) for each in range(count)])


def copying(
    spark: "SparkSession", bootstrap: str, folder: Path, divisor: str = "1"
) -> "StreamingQuery":
    """Copy numbers to another topic, but for a division that may fail."""
    rows = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "numbers")
        .option("startingOffsets", "earliest")
        .load()
    )
    divided = rows.selectExpr("key", f"string(int(string(value)) div {divisor}) AS value")
    return (
        divided.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", "copies")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .queryName("copying")
        .trigger(processingTime="100 milliseconds")
        .start()
    )


@pytest.mark.usefixtures("sink")
def test_a_query_reports_from_its_start_to_its_failure_and_its_stop(
    spark: "SparkSession", broker: Broker, tmp_path: Path
) -> None:
    from barnabas.spark import report_progress

    fill(broker.bootstrap, 10)
    with report_progress(spark, broker.bootstrap) as reporter:
        query = copying(spark, broker.bootstrap, tmp_path)
        query.processAllAvailable()
        topic = Topic(broker.bootstrap)
        row = topic.until("running")
        while row.batch_ms is None:
            row = topic.next()
        assert (row.name, row.query_id, row.run_id) == ("copying", str(query.id), str(query.runId))
        assert (row.lag, row.state_rows, row.state_bytes, row.restarts) == (0, 0, 0, 0)
        assert row.rows_per_s is not None
        assert row.batch_ms > 0
        assert row.sources == (f"barnabas: topic numbers at {broker.bootstrap}",)
        assert row.sink is not None
        query.stop()
        stopped = topic.until("stopped")
        assert (stopped.last_error, stopped.batch_ms) == (None, row.batch_ms)

        fill(broker.bootstrap, 1)
        failing = copying(spark, broker.bootstrap, tmp_path, divisor="0")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            failing.awaitTermination()
        failed = topic.until("failed")
        assert "DIVIDE_BY_ZERO" in (failed.last_error or "")

        again = copying(spark, broker.bootstrap, tmp_path)
        again.processAllAvailable()
        assert topic.until("running").restarts == 1
        again.stop()
    assert topic.until("stopped").restarts == 1
    assert reporter.undelivered == 0
    topic.close()


@pytest.mark.usefixtures("sink")
def test_traces_go_through_a_query(spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - the usual alias

    from barnabas.spark import trace_headers, traceparent, with_traceparent

    given: list[list[tuple[str, str | bytes | None]]] = [
        [("a", "1"), ("traceparent", PARENT), ("tracestate", "x=y"), ("baggage", "who=me")],
        [("traceparent", "nonsense"), ("b", None)],
        [],
    ]
    with Producer(broker.bootstrap) as producer:
        producer.send_batch(
            "traced", [Record(value=str(n), headers=each) for n, each in enumerate(given)]
        )
    rows = (
        spark.read.format("barnabas")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", "traced")
        .option("includeHeaders", "true")
        .load()
    )
    found = rows.select(
        F.col("value").cast("string").alias("value"),
        traceparent().alias("parent"),
        trace_headers().alias("kept"),
        with_traceparent(F.lit(OTHER)).alias("changed"),
    )
    by_value = {row["value"]: row for row in found.collect()}
    assert [by_value[each]["parent"] for each in "012"] == [PARENT, None, None]
    names = [[header["key"] for header in by_value["0"][column]] for column in ("kept", "changed")]
    assert names == [
        ["traceparent", "tracestate", "baggage"],
        ["a", "tracestate", "baggage", "traceparent"],
    ]
    assert [header["key"] for header in by_value["2"]["changed"]] == ["traceparent"]

    written = rows.select("value", trace_headers().alias("headers"))
    written.write.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap).option(
        "topic", "passed"
    ).mode("append").save()
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign(consumer.partitions("passed"), "beginning")
        read = [consumer.poll(PATIENCE_S) for _ in range(3)]
    headers = {each.text: dict(each.headers) for each in read if each is not None}
    assert headers["0"] == {
        "traceparent": PARENT.encode(),
        "tracestate": b"x=y",
        "baggage": b"who=me",
    }
    assert headers["2"] == {}
