"""`barnabas cluster upgrade`: finalize a new release, once every broker runs it."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from barnabas.admin.feature_levels import ClusterLevels

HELP = """Raise the feature level, once every broker runs the new release.

Before that each broker can be rolled back to the previous release; afterwards no broker can. The
command shows which levels each broker supports, and changes nothing if one does not support the new
level. With --check it only checks; its exit code is 1 if a broker is not ready.
"""
EPILOG = "Example: barnabas cluster upgrade --check --bootstrap 127.0.0.1:9092"
NOT_READY = 1


def upgrade(
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether every broker is ready.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Raise the feature level."""
    from barnabas.admin.feature_levels import look_at_levels, raise_level
    from barnabas.admin.inspection import open_wire

    with open_wire(bootstrap, properties) as wire:
        found = look_at_levels(wire)
        wanted = found.goal > found.level
        if not as_json:
            _show(found)
        if check:
            if as_json:
                print_json(found.as_json())
            sys.exit(NOT_READY if found.missing else 0)
        if found.missing:
            raise CommandError(_missing(found))
        if wanted and not yes and not typer.confirm(_question(found), err=True):
            return
        if wanted:
            raise_level(wire, found.goal)
    if as_json:
        print_json({**found.as_json(), "level": found.goal, "before": found.level})
    elif wanted:
        say(f"The cluster is at feature level {found.goal}; brokers cannot be rolled back below it")


def _show(found: "ClusterLevels") -> None:
    rows = [(each.id, each.address, each.shown()) for each in found.brokers]
    print_table(("BROKER", "ADDRESS", "KNOWS"), rows)
    say(f"\nThe cluster is at feature level {found.level}")
    if found.goal == found.level and not found.missing:
        say("No broker supports a higher level: there is nothing to finalize")
    elif not found.missing:
        say(f"Every broker supports level {found.goal}")


def _missing(found: "ClusterLevels") -> str:
    missing = ", ".join(f"broker {each.id}: {each.shown()}" for each in found.missing)
    return (
        f"Not every broker supports level {found.goal} ({missing}); upgrade and start each "
        "of them, or remove it with `barnabas cluster remove`"
    )


def _question(found: "ClusterLevels") -> str:
    return (
        f"Raise the feature level from {found.level} to {found.goal}? No broker can be rolled back "
        "to an older release afterwards"
    )
