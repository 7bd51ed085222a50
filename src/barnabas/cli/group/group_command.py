"""`barnabas group`: list, describe, reset and delete consumer groups and share groups."""

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import require_listener, settings
from barnabas.admin.scopes import expand, parse_scope
from barnabas.admin.wording import format_duration, plural
from barnabas.cli.common.failure import warn
from barnabas.cli.common.options import (
    COMPLETION_TIMEOUT_S,
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.common.output import console, print_json, print_table, say, table
from barnabas.cli.group import reset_command as resetting

if TYPE_CHECKING:
    from rich.console import Group as Stack
    from rich.console import RenderableType

    from barnabas.admin.groups.group_admin import Groups, Listing
    from barnabas.admin.groups.group_lag import Report
    from barnabas.admin.groups.share_group_admin import ShareGroup, ShareGroupAdmin
    from barnabas.admin.scopes import Place

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


class State(StrEnum):
    """The states of a group, with Kafka's names."""

    STABLE = "Stable"
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    DEAD = "Dead"


class Type(StrEnum):
    """The protocols of a group, with Kafka's names."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"


def complete_group(context: typer.Context, incomplete: str) -> list[str]:
    """Complete group names in the shell, if a broker answers quickly."""
    bootstrap = context.params.get("bootstrap") or DEFAULT_BOOTSTRAP
    try:
        require_listener(bootstrap, COMPLETION_TIMEOUT_S)
        from confluent_kafka.admin import AdminClient

        client = AdminClient(settings(bootstrap, context.params.get("properties")))
        found = client.list_consumer_groups(request_timeout=COMPLETION_TIMEOUT_S).result()
    except Exception:  # noqa: BLE001 - completion must not print errors
        return []
    names = [each.group_id for each in found.valid]
    return sorted(name for name in names if name.startswith(incomplete))


Names = Annotated[
    list[str],
    typer.Argument(metavar="GROUP...", help="One or more groups.", autocompletion=complete_group),
]


@app.command("list", epilog="Example: barnabas group list --state Empty --type Classic")
def list_groups(
    states: Annotated[
        list[State] | None,
        typer.Option(
            "--state", case_sensitive=False, help="Only groups in this state; may be repeated."
        ),
    ] = None,
    types: Annotated[
        list[Type] | None,
        typer.Option(
            "--type", case_sensitive=False, help="Only groups of this type; may be repeated."
        ),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List consumer groups and share groups."""
    from barnabas.admin.groups.group_admin import Groups
    from barnabas.admin.groups.share_group_admin import ShareGroupAdmin

    found: list[Listing] = []
    classic = [each for each in types or () if each is not Type.SHARE]
    if classic or not types:
        found += Groups(bootstrap, properties).listings(states or (), classic, warn)
    if Type.SHARE in (types or (Type.SHARE,)):
        shares = ShareGroupAdmin(bootstrap, properties).listings(warn)
        found += [each for each in shares if not states or each.state in states]
    found.sort(key=lambda each: each.group)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    print_table(("GROUP", "TYPE", "STATE"), [(each.group, each.type, each.state) for each in found])


@app.command(epilog="Example: barnabas group describe billing --watch --interval 1")
def describe(
    names: Names,
    as_json: Json = False,
    watching: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Refresh interval, with --watch.")
    ] = 2.0,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show members, assignments, and lag in records and seconds."""
    from barnabas.admin.groups.group_lag import Lags
    from barnabas.admin.groups.share_group_admin import ShareGroupAdmin
    from barnabas.cli.group.share_group_views import with_share_groups

    shares = ShareGroupAdmin(bootstrap, properties)
    with Lags(bootstrap, properties) as lags:

        def look() -> "list[Report | ShareGroup]":
            return with_share_groups(lags.report(names), shares)

        reports = look()
        if watching:
            _watch(look, interval, as_json=as_json)
        elif as_json:
            print_json([each.as_json() for each in reports])
        else:
            console().print(_picture(reports))


app.command("reset", help=resetting.HELP, epilog=resetting.EPILOG)(resetting.reset)


@app.command(
    epilog="Example: barnabas group delete billing --yes ; barnabas group delete billing -t orders"
)
def delete(
    names: Names,
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:PARTITIONS]",
            help="Only the offsets for this topic; may be repeated.",
            autocompletion=complete_topic,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Delete groups without members, or their committed offsets for a topic."""
    from barnabas.admin.groups.group_admin import Groups
    from barnabas.admin.groups.share_group_admin import ShareGroupAdmin
    from barnabas.cli.group.share_group_views import required

    groups, shares = Groups(bootstrap, properties), ShareGroupAdmin(bootstrap, properties)
    share_groups = {
        each.name: required(shares, each.name) for each in groups.describe(names) if not each.exists
    }
    for name in names:
        if name in share_groups:
            _delete_share(shares, share_groups[name], scopes, yes=yes)
        elif scopes:
            places = _committed(groups, name, scopes)
            if yes or typer.confirm(f"Delete what group {name} has committed there?", err=True):
                _delete_commits(bootstrap, properties, name, places)
        elif yes or typer.confirm(f"Delete group {name} and all its committed offsets?", err=True):
            groups.delete(name)
            say(f"Deleted group {name}")


def _delete_share(
    shares: "ShareGroupAdmin", group: "ShareGroup", scopes: list[str] | None, *, yes: bool
) -> None:
    from barnabas.cli.group.share_group_views import topics_of

    name = group.name
    if scopes:
        topics = topics_of(group, scopes)
        if yes or typer.confirm(f"Delete how far share group {name} is there?", err=True):
            shares.forget(name, topics)
            say(f"Deleted how far group {name} is in {plural(len(topics), 'topic')}")
    elif yes or typer.confirm(f"Delete share group {name} and how far it is?", err=True):
        shares.delete(name)
        say(f"Deleted group {name}")


def _watch(
    look: "Callable[[], list[Report | ShareGroup]]", interval_s: float, *, as_json: bool
) -> None:
    from barnabas.cli.common.watch import every, watch

    if not as_json:
        watch(lambda: _picture(look()), interval_s)
        return
    try:
        every(interval_s, lambda: print_json([each.as_json() for each in look()]))
    except KeyboardInterrupt:
        return


def _picture(reports: "list[Report | ShareGroup]") -> "Stack":
    from rich.console import Group as Stack

    return Stack(*(part for report in reports for part in _parts(report)))


def _parts(report: "Report | ShareGroup") -> "list[RenderableType]":
    from rich.text import Text

    from barnabas.admin.groups.share_group_admin import ShareGroup
    from barnabas.cli.group.share_group_views import share_parts

    if isinstance(report, ShareGroup):
        return share_parts(
            report, {each.member_id: _assigned(each.partitions) for each in report.members}
        )
    group = report.group
    head = [f"Group {group.name}", group.type, group.state, group.assignor]
    if group.coordinator is not None:
        head.append(f"coordinator {group.coordinator}")
    head.append(plural(len(group.members), "member"))
    members = [
        (each.member_id, each.client_id, each.instance_id, each.host, _assigned(each.partitions))
        for each in group.members
    ]
    rows = [
        (
            each.topic,
            each.partition,
            each.committed,
            each.end,
            each.lag,
            None if each.lag_seconds is None else format_duration(each.lag_seconds * 1000),
            each.member_id,
        )
        for each in report.partitions
    ]
    parts: list[RenderableType] = [Text("  ".join(word for word in head if word), style="bold")]
    if members:
        parts.append(table(("MEMBER", "CLIENT", "INSTANCE", "HOST", "PARTITIONS"), members))
    titles = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "TIME LAG", "MEMBER")
    return [*parts, table(titles, rows), Text(_total(report))]


def _total(report: "Report") -> str:
    if not any(each.committed is not None for each in report.partitions):
        return "Nothing is committed"
    seconds = report.lag_seconds
    age = "unknown" if seconds is None else format_duration(seconds * 1000)
    return f"Behind by {plural(report.lag, 'record')}, time lag {age}"


def _assigned(places: "list[Place]") -> str:
    topics: dict[str, list[str]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(str(number))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())


def _committed(groups: "Groups", name: str, scopes: list[str]) -> "list[Place]":
    """Return the named partitions that have committed offsets."""
    from barnabas.cli.common.failure import CommandError

    there = groups.committed(name)
    counts = groups.partition_counts()
    for topic, number in there:  # partitions of a deleted topic can also be named
        counts[topic] = max(counts.get(topic, 0), number + 1)
    named = expand([parse_scope(scope, "--topic") for scope in scopes], counts)
    places = [place for place in named if place in there]
    if not places:
        raise CommandError(
            f"Group {name} has committed nothing for {' '.join(scopes)}; "
            f"`barnabas group describe {name}` shows its offsets"
        )
    return places


def _delete_commits(
    bootstrap: str, properties: list[str] | None, name: str, places: "list[Place]"
) -> None:
    from barnabas.admin.groups.commit_deletion import delete_commits
    from barnabas.wire.cluster_wire import Wire

    with Wire(settings(bootstrap, properties), "barnabas-cli") as wire:
        delete_commits(wire, name, places)
    say(f"Deleted what group {name} has committed for {plural(len(places), 'partition')}")
