"""Topics in Spark: a PySpark data source and sink, and helpers over Structured Streaming.

    from barnabas.spark import register

    register(spark)
    spark.readStream.format("barnabas").option("kafka.bootstrap.servers", "127.0.0.1:9092") ...

Where the package is installed beside PySpark, `format("barnabas")` is found without the call too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.changelog import ChangelogTable, latest, read_changelog
    from barnabas.spark.joins import Timed, enrich, enrich_each_batch, interval_join
    from barnabas.spark.progress import SourceMetrics, observed, source_metrics
    from barnabas.spark.schema_registry import SchemaRegistry
    from barnabas.spark.sql.tables import save_as_table
    from barnabas.spark.sql.topic_tables import register_topics
    from barnabas.spark.values import Decoded, avro_values, json_values, to_dlq
    from barnabas.spark.windows import hopping, session, tumbling, window_bounds

_PLACES = {
    "BarnabasDataSource": "barnabas.spark.source",
    "ChangelogTable": "barnabas.spark.changelog",
    "DataLossError": "barnabas.spark.failures",
    "Decoded": "barnabas.spark.values",
    "FetchError": "barnabas.spark.failures",
    "OptionError": "barnabas.spark.failures",
    "SchemaRegistry": "barnabas.spark.schema_registry",
    "SourceMetrics": "barnabas.spark.progress",
    "Timed": "barnabas.spark.joins",
    "avro_values": "barnabas.spark.values",
    "enrich": "barnabas.spark.joins",
    "enrich_each_batch": "barnabas.spark.joins",
    "hopping": "barnabas.spark.windows",
    "interval_join": "barnabas.spark.joins",
    "json_values": "barnabas.spark.values",
    "latest": "barnabas.spark.changelog",
    "observed": "barnabas.spark.progress",
    "read_changelog": "barnabas.spark.changelog",
    "register_topics": "barnabas.spark.sql.topic_tables",
    "save_as_table": "barnabas.spark.sql.tables",
    "session": "barnabas.spark.windows",
    "source_metrics": "barnabas.spark.progress",
    "to_dlq": "barnabas.spark.values",
    "tumbling": "barnabas.spark.windows",
    "window_bounds": "barnabas.spark.windows",
}
MISSING = "barnabas.spark needs PySpark and Arrow: pip install 'barnabas[spark]'"

__all__ = [
    "ChangelogTable",
    "Decoded",
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
    "save_as_table",
    "session",
    "source_metrics",
    "to_dlq",
    "tumbling",
    "window_bounds",
]


def register(spark: "SparkSession") -> None:
    """Make `format("barnabas")` known to a session."""
    try:
        from barnabas.spark.source import BarnabasDataSource
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
