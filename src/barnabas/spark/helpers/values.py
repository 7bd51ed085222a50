"""Decodes record values into columns, and separates the records that cannot be decoded.

    from barnabas.spark import json_values, to_dlq

    decoded = json_values(records, "gpu_id STRING NOT NULL, value DOUBLE")
    decoded.good    # the columns of the records without the value, and its fields
    to_dlq(decoded.bad).writeStream.format("barnabas").option("topic", "samples-dlq") ...

Both branches are lazy. In a stream each is a separate query that reads the topic; to read it once,
decode inside foreachBatch and write both there.

Column `reason` says why a value is bad (`detail` has a sentence):

    no-value        it is null (a tombstone)
    bad-utf8        JSON: not UTF-8
    bad-json        JSON: not one whole document
    not-an-object   JSON: a document, but not {...}
    wrong-type      JSON: a field does not have the type of the schema
    missing-field   JSON: a field that the schema calls NOT NULL is missing or null
    bad-frame       Avro: the id of a schema is missing
    unknown-schema  Avro: the schema id is unknown
    bad-avro        Avro: the bytes are not a value of their schema
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from barnabas.spark.helpers.columns import ColumnError, refuse_twice, require
from barnabas.spark.helpers.json_documents import DECODED, DETAIL, REASON, decoded_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from barnabas.spark.helpers.avro import Schemas

DLQ = "dlq."
ISO_8601 = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


class Decoded(NamedTuple):
    """The two branches of a decoding; each row is in exactly one."""

    good: "DataFrame"
    """The decoded rows: the other columns of the frame, and the fields."""
    bad: "DataFrame"
    """The other rows: the columns of the frame unchanged, `reason` and `detail`."""


def json_values(
    frame: "DataFrame",
    schema: StructType | str,
    *,
    column: str = "value",
    keep: Sequence[str] | None = None,
    into: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Decoded:
    """Decode JSON objects.

    A field that is NOT NULL in the schema is required. Fields that the schema does not name are
    ignored, as in from_json. Unlike in from_json, invalid input never becomes null: not a field of
    another type, not text after the object, not bytes that are not UTF-8.

    The fields become columns, beside the columns of the frame that `keep` names (all except
    `column`); with `into` they become one column of that name. `options` are those of from_json,
    such as timestampFormat.

        json_values(records, "gpu_id STRING NOT NULL, watts DOUBLE", keep=["offset"]).good
    """
    fields = _struct(schema)
    kept = _kept(frame, fields, column, keep, into)
    rows = decoded_json(frame, column, fields, options or {})
    return _branches(rows, frame, kept, into)


def avro_values(
    frame: "DataFrame",
    schema: str,
    *,
    schemas: "Schemas | None" = None,
    column: str = "value",
    keep: Sequence[str] | None = None,
    into: str | None = None,
) -> Decoded:
    """Decode Avro records to the fields of `schema`, which is JSON.

    Without `schemas`, values are bare Avro of exactly that schema. With it, they are framed with
    the id of their writer's schema, as Confluent's serializers frame them, and converted to
    `schema`. `schemas` is a table of schemas by id, or a function of the id that raises LookupError
    for an unknown one, like `SchemaRegistry`.

    The rest is as in `json_values`. fastavro does the work in Python workers; no jar is needed.

        avro_values(records, open("gpu.avsc").read(), schemas=SchemaRegistry("http://reg:8081"))
    """
    from barnabas.spark.helpers.avro import AvroDecoder, spark_columns

    fields = spark_columns(schema)
    kept = _kept(frame, fields, column, keep, into)
    decode = AvroDecoder(schema, schemas, column)

    def decode_all(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        return map(decode, batches)

    added = [
        StructField(DECODED, fields),
        StructField(REASON, StringType()),
        StructField(DETAIL, StringType()),
    ]
    rows = frame.mapInArrow(decode_all, StructType([*frame.schema.fields, *added]))
    return _branches(rows, frame, kept, into)


def to_dlq(bad: "DataFrame", topic: str | None = None) -> "DataFrame":
    """Return bad rows as records for a dead-letter topic, with headers that say why.

    Key, value and headers are unchanged. The headers dlq.topic, dlq.partition, dlq.offset,
    dlq.reason, dlq.detail and dlq.time (ISO 8601, of the batch) are added, and replace those of an
    earlier round. Read the topic with includeHeaders, otherwise its own headers are lost. With
    `topic`, a column has the topic to write to; without it, set the option topic.

        to_dlq(decoded.bad, "samples-dlq").write.format("barnabas").options(**brokers).save()
    """
    require(bad, ["value", "topic", "partition", "offset", "reason", "detail"])
    time = F.to_utc_timestamp(F.current_timestamp(), F.current_timezone())
    said = {
        "topic": F.col("topic"),
        "partition": F.col("partition"),
        "offset": F.col("offset"),
        "reason": F.col("reason"),
        "detail": F.col("detail"),
        "time": F.date_format(time, ISO_8601),
    }
    own = F.array(*(_header(DLQ + name, value) for name, value in said.items()))
    has = set(bad.columns)
    shaped = bad.select(
        F.col("key") if "key" in has else F.lit(None).cast("binary").alias("key"),
        "value",
        (F.concat(_earlier_headers(), own) if "headers" in has else own).alias("headers"),
    )
    return shaped if topic is None else shaped.withColumn("topic", F.lit(topic))


def _struct(schema: StructType | str) -> StructType:
    fields = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(fields, StructType) or not fields.fields:
        raise ColumnError(f"The schema {schema!r} has no fields; write it like 'a INT, b STRING'")
    return fields


def _header(name: str, value: "Column") -> "Column":
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def _earlier_headers() -> "Column":
    """The record's own headers; none if it has none."""
    kept = F.filter("headers", lambda each: ~F.coalesce(each["key"], F.lit("")).startswith(DLQ))
    return F.coalesce(kept, F.array().cast("array<struct<key:string,value:binary>>"))


def _kept(
    frame: "DataFrame",
    fields: StructType,
    column: str,
    keep: Sequence[str] | None,
    into: str | None,
) -> list[str]:
    """Return the columns that stay beside the fields; refuse names that conflict."""
    require(frame, [column, *(keep or ())])
    kind = frame.schema[column].dataType
    if not isinstance(kind, StringType | BinaryType):
        raise ColumnError(
            f"Column {column} is {kind.simpleString()}; "
            "only a string or binary column can be decoded"
        )
    kept = [name for name in frame.columns if name != column] if keep is None else list(keep)
    refuse_twice(
        kept,
        fields.fieldNames() if into is None else [into],
        "name the columns to stay with keep=[...], or put the fields into one with into='...'",
    )
    refuse_twice(frame.columns, ["reason", "detail"], "rename it first")
    return kept


def _branches(
    rows: "DataFrame", frame: "DataFrame", kept: Sequence[str], into: str | None
) -> Decoded:
    fields = f"{DECODED}.*" if into is None else F.col(DECODED).alias(into)
    good = rows.where(F.col(REASON).isNull()).select(*_columns(kept), fields)
    bad = rows.where(F.col(REASON).isNotNull()).select(
        *_columns(frame.columns), F.col(REASON).alias("reason"), F.col(DETAIL).alias("detail")
    )
    return Decoded(good, bad)


def _columns(columns: Sequence[str]) -> list["Column"]:
    return [F.col(f"`{name}`") for name in columns]
