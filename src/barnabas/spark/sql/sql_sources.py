"""Implements CREATE SOURCE: a view over a topic, or over any other stream that Spark reads.

With columns, the value of a record is a JSON document with these fields. Fields become columns,
beside key (as text), topic, partition, offset, timestamp and headers, unless a field has the same
name. A separate query writes records that do not parse to the dead-letter topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.spark.sql.statements import CreateSource, StatementError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp", "headers")
OWN_OPTIONS = {"watermark", "deadlettertopic"}
NO_DEAD_LETTERS = "none"
DEFAULTS = {
    "startingOffsets": "earliest",
    "groupIdPrefix": "barnabas-sql",
    "kafka.isolation.level": "read_committed",
}
"""A stream that reads the output of another one must not see rows of aborted batches."""


@dataclass(frozen=True)
class DeadLetters:
    """Records of a source that do not parse."""

    name: str
    line: int
    rows: "DataFrame"
    topic: str


def dead_letter_topic(statement: CreateSource) -> str | None:
    """Return the dead-letter topic; None if such records are dropped, or cannot occur."""
    if statement.columns is None or statement.format != "barnabas":
        return None
    options = _lower(statement.options)
    subscribed = options.get("subscribe", "")
    topic = options.get("deadlettertopic", f"{subscribed}-dlq")
    if "deadlettertopic" not in options and (not subscribed or "," in subscribed):
        raise StatementError(
            statement.line,
            f"source {statement.name} reads several topics; say where records go that do not "
            "parse: OPTIONS (deadLetterTopic 'NAME'), or 'none' to drop them",
        )
    return None if topic.lower() == NO_DEAD_LETTERS else topic


def create_source(
    spark: "SparkSession", statement: CreateSource, brokers: Mapping[str, str]
) -> DeadLetters | None:
    """Create the view of a source; return the rows for its dead-letter topic."""
    own = {name for name in statement.options if name.lower() in OWN_OPTIONS}
    options = {name: value for name, value in statement.options.items() if name not in own}
    reader = spark.readStream.format(statement.format)
    fields = None if statement.columns is None else _fields(statement)
    if statement.format != "barnabas":
        reader = reader if fields is None else reader.schema(fields)
        _publish(reader.options(**options).load(), statement)
        return None
    given = {name.lower() for name in options}
    defaults = {k: v for k, v in {**DEFAULTS, **brokers}.items() if k.lower() not in given}
    if fields is not None:
        options["includeHeaders"] = "true"
    records = reader.options(**{**defaults, **options}).load()
    if fields is None:
        _publish(records, statement)
        return None
    return _decoded(records, fields, statement)


def _decoded(
    records: "DataFrame", fields: "StructType", statement: CreateSource
) -> DeadLetters | None:
    from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation writes it

    from barnabas.spark.helpers.values import json_values, to_dlq

    named = {name.lower() for name in fields.fieldNames()}
    keep = [name for name in RECORD_COLUMNS if name not in named]
    decoded = json_values(records, fields, keep=keep)
    good = decoded.good
    if "key" in keep:
        good = good.withColumn("key", F.col("key").cast("string"))
    _publish(good, statement)
    topic = dead_letter_topic(statement)
    if topic is None:
        return None
    name = f"{statement.name}_dead_letters"
    return DeadLetters(name, statement.line, to_dlq(decoded.bad), topic)


def _publish(rows: "DataFrame", statement: CreateSource) -> None:
    watermark = _lower(statement.options).get("watermark")
    if watermark is not None:
        column, _, delay = watermark.strip().partition(" ")
        if column not in rows.columns or not delay.strip():
            raise StatementError(
                statement.line,
                f"watermark is {watermark!r}; write a column of the source and how late a row may "
                "be, such as 'timestamp 10 seconds'",
            )
        rows = rows.withWatermark(column, delay.strip())
    rows.createOrReplaceTempView(statement.name)


def _fields(statement: CreateSource) -> "StructType":
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        fields = StructType.fromDDL(statement.columns or "")
    except PySparkException as error:
        raise StatementError(
            statement.line,
            f"the columns of source {statement.name} cannot be read "
            f"({_first_line(str(error))}); type: (id BIGINT NOT NULL, name STRING)",
        ) from error
    assert isinstance(fields, StructType), "a list of columns has a type for each"
    return fields


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
