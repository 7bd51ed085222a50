"""Read and write topics with Spark: a PySpark data source, a sink, and helpers for Structured
Streaming.

    from barnabas.spark import register

    register(spark)
    spark.readStream.format("barnabas").option("kafka.bootstrap.servers", "127.0.0.1:9092") ...

If the package is installed beside PySpark, `format("barnabas")` also works without the call.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.helpers.changelog import ChangelogTable, latest, read_changelog
    from barnabas.spark.helpers.joins import Timed, enrich, enrich_each_batch, interval_join
    from barnabas.spark.helpers.progress_reporting import ProgressReporter, report_progress
    from barnabas.spark.helpers.schema_registry import SchemaRegistry
    from barnabas.spark.helpers.trace_headers import (
        trace_headers,
        traceparent,
        with_traceparent,
    )
    from barnabas.spark.helpers.values import Decoded, avro_values, json_values, to_dlq
    from barnabas.spark.helpers.windows import hopping, session, tumbling, window_bounds
    from barnabas.spark.source.source_progress import SourceMetrics, observed, source_metrics
    from barnabas.spark.sql.sql_tables import save_as_table
    from barnabas.spark.sql.topic_tables import register_topics

_PLACES = {
    "BarnabasDataSource": "barnabas.spark.data_source",
    "ChangelogTable": "barnabas.spark.helpers.changelog",
    "DataLossError": "barnabas.spark.query_errors",
    "Decoded": "barnabas.spark.helpers.values",
    "FetchError": "barnabas.spark.query_errors",
    "OptionError": "barnabas.spark.query_errors",
    "ProgressReporter": "barnabas.spark.helpers.progress_reporting",
    "SchemaRegistry": "barnabas.spark.helpers.schema_registry",
    "SourceMetrics": "barnabas.spark.source.source_progress",
    "Timed": "barnabas.spark.helpers.joins",
    "avro_values": "barnabas.spark.helpers.values",
    "enrich": "barnabas.spark.helpers.joins",
    "enrich_each_batch": "barnabas.spark.helpers.joins",
    "hopping": "barnabas.spark.helpers.windows",
    "interval_join": "barnabas.spark.helpers.joins",
    "json_values": "barnabas.spark.helpers.values",
    "latest": "barnabas.spark.helpers.changelog",
    "observed": "barnabas.spark.source.source_progress",
    "read_changelog": "barnabas.spark.helpers.changelog",
    "register_topics": "barnabas.spark.sql.topic_tables",
    "report_progress": "barnabas.spark.helpers.progress_reporting",
    "save_as_table": "barnabas.spark.sql.sql_tables",
    "session": "barnabas.spark.helpers.windows",
    "source_metrics": "barnabas.spark.source.source_progress",
    "to_dlq": "barnabas.spark.helpers.values",
    "trace_headers": "barnabas.spark.helpers.trace_headers",
    "traceparent": "barnabas.spark.helpers.trace_headers",
    "tumbling": "barnabas.spark.helpers.windows",
    "window_bounds": "barnabas.spark.helpers.windows",
    "with_traceparent": "barnabas.spark.helpers.trace_headers",
}
MISSING = "barnabas.spark needs PySpark and Arrow: pip install 'barnabas[spark]'"

__all__ = [
    "ChangelogTable",
    "Decoded",
    "ProgressReporter",
    "SchemaRegistry",
    "SourceMetrics",
    "Timed",
    "avro_values",
    "enrich",
    "enrich_each_batch",
    "hopping",
    "interval_join",
    "json_values",
    "latest",
    "observed",
    "read_changelog",
    "register",
    "register_topics",
    "report_progress",
    "save_as_table",
    "session",
    "source_metrics",
    "to_dlq",
    "trace_headers",
    "traceparent",
    "tumbling",
    "window_bounds",
    "with_traceparent",
]


def register(spark: "SparkSession") -> None:
    """Register `format("barnabas")` with a session."""
    try:
        from barnabas.spark.data_source import BarnabasDataSource
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING) from error
    spark.dataSource.register(BarnabasDataSource)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes are of any type
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING) from error
