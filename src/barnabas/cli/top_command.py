"""`barnabas top`: a live view of a cluster in the terminal."""

import sys
from typing import Annotated

import typer

from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json

HELP = """Show a live view of a cluster: health, throughput, groups by lag, hottest topics.

Enter opens a group, a topic or a broker, Esc goes back, ? shows all keys.
"""
EPILOG = "Example: barnabas top --bootstrap broker:9092 --metrics 1=broker:9600"
INTERVAL_LEAST_S = 0.5


def top(
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="How often to ask the brokers.")
    ] = "2s",
    metrics: Annotated[
        str,
        typer.Option(
            metavar="[ID=]HOST:PORT,...",
            help="Where brokers serve /metrics (serve --http): bytes, latencies, load.",
        ),
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show until q or Ctrl-C."""
    from rich.console import Console

    from barnabas.admin.connecting import settings
    from barnabas.monitor.state_json import state_document
    from barnabas.monitor.watcher import Watcher, WatchSettings
    from barnabas.top import top_loop

    interval_s = parse_duration_ms(interval, "--interval") / 1000
    if interval_s < INTERVAL_LEAST_S:
        raise CommandError(f"--interval {interval} is too short; write 500ms or more")
    watcher = Watcher(
        WatchSettings(
            properties=settings(bootstrap, properties),
            interval_s=interval_s,
            metrics=[each for each in metrics.split(",") if each],
            client_id="barnabas-top",
        )
    )
    with watcher:
        if as_json:
            print_json(state_document(watcher.wait(top_loop.patience_s(watcher), after=1)))
        elif once or not sys.stdout.isatty():
            top_loop.once(watcher, Console(markup=False, highlight=False, width=None))
        else:
            top_loop.show(watcher, Console(markup=False, highlight=False))
