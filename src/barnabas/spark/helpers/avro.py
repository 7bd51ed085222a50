"""Decodes Avro values into Arrow columns, a batch at a time, with a reason for each undecodable
value.

Spark's from_avro needs a separate jar, and fails or returns null for a bad value without a reason.
fastavro is installed by pip, and reads a value of one schema as another schema.

A value is bare Avro, or framed as Confluent's serializers do it: a zero byte, the id of the
writer's schema in four bytes, then Avro.
"""

import io
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import fastavro
import pyarrow as pa
from fastavro.schema import expand_schema
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.spark.helpers.json_documents import DECODED, DETAIL, REASON

Schemas: TypeAlias = Mapping[int, str] | Callable[[int], str]
"""The writers' schemas by id: a table, or a function that raises LookupError for unknown ids."""

NO_VALUE, BAD_FRAME, UNKNOWN_SCHEMA, BAD_AVRO = (
    "no-value",
    "bad-frame",
    "unknown-schema",
    "bad-avro",
)
FRAME = struct.Struct(">bI")
LOGICAL = {
    "date": t.DateType(),
    "timestamp-millis": t.TimestampType(),
    "timestamp-micros": t.TimestampType(),
    "local-timestamp-millis": t.TimestampNTZType(),
    "local-timestamp-micros": t.TimestampNTZType(),
}
PRIMITIVE = {
    "boolean": t.BooleanType(),
    "int": t.IntegerType(),
    "long": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "bytes": t.BinaryType(),
    "string": t.StringType(),
    "enum": t.StringType(),
    "fixed": t.BinaryType(),
}
WIDER = ({"int", "long"}, "long"), ({"float", "double"}, "double")
DECIMAL_DIGITS_MAX = 38


class AvroError(ValueError):
    """A schema cannot be the columns of a frame; the message says what to change."""


class Outcome(NamedTuple):
    """The result for a value: its fields, or the reason why there are none."""

    fields: dict[str, Any] | None
    reason: str | None = None
    detail: str | None = None


def spark_columns(schema: str) -> t.StructType:
    """Return the columns that values of an Avro record have."""
    expanded = expand_schema(_loaded(schema))
    if not isinstance(expanded, dict) or expanded.get("type") != "record":
        raise AvroError(
            "The Avro schema is not of a record, so it has no fields to make columns of"
        )
    made = _spark_type(expanded, str(expanded["name"]))
    assert isinstance(made, t.StructType)
    return made


class AvroDecoder:
    """Decodes one column of Arrow batches; Spark sends it to workers, where it opens schemas."""

    def __init__(self, schema: str, schemas: Schemas | None, column: str) -> None:
        """Take the schema of the columns, and those of the writers if values are framed."""
        self._schema = schema
        self._schemas = schemas
        self._column = column
        self._columns = to_arrow_schema(spark_columns(schema), timezone="UTC")
        self._reader: Any = None
        self._writers: dict[int, Any] = {}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the decoded fields, the reason and the detail beside it."""
        outcomes = [self.decode(value) for value in batch.column(self._column).to_pylist()]
        decoded = pa.array(
            [each.fields for each in outcomes], pa.struct(list(self._columns)), from_pandas=False
        )
        texts = (pa.array([each[place] for each in outcomes], pa.string()) for place in (1, 2))
        arrays = [*batch.columns, decoded, *texts]
        return pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, DECODED, REASON, DETAIL])

    def decode(self, value: bytes | None) -> Outcome:
        """Decode one value."""
        if value is None:
            return Outcome(None, NO_VALUE, "the value is null")
        source = io.BytesIO(value)
        try:
            writer = self._writer(source)
        except _BadFrameError as error:
            return Outcome(None, error.reason, str(error))
        return self._read(source, writer)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None, "_writers": {}}

    def _read(self, source: io.BytesIO, writer: Any) -> Outcome:  # noqa: ANN401 - fastavro's
        try:
            fields = fastavro.schemaless_reader(source, writer, self._read_as())
        except Exception as error:  # noqa: BLE001 - whatever the bytes make of fastavro, they are bad
            what = str(error) or type(error).__name__
            return Outcome(None, BAD_AVRO, f"not a value of the schema: {what}"[:500])
        left = len(source.getbuffer()) - source.tell()
        if left:
            return Outcome(None, BAD_AVRO, f"{left} bytes are left over after the value")
        assert isinstance(fields, dict)
        return Outcome(fields)

    def _writer(self, source: io.BytesIO) -> Any:  # noqa: ANN401 - fastavro's
        if self._schemas is None:
            return self._read_as()
        frame = source.read(FRAME.size)
        if len(frame) < FRAME.size or frame[0] != 0:
            raise _BadFrameError(
                BAD_FRAME, f"not framed with the id of a schema: it begins with {frame.hex()!r}"
            )
        _, number = FRAME.unpack(frame)
        if number not in self._writers:
            self._writers[number] = self._look_up(number, self._schemas)
        return self._writers[number]

    def _look_up(self, number: int, schemas: Schemas) -> Any:  # noqa: ANN401 - fastavro's
        try:
            text = schemas(number) if callable(schemas) else schemas[number]
        except LookupError:
            raise _BadFrameError(UNKNOWN_SCHEMA, f"there is no schema {number}") from None
        return _parsed(text)

    def _read_as(self) -> Any:  # noqa: ANN401 - fastavro's
        if self._reader is None:
            self._reader = _parsed(self._schema)
        return self._reader


class _BadFrameError(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def _loaded(schema: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(schema)
    except ValueError as error:
        raise AvroError(f"The Avro schema is not JSON: {error}") from None


def _parsed(schema: str) -> Any:  # noqa: ANN401 - fastavro's
    return fastavro.parse_schema(_plain(_loaded(schema)))


def _plain(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Drop logical types that Spark does not have: their values get the underlying type."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    known = {*LOGICAL, "decimal"}
    kept = {
        name: value for name, value in schema.items() if name != "logicalType" or value in known
    }
    inner = ("type", "items", "values")
    for name in inner:
        if name in kept:
            kept[name] = _plain(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_plain(each) for each in kept["fields"]]
    return kept


def _spark_type(schema: Any, where: str) -> t.DataType:  # noqa: ANN401 - JSON
    if isinstance(schema, list):
        return _spark_type(_one_of(schema, where), where)
    if isinstance(schema, str):
        return _simple(schema, where)
    kind = schema["type"]
    if not isinstance(kind, str):
        return _spark_type(kind, where)
    logical = schema.get("logicalType")
    if logical in LOGICAL and kind in {"int", "long"}:
        return LOGICAL[logical]
    return _decimal(schema, where) if logical == "decimal" else _compound(kind, schema, where)


def _compound(kind: str, schema: Mapping[str, Any], where: str) -> t.DataType:
    match kind:
        case "record":
            made = t.StructType()
            for field in schema["fields"]:
                inner = _spark_type(field["type"], f"{where}.{field['name']}")
                made.add(field["name"], inner)
            return made
        case "array":
            return t.ArrayType(_spark_type(schema["items"], f"{where}[]"))
        case "map":
            return t.MapType(t.StringType(), _spark_type(schema["values"], f"{where}{{}}"))
        case _:
            return _simple(kind, where)


def _simple(kind: str, where: str) -> t.DataType:
    if kind not in PRIMITIVE:
        raise AvroError(
            f"{where} is of type {kind}, which contains itself or is not defined; Spark has no "
            "such column: give a schema without it"
        )
    return PRIMITIVE[kind]


def _decimal(schema: Mapping[str, Any], where: str) -> t.DataType:
    if schema["precision"] > DECIMAL_DIGITS_MAX:
        raise AvroError(
            f"{where} is a decimal of {schema['precision']} digits; Spark has "
            f"{DECIMAL_DIGITS_MAX} at the most"
        )
    return t.DecimalType(schema["precision"], schema.get("scale", 0))


def _one_of(branches: list[Any], where: str) -> Any:  # noqa: ANN401 - JSON
    """Return the one type of a union that is not null."""
    kinds = [each for each in branches if each != "null"]
    if len(kinds) == 1:
        return kinds[0]
    for narrow, wide in WIDER:
        if all(isinstance(each, str) and each in narrow for each in kinds) and kinds:
            return wide
    raise AvroError(
        f"{where} is a union of {len(kinds)} types, and a column has one; give a schema in which "
        "it has one type, beside null"
    )
