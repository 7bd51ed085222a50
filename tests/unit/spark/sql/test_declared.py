"""Tests columns that users declare, and the options that a table carries in its schema."""

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from barnabas.spark.query_errors import OptionError
from barnabas.spark.schema import arrow_schema, spark_schema
from barnabas.spark.sql.declared_columns import parse_columns, shape_of
from barnabas.spark.sql.sql_tables import (
    READ_FROM_A_TABLE,
    for_reading,
    for_writing,
    kept_options,
    source_schema,
)

BROKERS = {"kafka.bootstrap.servers": "b:9092"}
CREATED = {
    "provider": "barnabas",
    "owner": "me",
    "option.kafka.bootstrap.servers": "b:9092",
    "option.topic": "orders",
}
"""The schema that Spark passes while it creates a table."""


def stored(schema: StructType) -> StructType:
    """As Spark's catalog returns it: VARCHAR is a STRING with metadata."""
    return StructType(
        [
            StructField("topic", StringType(), metadata={**each.metadata, READ_FROM_A_TABLE: "v"})
            if each.name == "topic"
            else each
            for each in schema
        ]
    )


def inserted(schema: StructType) -> StructType:
    """As Spark passes it to the writer of an INSERT: without the metadata."""
    return StructType(
        [
            StructField("topic", StringType(), metadata=each.metadata)
            if each.name == "topic"
            else each
            for each in schema
        ]
    )


def test_the_columns_of_a_read_need_no_shape() -> None:
    assert shape_of(spark_schema(include_headers=False)) is None
    assert shape_of(spark_schema(include_headers=True)) is None
    assert shape_of(spark_schema(include_headers=True, include_fetch_time=True)) is None


def test_declared_columns_come_in_their_order_with_text_as_text() -> None:
    shape = shape_of(parse_columns("value STRING, key, offset BIGINT"))
    assert shape is not None
    row = [[b"k"], [b"\xff{}"], ["t"], [0], [7], [0], [0]]
    schema = arrow_schema(include_headers=False)
    arrays = [pa.array(each, kind.type) for each, kind in zip(row, schema, strict=True)]

    (found,) = shape.applied([pa.RecordBatch.from_arrays(arrays, schema=schema)])

    assert found.schema.names == ["value", "key", "offset"]
    assert found.schema.types == [pa.string(), pa.binary(), pa.int64()]
    assert found.column("value").view(pa.binary())[0].as_py() == b"\xff{}"
    assert pickle.loads(pickle.dumps(shape)) == shape


@pytest.mark.parametrize(
    ("columns", "advice"),
    [
        ("id BIGINT", "A topic has no column id; it has key, value, topic"),
        ("key INT", "Column key cannot be INT; declare it as BINARY or STRING"),
        ("offset STRING", "Column offset cannot be STRING; declare it as BIGINT"),
        ("key, key", "write each column once"),
        (" ", "write each column once"),
    ],
)
def test_columns_that_a_topic_has_not_are_refused(columns: str, advice: str) -> None:
    with pytest.raises(OptionError, match=advice):
        parse_columns(columns)


def test_a_table_carries_its_options_to_reads_and_writes() -> None:
    schema = source_schema(CREATED)

    assert schema.fieldNames() == spark_schema(include_headers=False).fieldNames()
    assert for_reading({}, stored(schema)) == {
        **BROKERS,
        "subscribe": "orders",
        "includeheaders": "false",
        "includefetchtime": "false",
    }
    assert for_writing({}, inserted(schema)) == {**BROKERS, "topic": "orders"}
    assert for_writing({"kafka.acks": "all"}, inserted(schema))["kafka.acks"] == "all"


def test_declared_columns_of_a_table_have_a_topic_to_carry_options() -> None:
    schema = source_schema({**CREATED, "option.columns": "key STRING, value STRING"})

    assert schema.fieldNames() == ["key", "value", "topic"]
    assert kept_options(schema) == {**BROKERS, "topic": "orders"}


def test_no_two_tables_have_columns_of_the_same_type() -> None:
    """Otherwise Spark would keep the metadata of the first in an INSERT INTO the second."""
    other = {**CREATED, "option.topic": "payments"}
    assert source_schema(CREATED)["topic"].dataType != source_schema(other)["topic"].dataType


def test_rows_of_a_table_are_not_written_to_the_tables_own_topic_by_mistake() -> None:
    rows = stored(source_schema(CREATED))
    with pytest.raises(OptionError, match=r"leave it out with \.drop\('topic'\)"):
        for_writing({}, rows)
    with pytest.raises(OptionError, match=r"leave it out with \.drop\('topic'\)"):
        for_writing({**BROKERS, "topic": "copies"}, rows)


def test_options_of_the_query_replace_those_of_the_table() -> None:
    found = for_reading(
        {"kafka.bootstrap.servers": "c:9092", "subscribe": "x"}, stored(source_schema(CREATED))
    )
    assert found == {
        "kafka.bootstrap.servers": "c:9092",
        "subscribe": "x",
        "includeheaders": "false",
        "includefetchtime": "false",
    }


def test_without_options_the_error_says_what_to_type() -> None:
    plain = StructType([StructField("key", BinaryType()), StructField("value", StringType())])
    for take in (for_reading, for_writing):
        with pytest.raises(OptionError, match="type: DROP TABLE t; CREATE TABLE t USING barnabas"):
            take({}, plain)
    with pytest.raises(OptionError, match="type: DROP TABLE t; CREATE TABLE t USING barnabas"):
        source_schema({"provider": "barnabas"})
