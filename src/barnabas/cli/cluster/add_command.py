"""`barnabas cluster add`: run another broker of a local cluster in the foreground."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.cluster.ensemble import Ensemble
from barnabas.cli.cluster.local_cluster import LocalBroker, LocalCluster, joining, load
from barnabas.cli.cluster.up_command import DEFAULT_FOLDER, PATIENCE, Config, Data, Patience
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import error_console, say
from barnabas.wire.wire_failures import LinkError

HELP = """Start another broker for a cluster of `barnabas cluster up`, until Ctrl-C.

It joins empty. New topics use it; `barnabas partition balance` moves existing partitions to it. The
next `barnabas cluster up` with the directory starts it with the others. To add a broker on another
computer, run `barnabas serve --roles broker` with a new node id and the same voters.
"""
EPILOG = "Example: barnabas cluster add --id 4 --data ./cluster"


def add(
    node_id: Annotated[
        int | None, typer.Option("--id", min=0, help="Its node id; default: the next one.")
    ] = None,
    data: Data = DEFAULT_FOLDER,
    voter: Annotated[
        bool, typer.Option("--voter", help="Make it a voter once it has caught up.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="The port for clients; default: a free one."),
    ] = None,
    config: Config = None,
    timeout: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """Start another broker for a local cluster."""
    patience_s = parse_duration_ms(timeout, "--timeout") / 1000
    before = load_cluster(data)
    broker = joining(before, node_id, port)
    cluster = before.with_broker(broker)
    if cluster.is_secure:
        with needs_extra("cert"):
            from barnabas.cli.cluster.secure_cluster import secure
        secure(cluster, config)
    ensemble = Ensemble(cluster, [broker])
    with ensemble.running():
        ensemble.start(config)
        if _has_joined(ensemble, before, broker, patience_s):
            cluster.save()
            if voter:
                cluster = _with_vote(ensemble, cluster, broker, patience_s)
            _show(cluster, ensemble, as_json=as_json)
            ensemble.watch()
            warn("Stopping ...")
    sys.exit(1 if ensemble.failed else 0)


def load_cluster(data: Path) -> LocalCluster:
    """Return the cluster of a directory, or raise if there is none."""
    found = load(data)
    if found is None:
        raise CommandError(
            f"{data} has no cluster; pass the directory of `barnabas cluster up` with --data"
        )
    return found


def _has_joined(
    ensemble: Ensemble, cluster: LocalCluster, broker: LocalBroker, patience_s: float
) -> bool:
    from barnabas.admin.cluster_overview import UP
    from barnabas.admin.inspection import look

    def is_up() -> bool:
        try:
            found = look(cluster.bootstrap, cluster.properties)
        except LinkError:
            return False
        return any(each.id == broker.node_id and each.state == UP for each in found.brokers)

    with error_console().status(f"Broker {broker.node_id} is joining"):
        joined = ensemble.wait_until(is_up, patience_s)
    if not joined and not ensemble.is_told_to_stop:
        raise CommandError(
            f"Broker {broker.node_id} has not joined after {patience_s:.0f} s; is the cluster of "
            f"{cluster.folder} running? Look into {cluster.log(broker.node_id)}"
        )
    return joined


def _with_vote(
    ensemble: Ensemble, cluster: LocalCluster, broker: LocalBroker, patience_s: float
) -> LocalCluster:
    from barnabas.admin.inspection import open_wire
    from barnabas.admin.voter_changes import add_voter, observer

    def follows() -> bool:
        with open_wire(cluster.bootstrap, cluster.properties) as wire:
            return observer(wire, broker.node_id) is not None

    ensemble.wait_until(follows, patience_s)
    with open_wire(cluster.bootstrap, cluster.properties) as wire:
        add_voter(wire, broker.node_id, broker.peer_listen)
    cluster = cluster.with_voter(broker.node_id)
    cluster.save()
    return cluster


def _show(cluster: LocalCluster, ensemble: Ensemble, *, as_json: bool) -> None:
    (process,) = ensemble.processes
    broker = process.broker
    votes = broker.node_id in cluster.voters
    if as_json:
        values = {"node_id": broker.node_id, "listen": broker.listen, "pid": process.pid}
        say(json.dumps({**values, "voter": votes}))
    else:
        role = "broker and voter" if votes else "broker"
        say(f"Broker {broker.node_id} has joined as {role}, and listens on {broker.listen}")
        say(f"  barnabas partition balance --bootstrap {broker.listen}")
        say("Ctrl-C stops it.")
    sys.stdout.flush()
