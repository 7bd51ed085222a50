"""`barnabas sql status`: show the progress of the streams of a run, during the run and after it."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.connecting import pairs, require_listener
from barnabas.admin.wording import format_duration, plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.spark.sql.lag import LagReader
    from barnabas.spark.sql.run_status import Status, StreamStatus

HELP = """Show the streams of a run: state, batches, rows, lag, watermark and last error.

The numbers are the last ones that the run recorded; the lag is current, from the brokers.
"""
EPILOG = "Example: barnabas sql status --state shop.state --json"
TITLES = ("STREAM", "STATE", "BATCH", "ROWS", "LAG", "LAST", "WATERMARK", "INTO")
SUFFIX = ".state"

State = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="The directory of the run; default: the only *.state here."
    ),
]
BootstrapOrNoted = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="BARNABAS_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Address of a broker; default: that of the run.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("status", help=HELP, epilog=EPILOG)(status)


def status(
    *,
    state: State = None,
    as_json: Json = False,
    bootstrap: BootstrapOrNoted = None,
    properties: Properties = None,
) -> None:
    """Show the streams of a run."""
    from barnabas.spark.sql.lag import LagReader
    from barnabas.spark.sql.run_status import StatusError, read_status

    folder = state or only_state(Path.cwd())
    try:
        found = read_status(folder)
    except StatusError as error:
        raise CommandError(str(error)) from error
    if not is_held(folder):
        found = found.after_kill
    place = bootstrap or found.bootstrap
    client = {"bootstrap.servers": place, **pairs(properties, "property")}
    reader = LagReader({f"kafka.{key}": value for key, value in client.items()})
    lags = lags_of(found, reader, place)
    if as_json:
        print_json(document(found, lags))
        return
    print_table(TITLES, [row(each, lags[each.name]) for each in found.streams])
    for each in found.streams:
        if each.error:
            say(f"{each.name}: {each.error}")
        if each.offsets and lags[each.name] is None:
            warn(f"{client['bootstrap.servers']} did not return topic offsets; the lag is unknown")
            break


def lags_of(status: "Status", reader: "LagReader", bootstrap: str) -> Mapping[str, int | None]:
    """Return the lag of each stream; None if it is unknown. A dead address fails quickly."""
    try:
        require_listener(bootstrap)
    except AdminError:
        return {each.name: None for each in status.streams}
    return reader.lags(status.streams)


def only_state(folder: Path) -> Path:
    """Return the only directory of a run."""
    found = sorted(each for each in folder.glob(f"*{SUFFIX}") if each.is_dir())
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise CommandError(f"Pass --state with the folder of a run; here is {names}")
    return found[0]


def is_held(folder: Path) -> bool:
    """Return whether a run is using a directory."""
    from barnabas.telemetry.lake.lake_lock import LakeBusyError, held

    try:
        with held(str(folder)):
            return False
    except LakeBusyError:
        return True


def document(status: "Status", lags: Mapping[str, int | None]) -> dict[str, object]:
    """Return a status for scripts."""
    streams = [{**asdict(each), "lag": lags[each.name]} for each in status.streams]
    return {**asdict(status), "streams": streams}


def show_lines(status: "Status", lags: Mapping[str, int | None]) -> None:
    """Print a line for each stream."""
    for each in status.streams:
        say(f"{each.name}  {'  '.join(words(each, lags[each.name]))}")
    sys.stdout.flush()


def words(each: "StreamStatus", lag: int | None) -> list[str]:
    """Return the state of a stream as one line."""
    said = [each.state, f"{plural(each.rows, 'row')} ({each.rows_per_s:,.0f}/s)"]
    if each.batch is not None:
        said.insert(1, f"batch {each.batch:,}")
    if lag is not None:
        said.append(f"lag {lag:,}")
    if each.batch_ms is not None:
        said.append(f"last {format_duration(each.batch_ms)}")
    if each.error:
        said.append(f"({each.error})")
    return said


def row(each: "StreamStatus", lag: int | None) -> tuple[object, ...]:
    """Return a stream as a row of the table."""
    return (
        each.name,
        each.state if not each.restarts else f"{each.state} (restarts: {each.restarts})",
        each.batch,
        each.rows,
        lag,
        None if each.batch_ms is None else format_duration(each.batch_ms),
        each.watermark,
        each.into,
    )
