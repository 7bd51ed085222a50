"""Carries traces (W3C Trace Context) from the records that a query reads to those that it writes.

    from barnabas.spark import trace_headers

    rows = spark.readStream.format("barnabas").option("includeHeaders", "true")...load()
    written = rows.select("key", F.upper("value").alias("value"), trace_headers().alias("headers"))

The sink writes a column `headers`. All functions are built-in column functions: nothing runs in
Python. A row that is computed from many records (a window, a join) has no single trace.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual alias

if TYPE_CHECKING:
    from pyspark.sql import Column

TRACEPARENT = "traceparent"
TRACE_HEADERS = (TRACEPARENT, "tracestate", "baggage")
VALID = "^(?!ff|00-.{53})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$"
"""The grammar of a traceparent. Later versions than 00 may be longer."""


def trace_headers(headers: "Column | str" = "headers") -> "Column":
    """Return the headers that belong to a trace, in their order, without all others."""
    return F.filter(_column(headers), lambda each: each["key"].isin(*TRACE_HEADERS))


def traceparent(headers: "Column | str" = "headers") -> "Column":
    """Return the traceparent of a record as text; null where there is none, or no valid one."""
    found = F.filter(_column(headers), lambda each: each["key"] == TRACEPARENT)
    text = F.try_element_at(found, F.lit(-1))["value"].cast("string")
    return F.when(text.rlike(VALID), text)


def with_traceparent(value: "Column | str", headers: "Column | str" = "headers") -> "Column":
    """Return the headers with this traceparent instead of their own; unchanged where it is null."""
    given = _column(value).cast("binary")
    others = F.filter(_column(headers), lambda each: each["key"] != TRACEPARENT)
    kept = F.coalesce(others, F.expr("array()"))
    added = F.array(F.struct(F.lit(TRACEPARENT).alias("key"), given.alias("value")))
    return F.when(given.isNull(), _column(headers)).otherwise(F.concat(kept, added))


def _column(given: "Column | str") -> "Column":
    return F.col(given) if isinstance(given, str) else given
