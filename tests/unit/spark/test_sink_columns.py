"""Tests that the columns of a sink are checked before any task runs."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.sink.sink_columns import ColumnError, Columns, find_columns

HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_columns_are_found_in_any_order_and_case_and_others_left_out() -> None:
    rows = schema(
        headers=HEADERS,
        offset=LongType(),
        VALUE=BinaryType(),
        Key=StringType(),
        topic=StringType(),
        partition=IntegerType(),
        timestamp=TimestampType(),
    )
    assert find_columns(rows, topic=None) == Columns(2, 3, 0, 4, 5, 6)


def test_headers_can_be_left_out() -> None:
    rows = schema(value=StringType(), headers=HEADERS)
    assert find_columns(rows, topic="t", headers=False) == Columns(0, None, None, None, None, None)


@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ({"id": LongType()}, "no column value"),
        ({"value": LongType()}, "CAST(value AS STRING)"),
        ({"value": StringType(), "key": LongType()}, "CAST(key AS STRING)"),
        ({"value": StringType(), "partition": LongType()}, "CAST(partition AS INT)"),
        ({"value": StringType(), "topic": IntegerType()}, "CAST(topic AS STRING)"),
        ({"value": StringType(), "timestamp": LongType()}, "CAST(timestamp AS TIMESTAMP)"),
        ({"value": StringType(), "headers": ArrayType(StringType())}, "array(struct("),
        ({"value": StringType(), "Value": StringType()}, "keep one"),
    ],
)
def test_wrong_columns_name_the_remedy(columns: dict[str, DataType], remedy: str) -> None:
    with pytest.raises(ColumnError) as caught:
        find_columns(schema(**columns), topic="t")
    assert remedy in str(caught.value)


def test_rows_need_a_topic() -> None:
    with pytest.raises(ColumnError, match="set option topic"):
        find_columns(schema(value=StringType()), topic=None)
