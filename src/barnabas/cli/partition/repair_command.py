"""`barnabas partition repair`: add missing replicas to partitions.

`shortages` finds the missing replicas, `split` checks whether there are brokers for them; both are
pure functions of the state of the cluster. Replicas are only added, never moved or removed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.admin_errors import no_topic
from barnabas.admin.replica_placement import Partitions, Seat, fill_up
from barnabas.admin.replication_factors import Factors
from barnabas.admin.scopes import Place
from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    complete_topic,
)
from barnabas.cli.common.output import print_json, say
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse

if TYPE_CHECKING:
    from barnabas.admin.reassignments import Plan

HELP = """Add missing replicas to partitions.

Without TOPIC: internal topics with fewer replicas than configured, topics below their requested
replication factor, and topics with no more replicas than min.insync.replicas. With TOPIC: these
topics, up to the configured default.replication.factor or --replication-factor. Topics with one
replica are changed only if they are named.

The plan is shown first. Replicas are only added; producers and consumers continue meanwhile.
"""
EPILOG = "Example: barnabas partition repair __consumer_offsets --yes"
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A partition that lacks replicas, with its intended number."""

    place: Place
    present: int
    wanted: int

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        topic, number = self.place
        return {
            "topic": topic,
            "partition": number,
            "replicas": self.present,
            "wanted": self.wanted,
        }


def repair(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="Only these topics.", autocompletion=complete_topic),
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="The replication factor of the named topics.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the end.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Add missing replicas to partitions."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.placement_planning import survey
    from barnabas.admin.reassignments import seats
    from barnabas.admin.replication_factors import ask_factors
    from barnabas.cli.partition.moving import carry_out

    if replication_factor is not None and not topics:
        raise CommandError("--replication-factor needs the names of topics")
    with open_wire(bootstrap, properties) as wire:
        scene = survey(wire)
        factors = ask_factors(wire, wire.metadata().topics)
    count = len(scene.cluster.brokers)
    short = shortages(scene.partitions, factors, topics or (), replication_factor, brokers=count)
    possible, blocked = split(short, scene.partitions, seats(scene.cluster))
    wanted = {each.place: each.wanted for each in possible}
    plan = scene.plan(fill_up(scene.partitions, seats(scene.cluster), wanted))
    _show(plan, blocked, as_json=as_json)
    if plan.changes and (yes or typer.confirm(_question(plan), err=True)):
        scene.require_at_rest(plan.after)
        carry_out(plan, bootstrap, properties, wait=not no_wait)
        if not as_json:
            done = f"Repaired {plural(len(plan.changes), 'partition')}"
            say("In progress" if no_wait else done)
    if blocked:
        raise CommandError(_why(blocked, scene.cluster))


def shortages(
    partitions: Partitions,
    factors: Factors,
    topics: Sequence[str] = (),
    replication_factor: int | None = None,
    *,
    brokers: int,
) -> list[Shortage]:
    """Return the partitions that lack replicas: of these topics, or all that need repair.

    In a cluster with fewer brokers than the factor, one replica on each broker is enough.
    """
    for name in topics:
        if not any(topic == name for topic, _ in partitions):
            raise no_topic(name)
    fragile = _fragile(partitions, factors)

    def wanted(topic: str) -> int:
        if topics:
            return replication_factor or factors.default(topic) if topic in topics else 0
        return max(min(factors.wanted(topic), brokers), fragile.get(topic, 0))

    return [
        Shortage(place=place, present=len(replicas), wanted=wanted(place[0]))
        for place, replicas in sorted(partitions.items())
        if len(replicas) < wanted(place[0])
    ]


def split(
    short: Iterable[Shortage], partitions: Partitions, brokers: Iterable[Seat]
) -> tuple[list[Shortage], list[Shortage]]:
    """Return the shortages that can be repaired now, and those that must wait for brokers."""
    live = {each.id for each in brokers}
    possible: list[Shortage] = []
    blocked: list[Shortage] = []
    for each in short:
        free = live.difference(partitions[each.place])
        enough = len(free) >= each.wanted - each.present
        (possible if enough else blocked).append(each)
    return possible, blocked


def _fragile(partitions: Partitions, factors: Factors) -> Mapping[str, int]:
    """Return topics with at most min.insync.replicas replicas, and how many they need."""
    found: dict[str, int] = {}
    for (topic, _), replicas in partitions.items():
        least = factors.min_in_sync.get(topic, 1)
        if 1 < len(replicas) <= least:
            found[topic] = max(factors.default(topic), least + 1)
    return found


def _show(plan: "Plan", blocked: Sequence[Shortage], *, as_json: bool) -> None:
    from barnabas.cli.partition.moving import show_plan

    if as_json:
        print_json({**plan.as_json(), "blocked": [each.as_json() for each in blocked]})
    elif plan.changes:
        show_plan(plan)
    elif not blocked:
        say("Nothing to repair: every partition has all its replicas")


def _question(plan: "Plan") -> str:
    return f"Add {plural(plan.moves, 'replica')}?"


def _why(blocked: Sequence[Shortage], cluster: DescribeClusterResponse) -> str:
    """Return which partitions must wait for which brokers, and what to do."""
    counts = Counter(each.place[0] for each in blocked)
    names = ", ".join(f"{topic} ({count})" for topic, count in sorted(counts.items())[:SHOWN])
    more = "" if len(counts) <= SHOWN else ", ..."
    up = [each for each in cluster.brokers if not each.is_fenced]
    away = [str(each.broker_id) for each in cluster.brokers if each.is_fenced]
    what_to_do = (
        f"start broker {', '.join(away)}"
        if away
        else "add a broker with `barnabas cluster add` or `barnabas serve`"
    )
    return (
        f"{plural(len(blocked), 'partition')} must wait: {names}{more}. They need "
        f"{max(each.wanted for each in blocked)} replicas and {plural(len(up), 'broker')} "
        f"{'is' if len(up) == 1 else 'are'} up; {what_to_do}, then run this command again. "
        "These partitions were not changed, and no record is lost"
    )
