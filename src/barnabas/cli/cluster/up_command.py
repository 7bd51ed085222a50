"""`barnabas cluster up`: run a cluster on this computer in the foreground."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.cluster.ensemble import Ensemble
from barnabas.cli.cluster.local_cluster import HOST, LocalCluster, is_free, load, new_cluster
from barnabas.cli.common.child_console import ChildConsole, require_extra
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import error_console, print_table, say

DEFAULT_FOLDER = Path("barnabas-cluster")
DEFAULT_BROKERS = 3
REPLICATION_FACTOR_MAX = 3
PATIENCE = "60s"
CONSOLE_PORT = 8080
CONSOLE_PATIENCE_S = 30.0

HELP = """Start a cluster on this computer, and run it until Ctrl-C.

Each broker is a `barnabas serve` process. A second start on the same directory continues with the
same cluster, on the same ports. If a broker dies, the last lines of its log are shown, the others
continue, and the exit code is 1.

With --secure clients connect with TLS and a password, brokers verify each other, and ACLs say who
may do what. The user `admin` may do everything. Passwords and certificates are in DIR/security.
"""
EPILOG = "Example: barnabas cluster up --brokers 3 --data ./cluster"
SECURE_CLIENTS = """
Clients connect with TLS and SCRAM-SHA-512, as the user admin:
  export BARNABAS_CLIENT_CONFIG={client}     # for all commands of barnabas
  kcat -F {client} -b {bootstrap} -L
  kafka-topics.sh --bootstrap-server {bootstrap} --command-config {java} --list
confluent-kafka and Spark take the same properties:
  lines = pathlib.Path("{client}").read_text().splitlines()
  properties = dict(line.split("=", 1) for line in lines)
  Producer({{"bootstrap.servers": "{bootstrap}", **properties}})
  spark.read.format("barnabas").options(**{{f"kafka.{{k}}": v for k, v in properties.items()}})
Create users with `barnabas user create NAME`; give them rights with `barnabas acl add`."""

Data = Annotated[Path, typer.Option(metavar="DIR", help="The directory of the whole cluster.")]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Settings file in YAML, for every broker.")
]
Patience = Annotated[
    str, typer.Option("--timeout", metavar="DURATION", help="How long to wait until it is healthy.")
]


def up(  # noqa: PLR0913, PLR0917 - one parameter an option
    brokers: Annotated[
        int | None, typer.Option(min=1, max=99, help="Number of brokers; default: 3.")
    ] = None,
    data: Data = DEFAULT_FOLDER,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_436, help="The first of consecutive ports for clients."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            min=1, help="Replication factor of new topics; default: 3, or the number of brokers."
        ),
    ] = None,
    min_isr: Annotated[
        int | None,
        typer.Option(min=1, help="Min ISR; default: 2 from three brokers on."),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="With TLS, passwords and ACLs; needs barnabas[cert].")
    ] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Serve the web console too; needs barnabas[console].")
    ] = False,
    config: Config = None,
    timeout: Patience = PATIENCE,
    as_json: Json = False,
) -> None:
    """Start a local cluster."""
    patience_s = parse_duration_ms(timeout, "--timeout") / 1000
    if console:
        require_extra()
    is_new = load(data) is None
    cluster = _remembered_or_new(data, brokers, port)
    cluster = _with_replication(cluster, replication_factor, min_isr, config)
    cluster = _with_security(cluster, config, wanted=secure, is_new=is_new)
    cluster.save()
    ensemble = Ensemble(cluster, cluster.brokers)
    with ensemble.running():
        ensemble.start(config)
        if wait_until_healthy(ensemble, cluster, patience_s):
            with _console(cluster, wanted=console) as page:
                _show(cluster, ensemble, page, as_json=as_json)
                ensemble.watch()
            warn("Stopping ...")
    sys.exit(1 if ensemble.failed else 0)


def wait_until_healthy(ensemble: Ensemble, cluster: LocalCluster, patience_s: float) -> bool:
    """Wait until all brokers are up and the cluster is healthy; return False when stopped."""
    from barnabas.admin.cluster_overview import UP
    from barnabas.admin.health import verdict
    from barnabas.admin.inspection import look
    from barnabas.wire.wire_failures import LinkError

    reasons: list[str] = []
    with error_console().status(f"Starting {plural(len(cluster.brokers), 'broker')}") as display:

        def is_healthy() -> bool:
            try:
                found = look(cluster.bootstrap, cluster.properties)
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
        why = "; ".join(reasons) or "not all brokers have started"
        raise CommandError(
            f"The cluster is not healthy after {patience_s:.0f} s: {why}. "
            f"Look into {cluster.folder}/*.log, or wait longer with --timeout"
        )
    return is_ready


@contextmanager
def _console(cluster: LocalCluster, *, wanted: bool) -> Iterator[str | None]:
    """Run the console as a child process; yield its URL, None without a console."""
    if not wanted:
        yield None
        return
    login = ["--config", str(cluster.client_file)] if cluster.is_secure else []
    port = CONSOLE_PORT if is_free(CONSOLE_PORT) else 0
    urls: list[str] = []
    more = ["--name", cluster.folder.name, *login]
    child = ChildConsole(
        cluster.bootstrap,
        f"{HOST}:{port}",
        more,
        on_ready=urls.append,
        on_end=lambda code: warn(
            f"The web console ended with exit code {code}; the brokers continue"
        ),
    )
    try:
        child.wait_ready(CONSOLE_PATIENCE_S)
        yield urls[0] if urls else None
    finally:
        child.stop()


def _remembered_or_new(data: Path, count: int | None, port: int | None) -> LocalCluster:
    found = load(data)
    if found is None:
        return new_cluster(data, count or DEFAULT_BROKERS, port)
    if count is not None and count != len(found.brokers):
        raise CommandError(
            f"{data} has a cluster of {plural(len(found.brokers), 'broker')}; omit "
            "--brokers, or use `barnabas cluster add` and `barnabas cluster remove`"
        )
    if port is not None and not found.brokers[0].listen.endswith(f":{port}"):
        raise CommandError(f"{data} has a cluster that listens on {found.bootstrap}; omit --port")
    return found


def _with_security(
    cluster: LocalCluster, config: Path | None, *, wanted: bool, is_new: bool
) -> LocalCluster:
    """Prepare the security of a cluster that has some: it is chosen at the first start."""
    if wanted and not cluster.is_secure and not is_new:
        raise CommandError(
            f"{cluster.folder} has a cluster without security; omit --secure, or start another "
            "one with --data"
        )
    if not wanted and not cluster.is_secure:
        return cluster
    with needs_extra("cert"):
        from barnabas.cli.cluster.secure_cluster import secure
    secure(cluster, config)
    return replace(cluster, is_secure=True)


def _with_replication(
    cluster: LocalCluster,
    replication_factor: int | None,
    min_in_sync: int | None,
    config: Path | None,
) -> LocalCluster:
    """Choose replication factor and min ISR if options, file and environment do not set them."""
    count = len(cluster.brokers)
    if replication_factor is not None and replication_factor > count:
        raise CommandError(
            f"--replication-factor {replication_factor} needs as many brokers; there are {count}"
        )
    replication_factor = replication_factor or cluster.replication_factor
    min_in_sync = min_in_sync or cluster.min_in_sync
    if replication_factor is None and not _is_said_elsewhere(config, "DEFAULT_REPLICATION_FACTOR"):
        replication_factor = min(REPLICATION_FACTOR_MAX, count)
    if min_in_sync is None and not _is_said_elsewhere(config, "MIN_INSYNC_REPLICAS"):
        min_in_sync = 2 if count >= REPLICATION_FACTOR_MAX else 1
    return replace(cluster, replication_factor=replication_factor, min_in_sync=min_in_sync)


def _is_said_elsewhere(config: Path | None, name: str) -> bool:
    return config is not None or f"BARNABAS_REPLICATION_{name}" in os.environ


def _show(cluster: LocalCluster, ensemble: Ensemble, page: str | None, *, as_json: bool) -> None:
    if as_json:
        brokers = [
            {"node_id": each.broker.node_id, "listen": each.broker.listen, "pid": each.pid}
            for each in ensemble.processes
        ]
        line: dict[str, object] = {"bootstrap": cluster.bootstrap, "brokers": brokers}
        if cluster.is_secure:
            from barnabas.cli.cluster.secure_cluster import client_properties

            line["client"] = client_properties(cluster)
        if page is not None:
            line["console"] = page
        say(json.dumps(line))
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
    login = f" --config {cluster.client_file}" if cluster.is_secure else ""
    say(f"  barnabas cluster status --watch --bootstrap {cluster.brokers[0].listen}{login}")
    if page is not None:
        say(f"The web console is at {page}")
    if cluster.is_secure:
        say(
            SECURE_CLIENTS.format(
                first=cluster.brokers[0].listen,
                bootstrap=cluster.bootstrap,
                client=cluster.client_file,
                java=cluster.java_file,
            )
        )
    say("Ctrl-C stops all brokers.")
    sys.stdout.flush()
