"""Creates a database with a table for each topic: `SELECT * FROM barnabas.orders`, `SHOW TABLES`.

A catalog (`spark.sql.catalog.NAME`) must be a Java class; Spark has no Python interface for one. A
database of Spark's own catalog is the closest alternative. It does not follow the cluster by
itself: call `register_topics` again to create the tables of new topics and drop those of deleted
ones.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.spark.source.lookups import Cluster
from barnabas.spark.source.source_options import SubscribePattern, parse_batch
from barnabas.spark.sql.sql_tables import COLUMNS, create_table, kept_options, quoted_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE = "barnabas"
TEXT_COLUMNS = "key STRING, value STRING, topic, partition, offset, timestamp"
INTERNAL = "__"
"""The prefix of the names of internal topics."""


@dataclass(frozen=True)
class TopicTables:
    """The tables that `register_topics` created."""

    tables: Mapping[str, str]
    """The topic of each table."""
    without_table: tuple[str, ...] = ()
    """Topics without a table, because another topic's table has the name."""


def register_topics(
    spark: "SparkSession",
    options: Mapping[str, str],
    *,
    database: str = DATABASE,
    columns: str = TEXT_COLUMNS,
) -> TopicTables:
    """Create or update a database with a table for each topic.

    A table has the name of its topic in lower case, with _ for dots and hyphens, which Spark does
    not allow. `options` has the addresses of the brokers; `columns` is the option of that name.

        register_topics(spark, {"kafka.bootstrap.servers": "127.0.0.1:9092"})
        spark.sql("SELECT value FROM barnabas.orders").show()
    """
    found = named_tables(_topics(options))
    folder = quoted_name(database)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {folder}")
    known = _known(spark, database)
    for name, kept in known.items():
        if found.tables.get(name) != kept.get("topic"):
            spark.sql(f"DROP TABLE {folder}.{quoted_name(name)}")
    for name, topic in found.tables.items():
        wanted = {**options, "topic": topic}
        if known.get(name) != {key.lower(): value for key, value in wanted.items()}:
            spark.sql(f"DROP TABLE IF EXISTS {folder}.{quoted_name(name)}")
            create_table(spark, f"{folder}.{quoted_name(name)}", {**wanted, COLUMNS: columns})
    return found


def _known(spark: "SparkSession", database: str) -> dict[str, dict[str, str]]:
    """Return the options of each table on a topic; ignore other tables."""
    listed = [each for each in spark.catalog.listTables(database) if not each.isTemporary]
    schemas = {each.name: spark.table(f"{database}.{each.name}").schema for each in listed}
    return {name: kept for name, each in schemas.items() if (kept := kept_options(each))}


def named_tables(topics: Iterable[str]) -> TopicTables:
    """Return the table name of each topic; topics with valid table names come first."""
    tables: dict[str, str] = {}
    left_out = []
    for topic in sorted(topics, key=lambda each: (table_name(each) != each, each)):
        name = table_name(topic)
        if name in tables:
            left_out.append(topic)
        else:
            tables[name] = topic
    return TopicTables(dict(sorted(tables.items())), tuple(left_out))


def table_name(topic: str) -> str:
    """Return the name of a topic's table."""
    return re.sub(r"\W", "_", topic).lower()


def _topics(options: Mapping[str, str]) -> set[str]:
    settings = parse_batch({**options, "subscribePattern": ".*"})
    places = Cluster(settings).topics(SubscribePattern(".*")).partitions
    return {each.topic for each in places if not each.topic.startswith(INTERNAL)}
