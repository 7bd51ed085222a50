"""Implements CREATE STREAM: a streaming query over sources that writes to a topic or a table.

Rows for a topic without a column value become JSON documents. The option key names the column that
becomes their key. A stream is a streaming query of Spark: with its checkpoint it continues where it
stopped, and the sink writes each row once (see docs/spark-sink.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.spark.sql.sql_sources import DeadLetters
from barnabas.spark.sql.statements import CreateStream, Into, StatementError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OWN_OPTIONS = {"key", "outputmode", "trigger", "checkpointlocation"}
DEFAULT_TRIGGER = "1 second"


@dataclass(frozen=True, kw_only=True)
class Place:
    """The common settings of all streams of a file."""

    folder: Path
    """The folder of the checkpoints and tables."""
    brokers: Mapping[str, str]
    trigger: str = DEFAULT_TRIGGER
    once: bool = False

    def checkpoint(self, name: str) -> str:
        """Return the path of a stream's checkpoint."""
        return str(self.folder / "checkpoints" / name)

    def table(self, name: str) -> str:
        """Return the path of a table's files."""
        return str(self.folder / "tables" / name)


@dataclass(frozen=True)
class Stream:
    """A streaming query that can be started several times."""

    name: str
    line: int
    into: str
    start: Callable[[], "StreamingQuery"]


def create_stream(spark: "SparkSession", statement: CreateStream, place: Place) -> Stream:
    """Plan a stream; nothing runs yet."""
    # Line breaks before the query give Spark's errors the line of the file.
    rows = spark.sql("\n" * (statement.query_line - 1) + statement.query)
    if not rows.isStreaming:
        raise StatementError(
            statement.line,
            f"stream {statement.name} selects from no source, so that it would end at once; "
            "select from a CREATE SOURCE, or type INSERT INTO ... SELECT ...",
        )
    options = {name.lower(): value for name, value in statement.options.items()}
    writer_options = {n: v for n, v in statement.options.items() if n.lower() not in OWN_OPTIONS}
    if statement.into is Into.TOPIC:
        rows = as_records(rows, options.get("key"), statement)
        writer_options = {**place.brokers, "topic": statement.target, **writer_options}
    else:
        writer_options = {"path": place.table(statement.target), **writer_options}
        _register(spark, rows, statement, writer_options["path"])
    writer = rows.writeStream.format(statement.format).options(**writer_options)
    writer = writer.outputMode(options.get("outputmode", "append"))
    return _stream(
        writer,
        name=statement.name,
        line=statement.line,
        into=f"{statement.into.value} {statement.target}",
        checkpoint=options.get("checkpointlocation", place.checkpoint(statement.name)),
        trigger=_trigger(place, options.get("trigger")),
    )


def dead_letter_stream(letters: DeadLetters, place: Place) -> Stream:
    """Plan the query that writes unparsable records to the dead-letter topic."""
    writer_options = {**place.brokers, "topic": letters.topic}
    return _stream(
        letters.rows.writeStream.format("barnabas").options(**writer_options),
        name=letters.name,
        line=letters.line,
        into=f"topic {letters.topic}",
        checkpoint=place.checkpoint(letters.name),
        trigger=_trigger(place, None),
    )


def as_records(rows: "DataFrame", key: str | None, statement: CreateStream) -> "DataFrame":
    """Add the columns of records to rows, unless they have them."""
    from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation writes it

    if key is not None and key not in rows.columns:
        raise StatementError(
            statement.line,
            f"the option key of stream {statement.name} is {key}, and its query has no such "
            f"column; choose from {', '.join(rows.columns)}",
        )
    has_value = "value" in rows.columns
    if has_value and rows.schema["value"].dataType.simpleString() in {"string", "binary"}:
        return rows if key is None else rows.withColumn("key", F.col(f"`{key}`").cast("string"))
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in rows.columns))).alias("value")
    keyed = F.lit(None).cast("string") if key is None else F.col(f"`{key}`").cast("string")
    return rows.select(keyed.alias("key"), value)


def _stream(
    writer: "DataStreamWriter",
    *,
    name: str,
    line: int,
    into: str,
    checkpoint: str,
    trigger: dict[str, Any],
) -> Stream:
    ready = writer.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger)
    return Stream(name, line, into, ready.start)


def _trigger(place: Place, own: str | None) -> dict[str, Any]:
    return {"availableNow": True} if place.once else {"processingTime": own or place.trigger}


def _register(spark: "SparkSession", rows: "DataFrame", statement: CreateStream, path: str) -> None:
    """Register the table for later statements of the file."""
    if "://" not in path:
        Path(path).mkdir(parents=True, exist_ok=True)
    if not spark.catalog.tableExists(statement.target):
        spark.catalog.createTable(statement.target, path, statement.format, rows.schema)
