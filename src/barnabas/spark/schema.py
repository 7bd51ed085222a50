"""The columns of the source, as a Spark schema and as an Arrow schema; they match Spark's
connector.
"""

from functools import cache

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

CREATE_TIME, LOG_APPEND_TIME = 0, 1
"""The values of `timestampType`: the producer's clock, or the broker's."""
FETCH_TIME = "fetchTimeUs"
"""A column for metrics: how long the source took for some rows, in the first of them, else 0."""

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_FIELDS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]

ARROW_HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
_ARROW_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
]


def spark_schema(*, include_headers: bool, include_fetch_time: bool = False) -> StructType:
    """Return the columns of a read."""
    headers = [StructField("headers", _HEADERS)] if include_headers else []
    times = [StructField(FETCH_TIME, LongType())] if include_fetch_time else []
    return StructType([*_FIELDS, *headers, *times])


@cache
def arrow_schema(*, include_headers: bool) -> pa.Schema:
    """Return the columns of records as the Arrow schema that Spark expects."""
    headers = [pa.field("headers", ARROW_HEADERS)] if include_headers else []
    return pa.schema([*_ARROW_FIELDS, *headers])
