"""`barnabas cluster remove`: a broker gives up its copies, its vote, and its place.

Every step can be done again: what is done already takes no time, and what was interrupted goes on.
"""

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.connection import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.output import plural, print_json, say
from barnabas.wire.failures import LinkError

if TYPE_CHECKING:
    from barnabas.cli.moving import Scene
    from barnabas.cli.reassignments import Plan

HELP = """Take a broker out of the cluster, and lose nothing.

Its copies are made on other brokers first, with progress; then it loses its vote on metadata if it
has one. Then it must stop: --stop does that for a broker of `barnabas cluster up`, others you stop
yourself and run the command again. Last it is taken off the controller's list. Its data folder
is left as it is.
"""
EPILOG = "Example: barnabas cluster remove 4 --yes --stop --data ./cluster"
STOP_PATIENCE_S = 60.0
FENCE_PATIENCE_S = 60.0
LOOK_S = 0.2


def remove(
    node_id: Annotated[int, typer.Argument(metavar="ID", help="The broker's number.")],
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop it; for brokers of `barnabas cluster up`.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of `barnabas cluster up`, for --stop."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Take a broker out of the cluster."""
    from barnabas.cli.inspection import known_broker, open_wire
    from barnabas.cli.moving import survey

    if stop and data is None:
        raise CommandError("--stop needs --data DIR, the folder of `barnabas cluster up`")
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
        say(f"Broker {node_id} is no longer part of the cluster; its data folder is left as it is")
    else:
        say(
            f"Broker {node_id} holds nothing any more. Stop it, and run this command again to take "
            "it off the list"
        )


def _others(scene: "Scene", node_id: int) -> str:
    """Return the addresses of those that stay: the one that leaves will soon answer no more."""
    staying = [
        f"{each.host}:{each.port}"
        for each in scene.cluster.brokers
        if each.broker_id != node_id and not each.is_fenced
    ]
    if not staying:
        raise CommandError(f"Broker {node_id} is the only one; add another one first")
    return ",".join(staying)


def _drained(scene: "Scene", node_id: int) -> "Plan":
    from barnabas.cli.placement import drain
    from barnabas.cli.reassignments import seats

    return scene.plan(drain(scene.partitions, seats(scene.cluster), node_id))


def _question(node_id: int, plan: "Plan") -> str:
    from barnabas.cli.moving import format_bytes

    return (
        f"Move {plural(plan.moves, 'replica')} ({format_bytes(plan.bytes_to_move)}) away from "
        f"broker {node_id} and remove it?"
    )


def _drain(
    scene: "Scene", plan: "Plan", bootstrap: str, properties: list[str] | None, *, quiet: bool
) -> None:
    from barnabas.cli.moving import carry_out

    if not plan.changes:
        return
    scene.require_at_rest(plan.after)
    carry_out(plan, bootstrap, properties, wait=True)
    if not quiet:
        say(f"Moved {plural(plan.moves, 'replica')} to other brokers")


def _take_vote(node_id: int, bootstrap: str, properties: list[str] | None) -> bool:
    """Take its vote; return whether it had one."""
    from barnabas.cli.inspection import open_wire
    from barnabas.cli.voting import remove_voter, voter

    with open_wire(bootstrap, properties) as wire:
        found = voter(wire, node_id)
        if found is not None:
            remove_voter(wire, found)
    return found is not None


def _stop(data: Path, node_id: int) -> None:
    from barnabas.cli.cluster_add import load_cluster
    from barnabas.cli.local_cluster import is_locked

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
                f"Broker {node_id} (process {pid}) does not stop; look into {cluster.log(node_id)}"
            )
        time.sleep(LOOK_S)


def _is_stopped(node_id: int, bootstrap: str, properties: list[str] | None, *, wait: bool) -> bool:
    """Tell whether the controller hears nothing of a broker any more."""
    from barnabas.cli.inspection import describe_cluster, known_broker, open_wire

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
    from barnabas.cli.inspection import open_wire
    from barnabas.protocol.messages.unregister_broker import (
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
    )
    from barnabas.wire.cluster import settled

    with open_wire(bootstrap, properties) as wire:

        def ask() -> tuple[int, None]:
            request = UnregisterBrokerRequest(broker_id=node_id)
            return wire.ask_any(request, UnregisterBrokerResponse).error_code, None

        settled(ask, f"Broker {node_id} stays on the list")


def _forget(data: Path, node_id: int) -> None:
    from barnabas.cli.local_cluster import load

    cluster = load(data)
    if cluster is not None:
        cluster.without(node_id).save()
