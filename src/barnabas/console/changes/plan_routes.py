"""Plans for replicas and leaders: shown first, then carried out by the cluster.

A plan is computed again when it is submitted, from the placement at that moment.
"""

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from barnabas.admin.inspection import describe_cluster, list_reassignments, probe
from barnabas.admin.placement_planning import (
    Scene,
    broker_totals,
    partitions_by_topic,
    survey,
)
from barnabas.admin.reassignments import Plan, elect, sizes_of, submit
from barnabas.admin.replica_placement import Replicas
from barnabas.admin.scopes import Place
from barnabas.console.cluster_access import open_wire
from barnabas.console.console_endpoints import Asked, ConsoleParts, change, live
from barnabas.console.web.problems import bad_input, in_the_way
from barnabas.wire.cluster_wire import Wire

CHANGES_SHOWN_MAX = 10_000
REFUSALS_SHOWN = 5


class PlanRoutes:
    """The endpoints of plans."""

    def __init__(self, parts: ConsoleParts) -> None:
        self._parts = parts

    def routes(self) -> list[Route]:
        """Return the routes."""
        parts, base = self._parts, "/api/plans"
        return [
            live(parts, f"{base}/running", self._running),
            change(parts, "POST", f"{base}/balance", "plan.balance", self._balance),
            change(parts, "POST", f"{base}/reassign", "plan.reassign", self._reassign),
            change(parts, "POST", f"{base}/elect", "plan.elect", self._elect),
            change(parts, "POST", f"{base}/cancel", "plan.cancel", self._cancel),
        ]

    def _balance(self, asked: Asked) -> object:
        scopes = asked.body.texts("scope")
        with self._wire(asked) as wire:
            scene = survey(wire)
            return self._finish(asked, wire, scene, scene.balance(scopes))

    def _reassign(self, asked: Asked) -> object:
        wanted = _wanted(asked.body.mapping("changes"))
        with self._wire(asked) as wire:
            scene = survey(wire)
            scene.require_valid(wanted, "The plan")
            return self._finish(asked, wire, scene, scene.plan(wanted))

    def _finish(self, asked: Asked, wire: Wire, scene: Scene, plan: Plan) -> object:
        asked.is_dry_run = asked.body.flag("dry_run", default=True)
        asked.target = f"{len(plan.changes)} partitions"
        asked.details = {"changes": {_name(e.place): list(e.after) for e in plan.changes}}
        if not asked.is_dry_run and plan.changes:
            busy = sorted(scene.moving_places.intersection(plan.after))
            if busy:
                raise in_the_way(
                    f"{_name(busy[0])} is already being reassigned; wait for the end, or cancel it"
                )
            _require_accepted(submit(wire, plan.after))
        return _plan_json(scene, plan)

    def _elect(self, asked: Asked) -> object:
        scopes = asked.body.texts("scope")
        asked.is_dry_run = asked.body.flag("dry_run", default=True)
        asked.target = ", ".join(scopes) or "all partitions"
        with self._wire(asked) as wire:
            scene = survey(wire)
            places = set(scene.places(scopes, "scope"))
            leaders = _leaders(wire)
            changes = [
                {
                    "topic": place[0],
                    "partition": place[1],
                    "before": leaders[place],
                    "after": replicas[0],
                }
                for place, replicas in sorted(scene.partitions.items())
                if place in places and place in leaders and leaders[place] != replicas[0]
            ]
            if asked.is_dry_run:
                return {"changes": changes, "elected": [], "refused": []}
            elected, refused = elect(wire, sorted(places) if scopes else None)
        return {
            "changes": changes,
            "elected": [{"topic": topic, "partition": each} for topic, each in elected],
            "refused": refused[:CHANGES_SHOWN_MAX],
        }

    def _running(self, asked: Asked) -> object:
        with self._wire(asked) as wire:
            moving = list_reassignments(wire)
            places = [(t.name, each.partition_index) for t in moving for each in t.partitions]
            brokers = describe_cluster(wire).brokers if places else ()
            sizes = sizes_of(probe(brokers, partitions_by_topic(places), wire.security))
        return {
            "moving": [
                {
                    "topic": topic.name,
                    "partition": each.partition_index,
                    "adding": list(each.adding_replicas),
                    "removing": list(each.removing_replicas),
                    "bytes_left": _bytes_left(
                        sizes, (topic.name, each.partition_index), each.adding_replicas
                    ),
                }
                for topic in moving
                for each in topic.partitions
            ]
        }

    def _cancel(self, asked: Asked) -> object:
        scopes = asked.body.texts("scope")
        asked.target = ", ".join(scopes) or "all partitions"
        with self._wire(asked) as wire:
            scene = survey(wire)
            met = scene.moving_places.intersection(scene.places(scopes, "scope"))
            cancelled: dict[Place, Replicas | None] = dict.fromkeys(sorted(met))
            if cancelled:
                _require_accepted(submit(wire, cancelled))
        return {"cancelled": [{"topic": topic, "partition": each} for topic, each in cancelled]}

    def _wire(self, asked: Asked) -> Wire:
        return open_wire(self._parts.settings, asked.session)


def _plan_json(scene: Scene, plan: Plan) -> dict[str, object]:
    brokers = [each.broker_id for each in scene.cluster.brokers]
    totals = broker_totals(scene.partitions, plan.after, brokers)
    return {
        "changes": [
            {
                "topic": each.place[0],
                "partition": each.place[1],
                "before": list(each.before),
                "after": list(each.after),
                "bytes": each.bytes_to_move,
            }
            for each in plan.changes[:CHANGES_SHOWN_MAX]
        ],
        "bytes_to_move": plan.bytes_to_move,
        "moves": plan.moves,
        "brokers": {str(broker): counts for broker, counts in totals.items()},
    }


def _wanted(changes: Mapping[str, Any]) -> dict[Place, Replicas]:
    found: dict[Place, Replicas] = {}
    for name, replicas in changes.items():
        topic, dash, number = name.rpartition("-")
        are_ids = isinstance(replicas, list) and all(
            isinstance(each, int) and not isinstance(each, bool) for each in replicas
        )
        if not dash or not topic or not number.isdigit() or not are_ids:
            raise bad_input('"changes" must name brokers by partition: {"orders-0": [1, 2]}')
        found[topic, int(number)] = tuple(replicas)
    if not found:
        raise bad_input('"changes" names no partition; write {"orders-0": [1, 2]}')
    return found


def _leaders(wire: Wire) -> dict[Place, int]:
    return {
        (topic.name or "", each.partition_index): each.leader_id
        for topic in wire.metadata().topics
        for each in topic.partitions
    }


def _bytes_left(
    sizes: Mapping[int, Mapping[Place, int]], place: Place, adding: list[int]
) -> int | None:
    """Return how many bytes the new replicas still lack; None if no size is known."""
    held = [by_place[place] for by_place in sizes.values() if place in by_place]
    if not held:
        return None
    return sum(max(0, max(held) - sizes.get(node, {}).get(place, 0)) for node in adding)


def _require_accepted(refused: list[str]) -> None:
    if refused:
        shown = "; ".join(refused[:REFUSALS_SHOWN])
        raise in_the_way(f"{len(refused)} partitions cannot be changed: {shown}")


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
