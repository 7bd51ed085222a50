"""`barnabas partition`: where the copies of partitions are, and who of them leads."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli import repair
from barnabas.cli.connection import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.output import plural, print_json, say
from barnabas.cli.scopes import expand, parse_scope

if TYPE_CHECKING:
    from barnabas.cli.moving import Scene
    from barnabas.cli.placement import Copies, Seat
    from barnabas.cli.reassignments import Plan
    from barnabas.cli.scopes import Place

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

REASSIGN_HELP = """Move the copies of partitions to other brokers.

Either by --topic and --to: the copies are spread evenly over the brokers named, as few as can be
are moved, and there stay as many of them unless --replication-factor says otherwise. Or by --plan:
exactly as a file says, in the format of Kafka's own tool, which is also what --json prints.

Nothing happens without --execute: the plan is shown, with what has to be copied. No record is lost
on the way: a copy leaves only when those that come are in sync.
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
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without, it is only shown.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is done.")]


@app.command(
    help=REASSIGN_HELP,
    epilog="Example: barnabas partition reassign --topic orders --to 2,3,4 --execute",
)
def reassign(  # noqa: PLR0913 - one parameter an option
    *,
    scopes: Scopes = None,
    to: Annotated[
        str | None, typer.Option(metavar="IDS", help="The brokers to spread over: 1,2,3.")
    ] = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="A plan in JSON.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="How many copies from now on.")
    ] = None,
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="Take back what is under way, of all topics or --topic."),
    ] = False,
    execute: Execute = False,
    no_wait: NoWait = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Move the copies of partitions."""
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.moving import survey
    from barnabas.cli.placement import arrange
    from barnabas.cli.reassignments import read_plan

    ways = sum((to is not None or replication_factor is not None, plan_file is not None, cancel))
    if ways != 1 or (plan_file is None and not cancel and not scopes):
        raise CommandError(
            "Say what to move: --topic with --to or --replication-factor, or --plan, or --cancel"
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
        sizes = _sizes(scene, chosen)
        after = arrange(chosen, brokers, copies=replication_factor, sizes=sizes)
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
    """Even out replicas and leaders over all brokers and racks, with as few moves as can be."""
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.moving import survey
    from barnabas.cli.placement import arrange

    with open_wire(bootstrap, properties) as wire:
        scene = survey(wire)
    away = [each.broker_id for each in scene.cluster.brokers if each.is_fenced]
    if away:
        raise CommandError(
            f"Broker {away[0]} is fenced, and its copies are not to be given up for that; start "
            f"it, or give it up with `barnabas cluster remove {away[0]}`"
        )
    chosen = {place: scene.partitions[place] for place in _places(scene, scopes)}
    after = arrange(chosen, _seats(scene, None), sizes=_sizes(scene, chosen))
    _finish(scene, scene.plan(after), bootstrap, properties, execute, no_wait, as_json)


@app.command(epilog="Example: barnabas partition elect --topic orders")
def elect(
    scopes: Scopes = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="Let copies that are out of sync lead where none else can; LOSES records.",
        ),
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Let preferred leaders lead: the first in-sync replica of each partition's list."""
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.moving import survey
    from barnabas.cli.reassignments import PREFERRED, UNCLEAN
    from barnabas.cli.reassignments import elect as elect_leaders

    if unclean and not scopes:
        raise CommandError("--unclean loses records; name what may lose them with --topic")
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
    """Show a plan, and carry it out if asked to."""
    from barnabas.cli.moving import carry_out, show_plan

    if as_json:
        print_json(plan.as_json())
    elif not plan.changes:
        say("Nothing to move: all is as it should be")
    else:
        show_plan(plan)
    if not plan.changes:
        return
    if not execute:
        if not as_json:
            say("Nothing was changed; --execute does it")
        return
    scene.require_at_rest(plan.after)
    carry_out(plan, bootstrap, properties, wait=not no_wait)
    if not as_json:
        say("Under way" if no_wait else f"Moved {plural(len(plan.changes), 'partition')}")


def _cancel(
    scene: "Scene", scopes: list[str] | None, bootstrap: str, properties: list[str] | None
) -> None:
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.reassignments import submit

    chosen = set(_places(scene, scopes))
    moving = {
        (topic.name, each.partition_index) for topic in scene.moving for each in topic.partitions
    }
    wanted: dict[Place, Copies | None] = dict.fromkeys(sorted(moving & chosen))
    if not wanted:
        say("Nothing is being moved")
        return
    with open_wire(bootstrap, properties) as wire:
        refused = submit(wire, wanted)
    if refused:
        raise CommandError(f"{plural(len(refused), 'partition')} go on: {refused[0]}")
    say(f"Cancelled the reassignment of {plural(len(wanted), 'partition')}")


def _places(scene: "Scene", scopes: list[str] | None) -> "list[Place]":
    """Return the partitions that options name; all where they name none."""
    if not scopes:
        return sorted(scene.partitions)
    counts = Counter(topic for topic, _ in scene.partitions)
    return expand([parse_scope(scope, "--topic") for scope in scopes], counts)


def _seats(scene: "Scene", to: str | None) -> "list[Seat]":
    from barnabas.cli.inspection import known_broker
    from barnabas.cli.reassignments import seats

    everybody = seats(scene.cluster)
    if to is None:
        return everybody
    try:
        numbers = {int(each) for each in to.split(",")}
    except ValueError as error:
        raise CommandError(f"--to {to!r} names no brokers; write 1,2,3") from error
    for number in sorted(numbers):
        if known_broker(scene.cluster, number).is_fenced:
            raise CommandError(f"Broker {number} is fenced; start it, or leave it out of --to")
    return [each for each in everybody if each.id in numbers]


def _sizes(scene: "Scene", chosen: "dict[Place, Copies]") -> "dict[Place, int]":
    found: dict[Place, int] = {}
    for held in scene.sizes(chosen).values():
        for place, size in held.items():
            found[place] = max(size, found.get(place, 0))
    return found
