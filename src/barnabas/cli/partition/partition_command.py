"""`barnabas partition`: move and balance the replicas of partitions, and elect leaders."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.common.output import print_json, say
from barnabas.cli.partition import repair_command as repair

if TYPE_CHECKING:
    from barnabas.admin.placement_planning import Scene
    from barnabas.admin.reassignments import Plan
    from barnabas.admin.replica_placement import Replicas, Seat
    from barnabas.admin.scopes import Place

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

REASSIGN_HELP = """Move the replicas of partitions to other brokers.

With --topic and --to: spread the replicas evenly over the named brokers, with as few moves as
possible. Their number stays the same unless --replication-factor is given. With --plan: exactly as
in a file, in the format of Kafka's own tool, which --json also prints.

Without --execute the command only shows the plan and the bytes to replicate. No record is lost: an
old replica is removed only when the new ones are in sync.
"""

Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:PARTITIONS]",
        help="Only this topic, or some of its partitions; may be repeated.",
        autocompletion=complete_topic,
    ),
]
Execute = Annotated[
    bool, typer.Option("--execute", help="Execute the plan; without it, only show the plan.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait for the end.")]


@app.command(
    help=REASSIGN_HELP,
    epilog="Example: barnabas partition reassign --topic orders --to 2,3,4 --execute",
)
def reassign(  # noqa: PLR0913 - one parameter an option
    *,
    scopes: Scopes = None,
    to: Annotated[
        str | None, typer.Option(metavar="IDS", help="The brokers to use: 1,2,3.")
    ] = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="A plan file in JSON.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="The new replication factor.")
    ] = None,
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="Cancel current reassignments, of all topics or --topic."),
    ] = False,
    execute: Execute = False,
    no_wait: NoWait = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Move the replicas of partitions."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.placement_planning import survey
    from barnabas.admin.reassignments import read_plan
    from barnabas.admin.replica_placement import arrange

    ways = sum((to is not None or replication_factor is not None, plan_file is not None, cancel))
    if ways != 1 or (plan_file is None and not cancel and not scopes):
        raise CommandError(
            "Pass what to move: --topic with --to or --replication-factor, or --plan, or --cancel"
        )
    with open_wire(bootstrap, properties) as wire:
        scene = survey(wire)
    if cancel:
        _cancel(scene, scopes, bootstrap, properties)
        return
    if plan_file is not None:
        after = read_plan(plan_file, scene.partitions, scene.cluster)
    else:
        chosen = {place: scene.partitions[place] for place in _places(scene, scopes)}
        brokers = _seats(scene, to)
        sizes = scene.largest_sizes(chosen)
        after = arrange(chosen, brokers, replication_factor=replication_factor, sizes=sizes)
    _finish(scene, scene.plan(after), bootstrap, properties, execute, no_wait, as_json)


@app.command(epilog="Example: barnabas partition balance --execute")
def balance(
    scopes: Scopes = None,
    execute: Execute = False,
    no_wait: NoWait = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Balance replicas and leaders over all brokers and racks, with as few moves as possible."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.placement_planning import survey

    with open_wire(bootstrap, properties) as wire:
        scene = survey(wire)
    plan = scene.balance(scopes or ())
    _finish(scene, plan, bootstrap, properties, execute, no_wait, as_json)


@app.command(epilog="Example: barnabas partition elect --topic orders")
def elect(
    scopes: Scopes = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="Elect replicas that are out of sync if there is no other; LOSES records.",
        ),
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Elect preferred leaders: the first in-sync replica of each partition's list."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.placement_planning import survey
    from barnabas.admin.reassignments import PREFERRED, UNCLEAN
    from barnabas.admin.reassignments import elect as elect_leaders

    if unclean and not scopes:
        raise CommandError("--unclean loses records; name the partitions with --topic")
    with open_wire(bootstrap, properties) as wire:
        places = _places(survey(wire), scopes) if scopes else None
        elected, refused = elect_leaders(wire, places, UNCLEAN if unclean else PREFERRED)
    if as_json:
        names = [f"{topic}-{number}" for topic, number in elected]
        print_json({"elected": names, "refused": refused})
    else:
        say(f"Elected the leaders of {plural(len(elected), 'partition')}")
        for sentence in refused:
            warn(sentence)
    if refused:
        raise CommandError(
            f"{plural(len(refused), 'partition')} kept their leader or lack one; start the brokers "
            "that should lead them, and wait until they are in sync"
        )


app.command("repair", help=repair.HELP, epilog=repair.EPILOG)(repair.repair)


def _finish(
    scene: "Scene",
    plan: "Plan",
    bootstrap: str,
    properties: list[str] | None,
    execute: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Show a plan, and execute it with --execute."""
    from barnabas.cli.partition.moving import carry_out, show_plan

    if as_json:
        print_json(plan.as_json())
    elif not plan.changes:
        say("Nothing to move: the placement is already as requested")
    else:
        show_plan(plan)
    if not plan.changes:
        return
    if not execute:
        if not as_json:
            say("Nothing was changed; add --execute to apply the plan")
        return
    scene.require_at_rest(plan.after)
    carry_out(plan, bootstrap, properties, wait=not no_wait)
    if not as_json:
        say("In progress" if no_wait else f"Moved {plural(len(plan.changes), 'partition')}")


def _cancel(
    scene: "Scene", scopes: list[str] | None, bootstrap: str, properties: list[str] | None
) -> None:
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.reassignments import submit

    chosen = set(_places(scene, scopes))
    wanted: dict[Place, Replicas | None] = dict.fromkeys(sorted(scene.moving_places & chosen))
    if not wanted:
        say("No reassignment is in progress")
        return
    with open_wire(bootstrap, properties) as wire:
        refused = submit(wire, wanted)
    if refused:
        raise CommandError(
            f"{plural(len(refused), 'partition')} could not be cancelled: {refused[0]}"
        )
    say(f"Cancelled the reassignment of {plural(len(wanted), 'partition')}")


def _places(scene: "Scene", scopes: list[str] | None) -> "list[Place]":
    """Return the partitions that the options name; all by default."""
    return scene.places(scopes or (), "--topic")


def _seats(scene: "Scene", to: str | None) -> "list[Seat]":
    from barnabas.admin.inspection import known_broker
    from barnabas.admin.reassignments import seats

    all_seats = seats(scene.cluster)
    if to is None:
        return all_seats
    try:
        numbers = {int(each) for each in to.split(",")}
    except ValueError as error:
        raise CommandError(f"--to {to!r} is not a list of brokers; write 1,2,3") from error
    for number in sorted(numbers):
        if known_broker(scene.cluster, number).is_fenced:
            raise CommandError(f"Broker {number} is fenced; start it, or remove it from --to")
    return [each for each in all_seats if each.id in numbers]
