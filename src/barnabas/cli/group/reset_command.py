"""`barnabas group reset`: change a group's committed offsets; a dry run without --execute."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_positions import parse_time_ms
from barnabas.admin.wording import plural
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.common.output import print_json, print_table

if TYPE_CHECKING:
    from barnabas.admin.groups.group_admin import Group
    from barnabas.admin.groups.reset_targets import Move, Target

HELP = """Reset the committed offsets of a group; without --execute it only shows the changes.

For a share group it is the start offsets: records before them count as done.

Select partitions (--topic, --all-topics, or a file) and a target (one of the --to options,
--shift-by, --by-duration, --from-file). The group must have no members.
"""
EPILOG = (
    "Example: barnabas group reset billing --topic orders:0,1 --to-datetime 2026-03-01T12:00:00Z "
    "--execute ; barnabas group reset billing --all-topics --to-current --export > billing.csv"
)
TARGETS = (
    "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, "
    "--by-duration or --from-file"
)


def reset(  # noqa: PLR0913 - one parameter an option
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group to reset.")],
    *,
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:PARTITIONS]",
            help="A topic or partitions, as orders or orders:0,2,5-7; may be repeated.",
            autocompletion=complete_topic,
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All partitions with committed offsets.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the beginning.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To the current offset, for example with --export.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option(min=0, help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option(help="By this many records forward, or back if negative.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="ISO", help="To the first record at or after this time; or milliseconds."
        ),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="To records of this age: 90s, 1h30m, 7d.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option(metavar="CSV", help="To the offsets in a file.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print topic,partition,offset, for --from-file.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Reset the committed offsets of a group."""
    target = _target(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_offset=to_offset,
        shift_by=shift_by,
        to_datetime=to_datetime,
        by_duration=by_duration,
        from_file=from_file,
    )
    _check_scope(scopes, all_topics=all_topics, from_file=from_file is not None)
    moves = _moves(group, target, scopes or (), bootstrap, properties, execute=execute)
    _show(group, moves, execute=execute, export=export, as_json=as_json)


def _moves(
    name: str,
    target: "Target",
    scopes: Sequence[str],
    bootstrap: str,
    properties: list[str] | None,
    *,
    execute: bool,
) -> "list[Move]":
    """Return what changes, and change it if that is wanted."""
    from barnabas.admin.groups.group_admin import Groups
    from barnabas.admin.groups.group_resets import reset_moves, reset_places
    from barnabas.admin.groups.share_group_admin import ShareGroupAdmin

    groups, shares = Groups(bootstrap, properties), ShareGroupAdmin(bootstrap, properties)
    (found,) = groups.describe([name])
    share = None if found.exists else shares.find(name)
    if share is not None:
        found = share.as_group()
    _check_members(found, execute=execute)
    places = reset_places(groups, found, target, scopes, warn)
    moves = reset_moves(groups, found, places, target)
    if execute:
        offsets = {each.place: each.after for each in moves}
        if share is None:
            groups.commit(name, offsets)
        else:
            shares.move(name, offsets)
    return moves


def _target(**options: object) -> "Target":
    """Return the target that the options select."""
    given = {
        name: value for name, value in options.items() if value is not None and value is not False
    }
    if len(given) != 1:
        raise CommandError(f"Pass exactly one target: {TARGETS}")
    ((name, value),) = given.items()
    from barnabas.admin.groups import reset_targets as targets

    makers: dict[str, Callable[[Any], Target]] = {
        "to_earliest": lambda _: targets.ToEarliest(),
        "to_latest": lambda _: targets.ToLatest(),
        "to_current": lambda _: targets.ToCurrent(),
        "to_offset": targets.ToOffset,
        "shift_by": targets.ShiftBy,
        "to_datetime": lambda text: targets.ToTime(_moment_ms(text)),
        "by_duration": lambda text: targets.ToTime(_before_ms(text)),
        "from_file": lambda path: targets.ToGiven(targets.read_csv(path.read_text(), path)),
    }
    return makers[name](value)


def _check_scope(scopes: list[str] | None, *, all_topics: bool, from_file: bool) -> None:
    if from_file and (scopes or all_topics):
        raise CommandError("The file names the partitions; omit --topic and --all-topics")
    if not from_file and bool(scopes) == all_topics:
        raise CommandError("Select partitions: --topic orders, --topic orders:0,1 or --all-topics")


def _check_members(group: "Group", *, execute: bool) -> None:
    from barnabas.admin.groups.group_resets import busy_sentence

    sentence = busy_sentence(group)
    if sentence is not None:
        if execute:
            raise CommandError(sentence)
        warn(sentence)
    elif not group.exists:
        warn(f"There is no group {group.name} yet; the reset creates it")


def _show(group: str, moves: "list[Move]", *, execute: bool, export: bool, as_json: bool) -> None:
    from barnabas.admin.groups.reset_targets import write_csv

    if as_json:
        partitions = [each.as_json() for each in moves]
        print_json({"group": group, "executed": execute, "partitions": partitions})
        return
    if export:
        sys.stdout.write(write_csv(moves))
    else:
        rows = [
            (each.topic, each.partition, each.before, each.after, each.change, each.note or "")
            for each in moves
        ]
        print_table(("TOPIC", "PARTITION", "BEFORE", "AFTER", "CHANGE", "NOTE"), rows)
    # On stderr, because the output of --export goes to a file.
    count = plural(len(moves), "partition")
    if execute:
        warn(f"Reset group {group} in {count}")
    else:
        warn(f"A dry run: {count} of group {group} would change; add --execute to apply it")


def _moment_ms(text: str) -> int:
    try:
        return parse_time_ms(text)
    except AdminError as error:
        raise CommandError(
            f"--to-datetime {text!r} is not a time; write 2026-03-01T12:00:00Z or milliseconds"
        ) from error


def _before_ms(text: str) -> int:
    return time.time_ns() // 1_000_000 - parse_duration_ms(text, "--by-duration")
