"""`barnabas group reset`: move a group's commits; a dry run unless told otherwise."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.cli.connection import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.durations import parse_duration_ms
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.output import plural, print_json, print_table
from barnabas.cli.positions import parse_time_ms
from barnabas.cli.scopes import expand, parse_scope

if TYPE_CHECKING:
    from barnabas.cli.groups import Group, Groups
    from barnabas.cli.scopes import Place
    from barnabas.cli.targets import Move, Target

HELP = """Move a group to other offsets; shows what would change unless --execute is given.

Say which partitions (--topic, --all-topics, or a file's) and where to (one of the --to options,
--shift-by, --by-duration, --from-file). The group must have no members while it is moved.
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
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group to move.")],
    *,
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:PARTITIONS]",
            help="Where, as orders or orders:0,2,5-7; may be repeated.",
            autocompletion=complete_topic,
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Wherever the group has committed.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the beginning.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To where it is: to export that, or to keep it.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option(min=0, help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option(help="So many records on, or back if negative.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(metavar="ISO", help="To the first record from then on; or milliseconds."),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="To what is that old: 90s, 1h30m, 7d.")
    ] = None,
    from_file: Annotated[
        Path | None, typer.Option(metavar="CSV", help="To what the lines of a file say.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Print topic,partition,offset, for --from-file.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Move a group to other offsets."""
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
    from barnabas.cli.groups import Groups

    groups = Groups(bootstrap, properties)
    (found,) = groups.describe([group])
    _check_members(found, execute=execute)
    moves = _moves(groups, found, _places(groups, found, target, scopes), target)
    if execute:
        groups.commit(group, {each.place: each.after for each in moves})
    _show(group, moves, execute=execute, export=export, as_json=as_json)


def _target(**options: object) -> "Target":
    """Return the one target among the options."""
    given = {
        name: value for name, value in options.items() if value is not None and value is not False
    }
    if len(given) != 1:
        raise CommandError(f"Say where to, once: {TARGETS}")
    ((name, value),) = given.items()
    from barnabas.cli import targets

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
        raise CommandError("The file says which partitions; leave out --topic and --all-topics")
    if not from_file and bool(scopes) == all_topics:
        raise CommandError(
            "Say which partitions: --topic orders, --topic orders:0,1 or --all-topics"
        )


def _check_members(group: "Group", *, execute: bool) -> None:
    if group.members:
        clients = ", ".join(sorted({f"{each.client_id} at {each.host}" for each in group.members}))
        sentence = (
            f"Group {group.name} has {plural(len(group.members), 'member')} ({clients}), and can "
            "only be moved without; stop them, wait for their session timeout, and try again"
        )
        if execute:
            raise CommandError(sentence)
        warn(sentence)
    elif not group.exists:
        warn(f"There is no group {group.name} yet; its first commits make one")


def _places(
    groups: "Groups", group: "Group", target: "Target", scopes: list[str] | None
) -> "list[Place]":
    from barnabas.cli.targets import ToGiven

    counts = groups.partition_counts()
    if isinstance(target, ToGiven):
        return expand([(topic, [number]) for topic, number in target.offsets], counts)
    if scopes:
        return expand([parse_scope(scope, "--topic") for scope in scopes], counts)
    if not group.committed:
        raise CommandError(f"Group {group.name} has committed nothing; name topics with --topic")
    gone = sorted(place for place in group.committed if place[1] >= counts.get(place[0], 0))
    for topic, number in gone:
        warn(f"{topic}:{number} is no more, and left out")
    return sorted(set(group.committed) - set(gone))


def _moves(
    groups: "Groups", group: "Group", places: "list[Place]", target: "Target"
) -> "list[Move]":
    from barnabas.cli.targets import ToTime, move

    ends = groups.ends(places)
    at_time = groups.offsets_at(places, target.timestamp_ms) if isinstance(target, ToTime) else {}
    for place in places:
        if place not in ends or (isinstance(target, ToTime) and place not in at_time):
            raise CommandError(f"{place[0]}:{place[1]} has no leader now; start its broker")
    return [
        move(target, place, group.committed.get(place), ends[place], at_time.get(place))
        for place in places
    ]


def _show(group: str, moves: "list[Move]", *, execute: bool, export: bool, as_json: bool) -> None:
    from barnabas.cli.targets import write_csv

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
    # On stderr: what --export prints goes into a file.
    count = plural(len(moves), "partition")
    if execute:
        warn(f"Moved group {group} in {count}")
    else:
        warn(f"A dry run: {count} of group {group} would move; add --execute to do it")


def _moment_ms(text: str) -> int:
    try:
        return parse_time_ms(text)
    except CommandError as error:
        raise CommandError(
            f"--to-datetime {text!r} is not a time; write 2026-03-01T12:00:00Z or milliseconds"
        ) from error


def _before_ms(text: str) -> int:
    return time.time_ns() // 1_000_000 - parse_duration_ms(text, "--by-duration")
