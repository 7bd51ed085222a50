"""`barnabas telemetry query`: run SQL on the tables of a lake."""

import csv
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.telemetry.lake.lake_reading import Lake
    from barnabas.telemetry.lake.querying import Answer

HELP = """Query the tables of a lake with SQL (DuckDB); writes nothing, and reads no other file.

The tables are bronze, silver, gold_10s, gold_1m, findings and alerts, if they exist.
"""
EPILOG = (
    'Example: barnabas telemetry query "SELECT hostname, sum(joules) / 3.6e6 AS kwh FROM findings '
    "WHERE finding = 'idle' GROUP BY hostname ORDER BY kwh DESC\" --lake lake --csv > idle.csv"
)

LakeFolder = Annotated[
    Path,
    typer.Option(
        "--lake",
        envvar="BARNABAS_LAKE",
        metavar="DIR",
        help="The directory of the pipeline's tables.",
    ),
]
DEFAULT_LAKE = Path("lake")


def query(
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT.")] = None,
    lake: LakeFolder = DEFAULT_LAKE,
    tables: Annotated[
        bool, typer.Option("--tables", help="List the tables and their columns instead.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, with a header.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0, help="Maximum number of rows; default: 1,000 on a terminal, else no limit."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Query the tables of a lake with SQL."""
    from barnabas.telemetry.lake.querying import ask

    found = open_lake(lake)
    if tables or sql is None:
        _list_tables(found, as_json=as_json)
        if not tables:
            raise CommandError('Pass the SQL to run, such as "SELECT * FROM findings LIMIT 5"')
        return
    if as_csv and as_json:
        raise CommandError("Pass --csv or --json, not both")
    is_table = not (as_csv or as_json)
    cap = 1_000 if limit is None and is_table else limit
    with worded():
        answer = ask(found, sql, cap)
    if as_csv:
        _print_csv(answer)
    elif as_json:
        print_json([_record(answer, row) for row in answer.rows])
    else:
        print_table(answer.columns, [tuple(map(cell, row)) for row in answer.rows])
    if answer.is_cut:
        warn(f"Only the first {plural(len(answer.rows), 'row')}; --limit shows more")


def open_lake(folder: Path) -> "Lake":
    """Return a lake, or raise an error that says what to change."""
    from barnabas.telemetry.lake.lake_reading import Lake

    with worded():
        return Lake(folder)


class worded:  # noqa: N801 - reads as a phrase: with worded()
    """Converts errors of lake readers to errors of commands."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from barnabas.telemetry.lake.lake_reading import LakeError

        if isinstance(error, LakeError):
            raise CommandError(str(error)) from error


def _list_tables(lake: "Lake", *, as_json: bool) -> None:
    from barnabas.telemetry.lake.querying import listings

    with worded():
        found = listings(lake)
    if as_json:
        print_json(
            [
                {"table": each.name, "rows": each.rows, "columns": dict(each.columns)}
                for each in found
            ]
        )
        return
    for each in found:
        say(f"{each.name}  ({plural(each.rows, 'row')})")
        say("  " + ", ".join(f"{name} {kind}" for name, kind in each.columns))


def _print_csv(answer: "Answer") -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([plain(value) for value in row] for row in answer.rows)


def _record(answer: "Answer", row: tuple[Any, ...]) -> dict[str, Any]:
    return {name: plain(value) for name, value in zip(answer.columns, row, strict=True)}


def cell(value: object) -> object:
    """Return a value as text for a table."""
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    shown = plain(value)
    return shown if shown is None or isinstance(shown, int) else str(shown)


def plain(value: object) -> object:
    """Return a value for JSON and CSV."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def register(app: typer.Typer) -> None:
    """Add the command to `barnabas telemetry`."""
    app.command("query", help=HELP, epilog=EPILOG)(query)
