"""Runs users' SQL over the tables of a lake: read-only, and confined to the lake.

Three restrictions: only statements that read are accepted, DuckDB may open only files of the lake,
and its settings cannot be changed back.
"""

import difflib
import re
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from barnabas.telemetry.lake.lake_reading import Lake, LakeError, load_duckdb, quoted
from barnabas.telemetry.lake.lake_tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

READING = {"SELECT", "EXPLAIN", "RELATION"}
"""DuckDB's kinds of statement that change nothing; DESCRIBE, SHOW and SUMMARIZE are SELECTs."""

MISSING_TABLE = re.compile(r"Table with name (\S+?)!? does not exist")


@dataclass(frozen=True)
class Answer:
    """The rows of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_cut: bool
    """Whether there were more rows than asked for."""


@dataclass(frozen=True)
class TableListing:
    """A table, its size and its columns."""

    name: str
    rows: int
    files: int
    columns: tuple[tuple[str, str], ...]


def ask(lake: Lake, sql: str, limit: int | None = None) -> Answer:
    """Run one statement and return at most `limit` of its rows."""
    lake.require()
    duckdb = load_duckdb()
    with lake.open() as connection:
        statement = _only_statement(duckdb, connection, sql)
        _lock(connection, lake)
        try:
            result = connection.execute(statement)
            columns = _distinct([each[0] for each in result.description])
            rows = result.fetchall() if limit is None else result.fetchmany(limit + 1)
        except duckdb.Error as error:
            raise _worded(error, lake) from error
    cut = limit is not None and len(rows) > limit
    return Answer(columns, rows[:limit], cut)


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Number repeated names: JSON would keep only the last of them."""
    return tuple(
        name if names.index(name) == place else f"{name}_{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    )


def listings(lake: Lake) -> list[TableListing]:
    """Return the existing tables."""
    lake.require()
    with lake.open() as connection:
        return [_listing(connection, lake, name) for name in lake.tables]


def _listing(connection: "DuckDBPyConnection", lake: Lake, name: str) -> TableListing:
    described = connection.execute(f"DESCRIBE {quoted(name)}").fetchall()
    (count,) = connection.execute(
        f"SELECT count(*) FROM {quoted(name)}"  # noqa: S608 - quoted
    ).fetchone()
    columns = tuple((row[0], row[1].lower()) for row in described)
    return TableListing(name, count, len(lake.tables[name].files), columns)


def _only_statement(duckdb: ModuleType, connection: "DuckDBPyConnection", sql: str) -> "Statement":
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise LakeError(f"SQL: {_first_line(error)}") from error
    if len(statements) != 1:
        raise LakeError(f"Pass one SQL statement, not {len(statements)}")
    if statements[0].type.name not in READING:
        raise LakeError(
            f"{statements[0].type.name} is not allowed: the lake is read-only; pass a SELECT, "
            "and --csv or --json to keep its rows"
        )
    return statements[0]


def _lock(connection: "DuckDBPyConnection", lake: Lake) -> None:
    files = [str(path) for table in lake.tables.values() for path in table.files]
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    names = ", ".join(quoted(name, "'") for name in files)
    connection.execute(f"SET allowed_paths = [{names}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _worded(error: Exception, lake: Lake) -> LakeError:
    text = _first_line(error)
    found = MISSING_TABLE.search(text)
    if found is not None:
        return LakeError(_no_table(found[1].strip('"'), lake))
    if type(error).__name__ == "BinderException":
        return LakeError(f"SQL: {text.rstrip('!.')}; {_columns_advice(str(error), lake)}")
    if type(error).__name__ == "PermissionException":
        return LakeError("A query reads the tables of the lake and no other file; use their names")
    return LakeError(f"SQL: {text}")


def _no_table(name: str, lake: Lake) -> str:
    there = ", ".join(lake.tables)
    if name in TABLES:
        return f"Table {name} is not in {lake.folder} yet; there are {there}"
    near = difflib.get_close_matches(name, lake.tables, 1)
    hint = f"; did you mean {near[0]}?" if near else "; --tables shows their columns"
    return f"There is no table {name}; there are {there}{hint}"


def _columns_advice(message: str, lake: Lake) -> str:
    named = [name for name in lake.tables if re.search(rf"\b{re.escape(name)}\b", message)]
    known = [
        f"{name} has {', '.join(column.name for column in TABLES[name])}"
        for name in named
        if name in TABLES
    ]
    return "; ".join(known) or "--tables shows the tables and their columns"


def _first_line(error: Exception) -> str:
    """Return the sentence, without DuckDB's class name in front of it."""
    first = str(error).strip().splitlines()[0]
    return first.partition(" Error: ")[2] or first
