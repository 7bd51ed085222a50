"""`barnabas cluster remove`: move a broker's replicas away, remove its vote, and unregister it.

Every step can be repeated: completed steps take no time, and an interrupted one continues.
"""

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, say
from barnabas.wire.wire_failures import LinkError

if TYPE_CHECKING:
    from barnabas.admin.placement_planning import Scene
    from barnabas.admin.reassignments import Plan

HELP = """Remove a broker from the cluster without data loss.

The command first moves its replicas to other brokers, with progress. Then it removes its vote, if
it is a voter. Then the broker must stop: --stop does that for a broker of `barnabas cluster up`.
Stop other brokers yourself and run the command again. At the end it is unregistered. Its data
directory is not changed.
"""
EPILOG = "Example: barnabas cluster remove 4 --yes --stop --data ./cluster"
STOP_PATIENCE_S = 60.0
FENCE_PATIENCE_S = 60.0
LOOK_S = 0.2


def remove(
    node_id: Annotated[int, typer.Argument(metavar="ID", help="The broker's node id.")],
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop the broker; for brokers of `barnabas cluster up`.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The directory of `barnabas cluster up`, for --stop."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Remove a broker from the cluster."""
    from barnabas.admin.inspection import known_broker, open_wire
    from barnabas.admin.placement_planning import survey

    if stop and data is None:
        raise CommandError("--stop needs --data DIR, the directory of `barnabas cluster up`")
    with open_wire(bootstrap, properties) as wire:
        scene = survey(wire)
    known_broker(scene.cluster, node_id)
    bootstrap = _others(scene, node_id)
    plan = _drained(scene, node_id)
    if not yes and not typer.confirm(_question(node_id, plan), err=True):
        return
    _drain(scene, plan, bootstrap, properties, quiet=as_json)
    voted = _take_vote(node_id, bootstrap, properties)
    if stop and data is not None:
        _stop(data, node_id)
    stopped = _is_stopped(node_id, bootstrap, properties, wait=stop)
    if stopped:
        _unregister(node_id, bootstrap, properties)
        if data is not None:
            _forget(data, node_id)
    if as_json:
        done = {"moved": plan.moves, "was_voter": voted, "unregistered": stopped}
        print_json({"node_id": node_id, **done})
    elif stopped:
        say(
            f"Broker {node_id} is no longer part of the cluster; its data directory was not changed"
        )
    else:
        say(
            f"Broker {node_id} has no replicas left. Stop it, and run this command again to "
            "unregister it"
        )


def _others(scene: "Scene", node_id: int) -> str:
    """Return the addresses of the remaining brokers, because the removed one will stop."""
    staying = [
        f"{each.host}:{each.port}"
        for each in scene.cluster.brokers
        if each.broker_id != node_id and not each.is_fenced
    ]
    if not staying:
        raise CommandError(f"Broker {node_id} is the only broker; add another one first")
    return ",".join(staying)


def _drained(scene: "Scene", node_id: int) -> "Plan":
    from barnabas.admin.reassignments import seats
    from barnabas.admin.replica_placement import drain

    return scene.plan(drain(scene.partitions, seats(scene.cluster), node_id))


def _question(node_id: int, plan: "Plan") -> str:
    from barnabas.cli.partition.moving import format_bytes

    return (
        f"Move {plural(plan.moves, 'replica')} ({format_bytes(plan.bytes_to_move)}) away from "
        f"broker {node_id} and remove it?"
    )


def _drain(
    scene: "Scene", plan: "Plan", bootstrap: str, properties: list[str] | None, *, quiet: bool
) -> None:
    from barnabas.cli.partition.moving import carry_out

    if not plan.changes:
        return
    scene.require_at_rest(plan.after)
    carry_out(plan, bootstrap, properties, wait=True)
    if not quiet:
        say(f"Moved {plural(plan.moves, 'replica')} to other brokers")


def _take_vote(node_id: int, bootstrap: str, properties: list[str] | None) -> bool:
    """Remove its vote; return whether it had one."""
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.voter_changes import remove_voter, voter

    with open_wire(bootstrap, properties) as wire:
        found = voter(wire, node_id)
        if found is not None:
            remove_voter(wire, found)
    return found is not None


def _stop(data: Path, node_id: int) -> None:
    from barnabas.cli.cluster.add_command import load_cluster
    from barnabas.cli.cluster.local_cluster import is_locked

    cluster = load_cluster(data)
    cluster.broker(node_id)
    pid = cluster.running_pid(node_id)
    if pid is None:
        warn(f"Broker {node_id} of {data} does not run")
        return
    os.kill(pid, signal.SIGTERM)
    deadline_s = time.monotonic() + STOP_PATIENCE_S
    while is_locked(cluster.data(node_id)):
        if time.monotonic() > deadline_s:
            raise CommandError(
                f"Broker {node_id} (process {pid}) does not stop; see {cluster.log(node_id)}"
            )
        time.sleep(LOOK_S)


def _is_stopped(node_id: int, bootstrap: str, properties: list[str] | None, *, wait: bool) -> bool:
    """Return whether the controller no longer gets heartbeats from a broker."""
    from barnabas.admin.inspection import describe_cluster, known_broker, open_wire

    deadline_s = time.monotonic() + (FENCE_PATIENCE_S if wait else 0)
    while True:
        try:
            with open_wire(bootstrap, properties) as wire:
                if known_broker(describe_cluster(wire), node_id).is_fenced:
                    return True
        except LinkError:  # a controller that stops hands over first
            if time.monotonic() > deadline_s:
                raise
        if time.monotonic() > deadline_s:
            return False
        time.sleep(LOOK_S)


def _unregister(node_id: int, bootstrap: str, properties: list[str] | None) -> None:
    from barnabas.admin.inspection import open_wire
    from barnabas.protocol.messages.unregister_broker import (
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
    )
    from barnabas.wire.cluster_wire import settled

    with open_wire(bootstrap, properties) as wire:

        def ask() -> tuple[int, None]:
            request = UnregisterBrokerRequest(broker_id=node_id)
            return wire.ask_any(request, UnregisterBrokerResponse).error_code, None

        settled(ask, f"Broker {node_id} remains registered")


def _forget(data: Path, node_id: int) -> None:
    from barnabas.cli.cluster.local_cluster import load

    cluster = load(data)
    if cluster is not None:
        cluster.without(node_id).save()
