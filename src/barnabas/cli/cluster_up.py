"""`barnabas cluster up`: a cluster on this computer, in the foreground until Ctrl-C."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.connection import Json
from barnabas.cli.durations import parse_duration_ms
from barnabas.cli.ensemble import Ensemble
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.local_cluster import LocalCluster, load, new_cluster
from barnabas.cli.output import error_console, plural, print_table, say

DEFAULT_FOLDER = Path("barnabas-cluster")
DEFAULT_BROKERS = 3
COPIES_MAX = 3
PATIENCE = "60s"

HELP = """Start a cluster on this computer, and run it until Ctrl-C.

Each broker is a `barnabas serve` of its own. A second start on the same folder goes on with the
same cluster, on the same ports. A broker that dies is reported with its last words; the others go
on, and the exit code is 1 in the end.
"""
EPILOG = "Example: barnabas cluster up --brokers 3 --data ./cluster"

Data = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the whole cluster.")]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Settings in YAML, for every broker.")
]
Patience = Annotated[
    str, typer.Option("--timeout", metavar="DURATION", help="How long to wait until it is healthy.")
]


def up(
    brokers: Annotated[
        int | None, typer.Option(min=1, max=99, help="How many; 3 if nothing is said.")
    ] = None,
    data: Data = DEFAULT_FOLDER,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_436, help="Clients' ports are this and those after it."),
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="Copies of a new topic; 3, or as many as brokers.")
    ] = None,
    min_isr: Annotated[
        int | None,
        typer.Option(min=1, help="Copies in sync that a write needs; 2 from three brokers on."),
    ] = None,
    config: Config = None,
    timeout: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """Start a local cluster."""
    patience_s = parse_duration_ms(timeout, "--timeout") / 1000
    cluster = _remembered_or_new(data, brokers, port)
    cluster = _with_copies(cluster, replication_factor, min_isr, config)
    cluster.save()
    ensemble = Ensemble(cluster, cluster.brokers)
    with ensemble.running():
        ensemble.start(config)
        if wait_until_healthy(ensemble, cluster, patience_s):
            _show(cluster, ensemble, as_json=as_json)
            ensemble.watch()
            warn("Stopping ...")
    sys.exit(1 if ensemble.failed else 0)


def wait_until_healthy(ensemble: Ensemble, cluster: LocalCluster, patience_s: float) -> bool:
    """Wait until every broker is up and all is well; return False where told to stop before."""
    from barnabas.cli.health import verdict
    from barnabas.cli.inspection import look
    from barnabas.cli.overview import UP
    from barnabas.wire.failures import LinkError

    reasons: list[str] = []
    with error_console().status(f"Starting {plural(len(cluster.brokers), 'broker')}") as display:

        def is_healthy() -> bool:
            try:
                found = look(cluster.bootstrap, None)
            except LinkError as error:
                reasons[:] = [str(error)]
                return False
            ready = [each for each in found.brokers if each.state == UP]
            health = verdict(found)
            reasons[:] = health.reasons
            display.update(f"{len(ready)} of {plural(len(cluster.brokers), 'broker')} up")
            return len(ready) >= len(cluster.brokers) and not health.reasons

        is_ready = ensemble.wait_until(is_healthy, patience_s)
    if not is_ready and not ensemble.is_told_to_stop:
        why = "; ".join(reasons) or "not all brokers have come up"
        raise CommandError(
            f"The cluster is not healthy after {patience_s:.0f} s: {why}. "
            f"Look into {cluster.folder}/*.log, or wait longer with --timeout"
        )
    return is_ready


def _remembered_or_new(data: Path, count: int | None, port: int | None) -> LocalCluster:
    found = load(data)
    if found is None:
        return new_cluster(data, count or DEFAULT_BROKERS, port)
    if count is not None and count != len(found.brokers):
        raise CommandError(
            f"{data} holds a cluster of {plural(len(found.brokers), 'broker')}; leave out "
            "--brokers, or use `barnabas cluster add` and `barnabas cluster remove`"
        )
    if port is not None and not found.brokers[0].listen.endswith(f":{port}"):
        raise CommandError(
            f"{data} holds a cluster that listens on {found.bootstrap}; leave out --port"
        )
    return found


def _with_copies(
    cluster: LocalCluster, copies: int | None, min_in_sync: int | None, config: Path | None
) -> LocalCluster:
    """Fill in how many copies, where neither options, file nor environment say."""
    count = len(cluster.brokers)
    if copies is not None and copies > count:
        raise CommandError(
            f"--replication-factor {copies} needs as many brokers; there are {count}"
        )
    copies = copies or cluster.replication_factor
    min_in_sync = min_in_sync or cluster.min_in_sync
    if copies is None and not _is_said_elsewhere(config, "DEFAULT_REPLICATION_FACTOR"):
        copies = min(COPIES_MAX, count)
    if min_in_sync is None and not _is_said_elsewhere(config, "MIN_INSYNC_REPLICAS"):
        min_in_sync = 2 if count >= COPIES_MAX else 1
    return replace(cluster, replication_factor=copies, min_in_sync=min_in_sync)


def _is_said_elsewhere(config: Path | None, name: str) -> bool:
    return config is not None or f"BARNABAS_REPLICATION_{name}" in os.environ


def _show(cluster: LocalCluster, ensemble: Ensemble, *, as_json: bool) -> None:
    if as_json:
        brokers = [
            {"node_id": each.broker.node_id, "listen": each.broker.listen, "pid": each.pid}
            for each in ensemble.processes
        ]
        say(json.dumps({"bootstrap": cluster.bootstrap, "brokers": brokers}))
        sys.stdout.flush()
        return
    rows = [
        (
            each.broker.node_id,
            each.broker.listen,
            each.broker.peer_listen,
            "broker, voter" if each.broker.node_id in cluster.voters else "broker",
            each.pid,
            cluster.data(each.broker.node_id),
            each.log,
        )
        for each in ensemble.processes
    ]
    print_table(("BROKER", "CLIENTS", "PEERS", "ROLE", "PID", "DATA", "LOG"), rows)
    say(f"\nReady. Bootstrap servers: {cluster.bootstrap}")
    say(f"  barnabas cluster status --watch --bootstrap {cluster.brokers[0].listen}")
    say("Ctrl-C stops all brokers.")
    sys.stdout.flush()
