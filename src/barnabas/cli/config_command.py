"""`barnabas config`: read and change the settings of topics, brokers and client metrics."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import pairs, settings
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.admin.topic_admin import Config

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


class Kind(StrEnum):
    """The kinds of resources with settings."""

    TOPIC = "topic"
    BROKER = "broker"
    CLIENT_METRICS = "client-metrics"


def _complete_name(context: typer.Context, incomplete: str) -> list[str]:
    is_topic = str(context.params.get("kind")) == Kind.TOPIC
    return complete_topic(context, incomplete) if is_topic else []


KindArgument = Annotated[Kind, typer.Argument(help="The kind of resource.", show_default=False)]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A topic's name, a broker's id, or a subscription to metrics of clients.",
        autocompletion=_complete_name,
    ),
]


@app.command(epilog="Example: barnabas config get topic orders retention.ms")
def get(
    kind: KindArgument,
    name: NameArgument,
    key: Annotated[str | None, typer.Argument(help="One setting; default: all.")] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only settings that are not at their default.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show settings, and the source of each value."""
    found = described(kind, name, bootstrap, properties)
    wanted = [each for each in found if key in (None, each.name)]
    if not wanted:
        raise CommandError(
            f"{kind.capitalize()} {name} has no setting {key}; "
            f"`barnabas config get {kind} {name}` lists all settings"
        )
    if changed:
        wanted = [each for each in wanted if not each.is_default]
    if as_json:
        print_json([asdict(each) for each in wanted])
        return
    rows = [
        (each.name, "(hidden)" if each.sensitive else each.value, each.source) for each in wanted
    ]
    print_table(("KEY", "VALUE", "SOURCE"), rows)


@app.command(
    "set",
    epilog="Example: barnabas config set topic orders retention.ms=3600000 --unset segment.bytes",
)
def set_values(
    kind: KindArgument,
    name: NameArgument,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="A setting to change.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Reset this setting to its default.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Set and reset settings, all of them or none."""
    changes = pairs(values, "setting")
    if not changes and not unset:
        raise CommandError("Nothing to set; pass KEY=VALUE or --unset KEY")
    change(kind, name, changes, unset or (), bootstrap, properties)
    say(f"Changed {kind} {name}")


@app.command("subscriptions", epilog="Example: barnabas config subscriptions --json")
def subscriptions(
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show all subscriptions to metrics of clients, with their settings."""
    from barnabas.admin.client_metrics_admin import ClientMetricsSubscriptions
    from barnabas.wire.cluster_wire import Wire

    with Wire(settings(bootstrap, properties), "barnabas-cli") as wire:
        known = ClientMetricsSubscriptions(wire)
        found = {
            name: {each.name: each.value for each in known.configs(name)} for name in known.names()
        }
    if as_json:
        print_json([{"name": name, **values} for name, values in found.items()])
        return
    titles = ("NAME", "METRICS", "INTERVAL.MS", "MATCH")
    rows = [
        (name, values["metrics"], values["interval.ms"], values["match"])
        for name, values in found.items()
    ]
    print_table(titles, rows)


def described(
    kind: Kind, name: str, bootstrap: str, properties: list[str] | None
) -> "list[Config]":
    """Return the settings of a resource."""
    from barnabas.admin.topic_admin import Cluster

    if kind is not Kind.CLIENT_METRICS:
        return Cluster(bootstrap, properties).configs(kind, name)
    from barnabas.admin.client_metrics_admin import ClientMetricsSubscriptions
    from barnabas.wire.cluster_wire import Wire

    with Wire(settings(bootstrap, properties), "barnabas-cli") as wire:
        return ClientMetricsSubscriptions(wire).configs(name)


def change(
    kind: Kind,
    name: str,
    values: Mapping[str, str],
    unset: Iterable[str],
    bootstrap: str,
    properties: list[str] | None,
) -> None:
    """Change the settings of a resource."""
    from barnabas.admin.topic_admin import Cluster

    if kind is not Kind.CLIENT_METRICS:
        Cluster(bootstrap, properties).change(kind, name, values, unset)
        return
    from barnabas.admin.client_metrics_admin import ClientMetricsSubscriptions
    from barnabas.wire.cluster_wire import Wire

    with Wire(settings(bootstrap, properties), "barnabas-cli") as wire:
        ClientMetricsSubscriptions(wire).change(name, values, unset)
