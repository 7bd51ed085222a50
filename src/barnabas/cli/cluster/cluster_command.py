"""`barnabas cluster`: start a local cluster, show the state of any cluster, change its brokers."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.cluster import add_command as cluster_add
from barnabas.cli.cluster import remove_command as cluster_remove
from barnabas.cli.cluster import up_command as cluster_up
from barnabas.cli.cluster import upgrade_command as cluster_upgrade
from barnabas.cli.cluster import vote_commands as cluster_vote
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import console, print_json
from barnabas.wire.wire_failures import LinkError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from barnabas.admin.health import Health

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Watch = Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")]
Interval = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="Refresh interval, with --watch.")
]

app.command("up", help=cluster_up.HELP, epilog=cluster_up.EPILOG)(cluster_up.up)


@app.command(epilog="Example: barnabas cluster status --watch --bootstrap 127.0.0.1:9092")
def status(
    watching: Watch = False,
    interval: Interval = 2.0,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show brokers, the metadata quorum, and the state of partitions."""
    from barnabas.admin.health import verdict
    from barnabas.admin.inspection import look
    from barnabas.cli.cluster.status_view import draw_health, draw_status
    from barnabas.cli.common.watch import every, watch

    def draw() -> "RenderableType":
        try:
            return draw_status(look(bootstrap, properties))
        except LinkError as error:  # continue: the cluster may come back
            return draw_health(_unavailable(error))

    def show_json() -> None:
        found = look(bootstrap, properties)
        print_json({**found.as_json(), "health": verdict(found).as_json()})

    if watching and as_json:
        every(interval, show_json)
    elif watching:
        watch(draw, interval)
    elif as_json:
        show_json()
    else:
        console().print(draw_status(look(bootstrap, properties)))


@app.command(epilog="Example: barnabas cluster health --watch --exit-when-healthy --timeout 1m")
def health(
    watching: Watch = False,
    exit_when_healthy: Annotated[
        bool, typer.Option("--exit-when-healthy", help="Wait until it is healthy, then exit.")
    ] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Wait at most this long: 30s, 2m.")
    ] = None,
    interval: Interval = 1.0,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Check the health of a cluster: exit code 0 healthy, 1 degraded, 2 unavailable."""
    limit_s = float("inf") if timeout is None else parse_duration_ms(timeout, "--timeout") / 1000
    deadline_s = time.monotonic() + limit_s
    said: Health | None = None
    while True:
        found = _health(bootstrap, properties)
        goes_on = found.verdict.exit_code != 0 if exit_when_healthy else watching
        goes_on = goes_on and time.monotonic() + interval < deadline_s
        if found != said and (watching or not goes_on):
            _show_health(found, as_json=as_json)
            said = found
        if not goes_on:
            sys.exit(found.verdict.exit_code)
        time.sleep(interval)


def _health(bootstrap: str, properties: list[str] | None) -> "Health":
    from barnabas.admin.health import verdict
    from barnabas.admin.inspection import look

    try:
        return verdict(look(bootstrap, properties))
    except LinkError as error:
        return _unavailable(error)


def _unavailable(error: LinkError) -> "Health":
    from barnabas.admin.health import Health, Verdict

    return Health(verdict=Verdict.UNAVAILABLE, reasons=[str(error)])


def _show_health(found: "Health", *, as_json: bool) -> None:
    from barnabas.cli.cluster.status_view import draw_health

    if as_json:
        print_json(found.as_json())
    else:
        console().print(draw_health(found))
    sys.stdout.flush()


app.command("add", help=cluster_add.HELP, epilog=cluster_add.EPILOG)(cluster_add.add)
app.command("remove", help=cluster_remove.HELP, epilog=cluster_remove.EPILOG)(cluster_remove.remove)
app.command("promote", help=cluster_vote.PROMOTE_HELP, epilog=cluster_vote.PROMOTE_EPILOG)(
    cluster_vote.promote
)
app.command("demote", help=cluster_vote.DEMOTE_HELP, epilog=cluster_vote.DEMOTE_EPILOG)(
    cluster_vote.demote
)
app.command("upgrade", help=cluster_upgrade.HELP, epilog=cluster_upgrade.EPILOG)(
    cluster_upgrade.upgrade
)
