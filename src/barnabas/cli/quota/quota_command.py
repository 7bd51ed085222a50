"""`barnabas quota`: set, list and remove the quotas of users, client ids and addresses."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import settings
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.admin.access.quota_admin import Entity
    from barnabas.wire.cluster_wire import Wire

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

SET_HELP = """Set quotas of a user, a client id, both, or an address.

producer_byte_rate, consumer_byte_rate: bytes per second, such as 1MB.
request_percentage: percent of a broker's event loop; 100 is all of it.
controller_mutation_rate: partitions created and deleted per second.
connection_creation_rate (only with --ip): new connections per second.

Each broker counts for itself. A client may use ten seconds' worth at once.
"""

User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="A user, or '*default*' for all.")
]
ClientId = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", help="A client id, or '*default*'.")
]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="Or '*default*'.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Validate, and change nothing.")]


@app.command(
    "set",
    help=SET_HELP,
    epilog="Example: barnabas quota set --user alice --client-id '*default*' "
    "producer_byte_rate=1MB request_percentage=25",
)
def set_quotas(
    quotas: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="The quotas.")],
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Set quotas."""
    from barnabas.admin.access.quota_admin import Quotas, entity_from, parse_quota

    entity = entity_from(user, client_id, ip)
    wanted = dict(map(parse_quota, quotas))
    with _wire(bootstrap, properties) as wire:
        found = Quotas(wire)
        before = found.of(entity)
        found.set(entity, wanted, dry_run=dry_run)
    _report(entity, before, {**before, **wanted}, dry_run=dry_run, as_json=as_json)


@app.command(
    epilog="Example: barnabas quota remove --user alice producer_byte_rate ; "
    "barnabas quota remove --ip 10.0.0.1"
)
def remove(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY...]", help="The quotas to remove; all if none is named."),
    ] = None,
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Remove quotas of a user, a client id, both, or an address."""
    from barnabas.admin.access.quota_admin import Quotas, entity_from

    entity = entity_from(user, client_id, ip)
    with _wire(bootstrap, properties) as wire:
        found = Quotas(wire)
        before = found.of(entity)
        missing = [key for key in keys or () if key not in before]
        if missing or not before:
            what = ", ".join(missing) or "quota"
            raise CommandError(
                f"{entity.text} has no {what}; `barnabas quota list` lists all quotas"
            )
        gone = list(keys or before)
        found.remove(entity, gone, dry_run=dry_run)
    after = {key: value for key, value in before.items() if key not in gone}
    _report(entity, before, after, dry_run=dry_run, as_json=as_json)


@app.command("list", epilog="Example: barnabas quota list --user alice")
def list_quotas(
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List quotas: all, or those that name a user, a client id or an address."""
    from barnabas.admin.access.quota_admin import Quotas, entity_from

    names = entity_from(user, client_id, ip).names if user or client_id or ip else {}
    with _wire(bootstrap, properties) as wire:
        found = Quotas(wire).list(names)
    if as_json:
        print_json([each.as_json() for each in found])
        return
    rows = [
        (each.entity.text, key, _number(value))
        for each in found
        for key, value in sorted(each.values.items())
    ]
    print_table(("ENTITY", "QUOTA", "VALUE"), rows)


def _wire(bootstrap: str, properties: list[str] | None) -> "Wire":
    from barnabas.wire.cluster_wire import Wire

    return Wire(settings(bootstrap, properties), "barnabas-cli")


def _report(
    entity: "Entity",
    before: Mapping[str, float],
    after: Mapping[str, float],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    if as_json:
        print_json(
            {
                "entity": entity.as_json(),
                "before": dict(before),
                "after": dict(after),
                "dry_run": dry_run,
            }
        )
        return
    keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    verb = "Would change" if dry_run else "Changed"
    say(
        f"{verb} the quotas of {entity.text}" if keys else f"{entity.text} has these quotas already"
    )
    for key in keys:
        say(f"  {key}: {_limit(before.get(key))} -> {_limit(after.get(key))}")


def _limit(value: float | None) -> str:
    return "no limit" if value is None else str(_number(value))


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value
