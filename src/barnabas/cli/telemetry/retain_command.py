"""`barnabas telemetry retain`: remove old rows of a lake and merge small files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, print_table, say
from barnabas.cli.telemetry.query_command import DEFAULT_LAKE, LakeFolder

if TYPE_CHECKING:
    from barnabas.telemetry.retention.retention_run import TableResult

HELP = """Remove rows that are too old from the tables of a lake, and merge small files.

A table without a duration keeps everything. Age counts back from the newest row of the table, so a
lake without new data loses nothing. A file is removed when all of its rows are too old. Jobs and
readers may run meanwhile: files that a job has not read yet are kept.
"""
EPILOG = (
    "Example: barnabas telemetry retain --lake lake --bronze 7d --silver 30d --gold-10s 90d "
    "--dry-run"
)
Keep = Annotated[str | None, typer.Option(metavar="DURATION", help="How long to keep rows, as 7d.")]


def retain(  # noqa: PLR0913 - one parameter an option
    *,
    lake: LakeFolder = DEFAULT_LAKE,
    bronze: Keep = None,
    silver: Keep = None,
    gold_10s: Annotated[str | None, typer.Option("--gold-10s", metavar="DURATION")] = None,
    gold_1m: Annotated[str | None, typer.Option("--gold-1m", metavar="DURATION")] = None,
    findings: Keep = None,
    alerts: Keep = None,
    merge: Annotated[
        bool, typer.Option("--merge/--no-merge", help="Merge the small files of each day.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove rows that are too old, and merge small files."""
    given = {
        "bronze": bronze,
        "silver": silver,
        "gold_10s": gold_10s,
        "gold_1m": gold_1m,
        "findings": findings,
        "alerts": alerts,
    }
    keep_us = {
        table: 1000 * parse_duration_ms(text, f"--{table.replace('_', '-')}")
        for table, text in given.items()
        if text is not None
    }
    if not Path(lake).is_dir():
        raise CommandError(
            f"There is no lake at {lake}; pass another --lake, a directory and not a URI"
        )
    with needs_extra("telemetry"):
        from barnabas.telemetry.lake.lake_lock import LakeBusyError
        from barnabas.telemetry.retention import retention_run
        from barnabas.telemetry.retention.delta_log import DeltaBusyError

        try:
            results = retention_run.retain(Path(lake), keep_us, merge=merge, dry_run=dry_run)
        except (LakeBusyError, DeltaBusyError) as error:
            raise CommandError(str(error)) from error
    if as_json:
        print_json({"dry_run": dry_run, "tables": [_document(each) for each in results]})
        return
    _show(results, dry_run=dry_run)


def _show(results: "list[TableResult]", *, dry_run: bool) -> None:
    titles = ("TABLE", "FILES", "REMOVED", "ROWS", "MERGED", "INTO", "LEFT")
    print_table(titles, [tuple(_document(each)[name] for name in COLUMNS) for each in results])
    for each in results:
        if each.plan.waiting:
            warn(
                f"{plural(each.plan.waiting, 'file')} of {each.table} are old but kept: a job that "
                "reads the table has not committed them"
            )
    if dry_run:
        say("Nothing was changed; omit --dry-run to apply it")


COLUMNS = (
    "table",
    "files",
    "removed_files",
    "removed_rows",
    "merged_files",
    "merged_into",
    "files_after",
)


def _document(each: "TableResult") -> dict[str, object]:
    plan = each.plan
    merged = sum(len(group) for group in plan.merges)
    return {
        "table": each.table,
        "files": each.files,
        "bytes": each.size,
        "removed_files": len(plan.expired),
        "removed_rows": sum(file.rows for file in plan.expired),
        "removed_bytes": sum(file.size for file in plan.expired),
        "merged_files": merged,
        "merged_into": len(plan.merges),
        "files_after": each.files - len(plan.expired) - merged + len(plan.merges),
        "waiting_files": plan.waiting,
        "removed_notes": each.notes,
    }


def register(app: typer.Typer) -> None:
    """Add the command to `barnabas telemetry`."""
    app.command("retain", help=HELP, epilog=EPILOG)(retain)
