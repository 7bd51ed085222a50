"""Finds and checks the columns that the sink writes, when the query is planned.

As in Spark's own connector, with one more: `timestamp`, which becomes the record's timestamp.

    value      string or binary        required
    key        string or binary
    headers    array<struct<key: string, value: binary>>
    topic      string                  unless option topic names one for all rows
    partition  int
    timestamp  timestamp

Other columns are ignored, as in Spark's connector, so that rows that were read from a topic can be
written to another one unchanged.
"""

from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

SHAPES = {
    "value": "string or binary",
    "key": "string or binary",
    "headers": "array<struct<key: string, value: binary>>",
    "topic": "string",
    "partition": "int",
    "timestamp": "timestamp",
}

CASTS = {
    "value": "CAST(value AS STRING), or to_json(struct(...)) for several columns",
    "key": "CAST(key AS STRING)",
    "headers": "array(struct('name' AS key, CAST('content' AS BINARY) AS value))",
    "topic": "CAST(topic AS STRING)",
    "partition": "CAST(partition AS INT)",
    "timestamp": "CAST(timestamp AS TIMESTAMP)",
}


class ColumnError(ValueError):
    """A column is missing or of the wrong type; the message says how to fix it."""


class Columns(NamedTuple):
    """The index of each column in the rows; None if there is no such column."""

    value: int
    key: int | None
    headers: int | None
    topic: int | None
    partition: int | None
    timestamp: int | None


def find_columns(schema: StructType, *, topic: str | None, headers: bool = True) -> Columns:
    """Find the columns of a sink; raise if one is missing or of the wrong type."""
    found = {name: _find(schema, name) for name in SHAPES}
    if found["value"] is None:
        named = ", ".join(schema.fieldNames()) or "none"
        raise ColumnError(
            f"The rows have no column value (columns: {named}); name what is to be written: "
            f"df.selectExpr({CASTS['value'].partition(',')[0]!r})"
        )
    if topic is None and found["topic"] is None:
        raise ColumnError(
            "The rows have no column topic and option topic is not set; "
            "set option topic, or add column topic"
        )
    return Columns(
        value=found["value"],
        key=found["key"],
        headers=found["headers"] if headers else None,
        topic=found["topic"],
        partition=found["partition"],
        timestamp=found["timestamp"],
    )


def _find(schema: StructType, name: str) -> int | None:
    places = [place for place, field in enumerate(schema.fields) if field.name.lower() == name]
    if not places:
        return None
    if len(places) > 1:
        raise ColumnError(f"{len(places)} columns are named {name}; keep one")
    kind = schema.fields[places[0]].dataType
    if not _fits(name, kind):
        raise ColumnError(
            f"Column {name} is {kind.simpleString()}; it must be {SHAPES[name]}: {CASTS[name]}"
        )
    return places[0]


def _fits(name: str, kind: DataType) -> bool:
    match name:
        case "value" | "key":
            return isinstance(kind, StringType | BinaryType)
        case "topic":
            return isinstance(kind, StringType)
        case "partition":
            return isinstance(kind, IntegerType)
        case "timestamp":
            return isinstance(kind, TimestampType)
        case _:
            return _are_headers(kind)


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    shape = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return shape == [("key", StringType), ("value", BinaryType)]
