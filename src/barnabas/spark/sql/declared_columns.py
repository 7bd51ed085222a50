"""Parses the columns that a user declares: some of a topic's columns, key and value as bytes or
text.

`CREATE TEMPORARY VIEW v (key STRING, value STRING) USING barnabas ...` declares columns, and so
does the option `columns` of a table. Bytes that are not UTF-8 are not changed in a text column.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from barnabas.spark.query_errors import OptionError
from barnabas.spark.schema import FETCH_TIME, spark_schema

BYTES = ("key", "value")
"""The columns that may be text."""
KNOWN = {field.name: field for field in spark_schema(include_headers=True, include_fetch_time=True)}
_RECORD = [name for name in KNOWN if name != FETCH_TIME]
TYPES: dict[str, DataType] = {"STRING": StringType(), "BINARY": BinaryType()}


@dataclass(frozen=True)
class Shape:
    """The columns that Spark gets, in order."""

    columns: tuple[str, ...]
    as_text: frozenset[str]

    def applied(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return batches with the declared columns; nothing is copied."""
        for batch in batches:
            arrays = [self._column(batch, name) for name in self.columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(self.columns))

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column = batch.column(name)
        if name not in self.as_text:
            return column
        options = pc.CastOptions(target_type=pa.string(), allow_invalid_utf8=True)
        return pc.cast(column, options=options)


def shape_of(schema: StructType) -> Shape | None:
    """Return the columns that Spark gets; None for the default columns of a read."""
    for field in schema:
        _refuse(field)
    names = tuple(schema.fieldNames())
    as_text = frozenset(each.name for each in schema if _is_text(each))
    if not as_text and names == _names(schema):
        return None
    return Shape(names, as_text)


def parse_columns(text: str) -> StructType:
    """Read the option `columns`: names with or without a type, and commas between them."""
    fields = [_field(words.split()) for words in text.split(",") if words.strip()]
    names = [each.name for each in fields]
    if not names or len(set(names)) < len(names):
        raise OptionError(
            f"columns is {text!r}; write each column once, such as 'key STRING, value STRING'"
        )
    return StructType(fields)


def _field(words: list[str]) -> StructField:
    name, kind = words[0], " ".join(words[1:]).upper()
    if name not in KNOWN:
        raise _no_column(name)
    own = KNOWN[name].dataType
    if not kind or kind == own.simpleString().upper():
        return StructField(name, own)
    if name not in BYTES or kind not in TYPES:
        raise _wrong_type(name, kind)
    return StructField(name, TYPES[kind])


def _refuse(field: StructField) -> None:
    if field.name not in KNOWN:
        raise _no_column(field.name)
    if _is_text(field):
        return
    # Comparing text leaves out whether the parts of headers may be null.
    if field.dataType.simpleString() != KNOWN[field.name].dataType.simpleString():
        raise _wrong_type(field.name, field.dataType.simpleString())


def _is_text(field: StructField) -> bool:
    return field.name in BYTES and isinstance(field.dataType, StringType)


def _no_column(name: str) -> OptionError:
    return OptionError(
        f"A topic has no column {name}; it has {', '.join(_RECORD)}. Take fields out of the value "
        "with a query: SELECT from_json(value, 'id BIGINT').id FROM ..."
    )


def _wrong_type(name: str, kind: str) -> OptionError:
    types = "BINARY or STRING" if name in BYTES else KNOWN[name].dataType.simpleString().upper()
    return OptionError(f"Column {name} cannot be {kind.upper()}; declare it as {types}")


def _names(schema: StructType) -> tuple[str, ...]:
    """Return the columns of a read without declared ones, as far as options add some."""
    has = set(schema.fieldNames())
    usual = spark_schema(include_headers="headers" in has, include_fetch_time=FETCH_TIME in has)
    return tuple(usual.fieldNames())
