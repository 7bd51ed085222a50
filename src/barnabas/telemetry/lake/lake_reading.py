"""Reads a lake with DuckDB, directly from its files, without Spark and Java.

    lake = Lake(Path("lake"))
    with lake.open() as connection:
        connection.sql("SELECT finding, count(*) FROM findings GROUP BY 1")

Each table becomes a view of its own name. The files are listed once, when the lake is opened, so
that everything read through one connection is of one moment, even while the pipeline runs.
Names that begin with a dot or an underscore are files still being written, or Spark's own.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from barnabas.telemetry.lake.lake_tables import TABLES, Column
from barnabas.telemetry.retention.retention_plan import replaced

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DELTA_LOG = "_delta_log"
NOTES = "_batches"
LISTINGS = 5
"""How often a folder is listed again if its files change."""
RAW = "raw "
"""The prefix of tables that a complete view replaces."""
HOW_TO_FILL = "`barnabas telemetry run` fills a lake"

DUCKDB_TYPES = {
    "binary": "BLOB",
    "string": "VARCHAR",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "timestamp": "TIMESTAMP",
    "array<string>": "VARCHAR[]",
    "array<struct<key:string,value:binary>>": 'STRUCT("key" VARCHAR, "value" BLOB)[]',
    "array<struct<timestamp:timestamp,xid:int>>": 'STRUCT("timestamp" TIMESTAMP, xid INTEGER)[]',
    "map<string,double>": "MAP(VARCHAR, DOUBLE)",
}


class LakeError(Exception):
    """A lake cannot be read; the text says what to change."""


@dataclass(frozen=True)
class Table:
    """A table of the lake with rows."""

    name: str
    folder: Path
    files: tuple[Path, ...]
    """The files; empty for a Delta table, whose log lists its files."""

    @property
    def is_delta(self) -> bool:
        """Whether the table has a Delta log."""
        return (self.folder / DELTA_LOG).is_dir()


class Lake:
    """A folder of tables, at one moment."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise LakeError(f"There is no lake at {folder}; {HOW_TO_FILL}, --lake names another")
        self.folder = folder.resolve()
        self.tables = {table.name: table for table in _tables(self.folder)}

    @property
    def missing(self) -> list[str]:
        """The pipeline's tables that do not exist yet."""
        return [name for name in TABLES if name not in self.tables]

    @property
    def lost(self) -> list[str]:
        """The tables that the jobs have written and that no longer exist."""
        return [name for name in self.missing if _was_written(self.folder / NOTES / name)]

    def require(self) -> None:
        """Raise if there is nothing to read."""
        if not self.tables:
            wanted = ", ".join(TABLES)
            raise LakeError(
                f"{self.folder} holds no tables yet (looked for folders {wanted} with Parquet "
                f"files); {HOW_TO_FILL}, --lake names another"
            )

    @contextmanager
    def open(self, *, complete: bool = False) -> "Iterator[DuckDBPyConnection]":
        """Yield a DuckDB connection with a view of each table.

        With `complete` every table of the contract exists with all columns: missing tables are
        empty, missing columns are null, times are UTC.
        """
        duckdb = load_duckdb()
        # Temporary files of large sorts and joins go here, not into the user's folder.
        with tempfile.TemporaryDirectory(prefix="barnabas-duckdb-") as spill:
            connection = duckdb.connect(config={"temp_directory": spill})
            try:
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute("SET enable_progress_bar = false")
                for table in self.tables.values():
                    _view(connection, table, RAW + table.name if complete else table.name)
                if complete:
                    _complete(connection, set(self.tables))
                yield connection
            except (duckdb.IOException, duckdb.InvalidInputException, FileNotFoundError) as error:
                raise self._worded(error) from error
            finally:
                connection.close()

    def _worded(self, error: Exception) -> LakeError:
        first = str(error).splitlines()[0]
        return LakeError(
            f"{self.folder} could not be read: {first}; remove or repair the file that it names, "
            "or run the command again if the pipeline or retention was just replacing it"
        )


def load_duckdb() -> ModuleType:
    """Return the module; raise with the command to install it."""
    try:
        return import_module("duckdb")
    except ImportError as error:
        raise LakeError("DuckDB is not installed; pip install 'barnabas[telemetry]'") from error


def _was_written(notes: Path) -> bool:
    """Return whether a table ever had a file, by the notes of its batches."""
    found = sorted(notes.glob("batch-*.json"))
    is_always = notes.name in ("findings", "alerts")
    return any(is_always or json.loads(each.read_text(encoding="utf-8"))["rows"] for each in found)


def _tables(folder: Path) -> Iterator[Table]:
    for each in sorted(folder.iterdir()):
        if not each.is_dir() or _is_hidden(each.name):
            continue
        files = tuple(_settled(each))
        if (each / DELTA_LOG).is_dir():
            yield Table(each.name, each, ())
        elif files:
            yield Table(each.name, each, files)


def _settled(folder: Path) -> list[Path]:
    """List a table's files; list them again if retention replaced some meanwhile."""
    found = _visible(folder)
    for _ in range(LISTINGS):
        again = _visible(folder)
        if again == found:
            break
        found = again
    return found


def _visible(folder: Path) -> list[Path]:
    """Return the files of a table; a merged file replaces those of its batches."""
    found = sorted(_files(folder))
    gone = replaced(path.name for path in found)
    return [path for path in found if path.name not in gone]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.parquet"):
        if path.is_file() and not any(map(_is_hidden, path.relative_to(folder).parts)):
            yield path


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _view(connection: "DuckDBPyConnection", table: Table, name: str) -> None:
    if table.is_delta:
        connection.register(name, _delta(table.folder))
        return
    files = ", ".join(quoted(str(path), "'") for path in table.files)
    # By name: a column added by a later version is null in the files before it.
    connection.execute(
        f"CREATE VIEW {quoted(name)} AS "  # noqa: S608 - quoted
        f"SELECT * FROM read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
    )


def _delta(folder: Path) -> object:
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise LakeError(
            f"{folder} is a Delta table; pip install 'barnabas[telemetry]' to read it"
        ) from error
    return DeltaTable(str(folder)).to_pyarrow_dataset()


def _complete(connection: "DuckDBPyConnection", present: set[str]) -> None:
    for name, columns in TABLES.items():
        there = set()
        if name in present:
            rows = connection.execute(f"DESCRIBE {quoted(RAW + name)}").fetchall()
            there = {row[0] for row in rows}
        picked = ", ".join(_picked(column, there) for column in columns)
        source = f" FROM {quoted(RAW + name)}" if name in present else " WHERE false"
        connection.execute(f"CREATE TEMP VIEW {quoted(name)} AS SELECT {picked}{source}")


def _picked(column: Column, there: set[str]) -> str:
    source = quoted(column.name) if column.name in there else "NULL"
    return f"CAST({source} AS {DUCKDB_TYPES[column.type]}) AS {quoted(column.name)}"


def quoted(text: str, mark: str = '"') -> str:
    """Return a name or a text as an SQL literal."""
    return mark + text.replace(mark, mark * 2) + mark
