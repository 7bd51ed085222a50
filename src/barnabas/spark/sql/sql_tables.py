"""Implements tables over topics: `CREATE TABLE t USING barnabas OPTIONS (...)`.

Spark passes the OPTIONS of a table to a Python data source once, when the table is created without
a list of columns: it asks for the schema. A later SELECT or INSERT gets no options, but it gets the
schema that the catalog has stored. So the options are stored in the metadata of column topic.

Before an INSERT, Spark gives the columns of the query the metadata of the table's columns, but only
if names or types differ. Therefore topic is a VARCHAR whose length is derived from the options: no
column of another table has the same type. Spark adds the length to the metadata of a column that it
reads from a table, and removes it when it writes into one. So a writer can distinguish the metadata
of its own table from that of a table that the rows were read from.

If the catalog has stored no options (a table with a list of columns, a table that `saveAsTable` or
CREATE TABLE AS SELECT created), the error says what to type instead.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType, VarcharType

from barnabas.spark.query_errors import OptionError
from barnabas.spark.schema import FETCH_TIME, spark_schema
from barnabas.spark.settings.option_names import READ_NAMES, WRITE_NAMES
from barnabas.spark.source.source_options import includes_fetch_time, includes_headers
from barnabas.spark.sql.declared_columns import BYTES, KNOWN, parse_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CARRIER = "topic"
METADATA = "barnabas.options"
READ_FROM_A_TABLE = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key in which Spark stores the declared length."""
LENGTH_MIN, LENGTHS = 2_000_000_000, 100_000_000
"""Longer than any topic name; the lengths distinguish tables."""

CREATED = "option."
"""The prefix of option names while Spark creates a table."""
PROVIDER = "provider"
"""A property that Spark adds while it creates a table."""
BROKERS = ("kafka.bootstrap.servers", "bootstrap.servers")
SUBSCRIPTIONS = ("assign", "subscribe", "subscribepattern")
COLUMNS = "columns"
_READ = {name.lower() for name in READ_NAMES} - set(BROKERS)
_WRITE = {name.lower() for name in WRITE_NAMES} - set(BROKERS)
READ_ONLY, WRITE_ONLY = _READ - _WRITE, _WRITE - _READ

EXAMPLE = "(`kafka.bootstrap.servers` 'HOST:PORT', topic 'TOPIC')"
NO_OPTIONS = (
    "Option kafka.bootstrap.servers is missing: Spark passed no options. In Python, add "
    ".option('kafka.bootstrap.servers', 'HOST:PORT'). For a table, Spark keeps options only with "
    "CREATE TABLE without a list of columns and without AS SELECT; type: DROP TABLE t; "
    f"CREATE TABLE t USING barnabas OPTIONS {EXAMPLE}; then INSERT INTO t (key, value) SELECT ... "
    "or SELECT ... FROM t. In place of saveAsTable, call barnabas.spark.save_as_table. For one "
    f"query, write WITH {EXAMPLE} after the name of the table"
)
OF_ANOTHER = (
    f"Column {CARRIER} comes from a table on a topic and carries that table's options, so that it "
    f"cannot be written here; leave it out with .drop('{CARRIER}') and set the option topic, or "
    "write with INSERT INTO"
)


def source_schema(options: Mapping[str, str]) -> StructType:
    """Return the columns of a read; for a table that is being created, with its options."""
    given = _lower(options)
    created = {
        name.removeprefix(CREATED): value
        for name, value in given.items()
        if name.startswith(CREATED)
    }
    is_created = PROVIDER in given
    if is_created and not created:
        raise OptionError(NO_OPTIONS)
    declared = dict(created if is_created else given)
    columns = declared.pop(COLUMNS, None)
    known = _without(declared, WRITE_ONLY)
    headers, fetch_time = includes_headers(known), includes_fetch_time(known)
    usual = spark_schema(include_headers=headers, include_fetch_time=fetch_time)
    schema = usual if columns is None else parse_columns(columns)
    return _carrying(schema, declared) if is_created else schema


def for_reading(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a read, including those of the table."""
    given = _lower(options)
    given.pop(COLUMNS, None)
    found = {**kept_options(schema), **given} if _lacks_brokers(given) else given
    if not found.keys() - {"path"}:
        raise OptionError(NO_OPTIONS)
    topic = found.get("topic")
    if topic is not None and not any(name in found for name in SUBSCRIPTIONS):
        found["subscribe"] = topic
    for option, column in (("includeheaders", "headers"), ("includefetchtime", FETCH_TIME)):
        found[option] = "true" if column in schema.fieldNames() else "false"
    return _without(found, WRITE_ONLY)


def for_writing(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a write, including those of the table."""
    found = _lower(options)
    found.pop(COLUMNS, None)
    if _comes_from_a_table(schema):
        raise OptionError(OF_ANOTHER)
    if _lacks_brokers(found):
        found = {**kept_options(schema), **found}
    if not found.keys() - {"path", "checkpointlocation"}:
        raise OptionError(NO_OPTIONS)
    subscribed = found.get("subscribe", "")
    if "topic" not in found and subscribed and "," not in subscribed:
        found["topic"] = subscribed
    return _without(found, READ_ONLY)


def save_as_table(frame: "DataFrame", name: str, options: Mapping[str, str]) -> None:
    """Append rows to a topic, and create a table of it for SELECT and INSERT.

    Use it instead of `saveAsTable`, with which Spark does not store the options.

        save_as_table(rows, "orders", {"kafka.bootstrap.servers": "b:9092", "topic": "orders"})
    """
    with_columns = {COLUMNS: _declaration(frame.schema), **options}
    create_table(frame.sparkSession, name, with_columns, if_not_exists=True)
    frame.writeTo(name).append()


def create_table(
    spark: "SparkSession", name: str, options: Mapping[str, str], *, if_not_exists: bool = False
) -> None:
    """Create a table on a topic."""
    clause = ", ".join(f"{quoted_name(key)} {quoted(value)}" for key, value in options.items())
    guard = "IF NOT EXISTS " if if_not_exists else ""
    spark.sql(f"CREATE TABLE {guard}{name} USING barnabas OPTIONS ({clause})")


def quoted(text: str) -> str:
    """Return a string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted_name(name: str) -> str:
    """Return an identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _declaration(schema: StructType) -> str:
    """Return the option `columns` for rows to write."""
    strange = [name for name in schema.fieldNames() if name not in KNOWN]
    if strange:
        raise OptionError(
            f"A topic has no column {strange[0]}; select key and value, such as "
            "to_json(struct(*)) AS value"
        )
    return ", ".join(
        f"{each.name} STRING"
        if each.name in BYTES and isinstance(each.dataType, StringType)
        else each.name
        for each in schema
    )


def _carrying(schema: StructType, options: Mapping[str, str]) -> StructType:
    kept = {METADATA: dict(options)}
    length = LENGTH_MIN + zlib.crc32(json.dumps(kept, sort_keys=True).encode()) % LENGTHS
    carrier = StructField(CARRIER, VarcharType(length), metadata=kept)
    others = [each for each in schema if each.name != CARRIER]
    place = schema.fieldNames().index(CARRIER) if len(others) < len(schema) else len(others)
    return StructType([*others[:place], carrier, *others[place:]])


def kept_options(schema: StructType) -> dict[str, str]:
    """Return the options in a table's schema; none if it is not a table on a topic."""
    found = (each.metadata[METADATA] for each in schema if METADATA in each.metadata)
    return dict(next(found, {}))


def _comes_from_a_table(schema: StructType) -> bool:
    marks = {METADATA, READ_FROM_A_TABLE}
    return any(marks <= each.metadata.keys() for each in schema)


def _lacks_brokers(options: Iterable[str]) -> bool:
    return not any(name in options for name in BROKERS)


def _without(options: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in names}


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in options.items()}
