"""`barnabas exporter`: metrics of a whole cluster and its groups, for Prometheus."""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Properties
from barnabas.cli.common.output import say
from barnabas.monitor.stream_progress import TOPIC as STREAMS

if TYPE_CHECKING:
    from barnabas.monitor.watcher import Watcher

HELP = """Serve metrics of a cluster and its groups to Prometheus.

One exporter is for a whole cluster, of Barnabas or Apache Kafka. It asks the brokers every 10 s \
and serves the last values at /metrics, with the names of kafka_exporter and kafka-lag-exporter: \
offsets, lag in records and in seconds, the status of groups, when they catch up, and when \
retention deletes what they have not read.
"""
EPILOG = (
    "Examples: barnabas exporter --bootstrap broker:9092 --listen 0.0.0.0:9308 ; "
    "barnabas exporter --files ./observability"
)


def exporter(  # noqa: PLR0913 - one parameter an option
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address for Prometheus.")
    ] = "127.0.0.1:9308",
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="How often to ask the brokers.")
    ] = "10s",
    cluster_name: Annotated[
        str,
        typer.Option(metavar="NAME", help="The label cluster_name; default: the cluster's id."),
    ] = "",
    probe_topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Measure end-to-end latency with a record a second through this topic, which is "
            "created if it does not exist.",
        ),
    ] = None,
    streams_topic: Annotated[
        str,
        typer.Option(
            metavar="TOPIC", help="The topic to which streaming queries report their progress."
        ),
    ] = STREAMS,
    files: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="DIR",
            help="Only write alert rules, a configuration of Prometheus and dashboards of Grafana.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print where it listens as JSON, for scripts.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    if files is not None:
        ship(files, as_json=as_json)
        return
    from barnabas.admin.connecting import settings

    interval_s = parse_duration_ms(interval, "--interval") / 1000
    if interval_s < 1:
        raise CommandError(f"--interval {interval} is too short; write 1s or more")
    given = settings(bootstrap, properties)
    topics = (streams_topic, probe_topic)
    _serve_metrics(given, listen, interval_s, topics, cluster_name, as_json=as_json)


def _serve_metrics(
    given: dict[str, object],
    listen: str,
    interval_s: float,
    topics: tuple[str, str | None],
    cluster_name: str,
    *,
    as_json: bool,
) -> None:
    """Ask the brokers and serve the last values; `topics` are those of streams and of the probe."""
    from barnabas.exporter.client_series import ClientMetricsSeries
    from barnabas.exporter.exporter_http import ExporterServer
    from barnabas.exporter.exporter_page import ExporterPage
    from barnabas.exporter.probing import Probe
    from barnabas.exporter.stream_series import StreamSeries
    from barnabas.monitor.watcher import Watcher, WatchSettings

    streams_topic, probe_topic = topics
    watcher = Watcher(
        WatchSettings(properties=given, interval_s=interval_s, client_id="barnabas-exporter")
    )
    probe = None if probe_topic is None else Probe(given, probe_topic, watcher)
    followed = (StreamSeries(given, streams_topic, watcher), ClientMetricsSeries(given, watcher))

    def more() -> str:
        return "".join(each.text() for each in followed) + (
            "" if probe is None else probe.latencies.text()
        )

    page = ExporterPage(watcher, cluster_name, more)
    host, port = listen_address(listen)
    try:
        server = ExporterServer(host, port, page)
    except OSError as error:
        raise CommandError(
            f"--listen {listen}: {error.strerror or error}; choose another address"
        ) from error
    with until_signal() as stopped, watcher:
        server.start()
        for each in followed:
            each.start()
        if probe is not None:
            probe.start()
        announce(f"{server.url}/metrics", as_json=as_json)
        _serve(watcher, stopped, interval_s)
        server.stop()
        for each in followed:
            each.stop()
        if probe is not None:
            probe.stop()


def _serve(watcher: "Watcher", stopped: threading.Event, interval_s: float) -> None:
    """Wait for a signal; say on stderr when brokers stop and begin to answer."""
    said: str | None = None
    while not stopped.wait(min(1.0, interval_s)):
        failure = watcher.failure
        if failure != said:
            warn(failure if failure is not None else "Brokers answer again.")
            said = failure


def ship(folder: Path, *, as_json: bool) -> None:
    """Write the files for Prometheus and Grafana."""
    from barnabas.exporter.shipped_files import FilesDifferError, write_files

    try:
        places = write_files(folder)
    except FilesDifferError as error:
        raise CommandError(
            f"{error} would be replaced and nothing was written; pass another --files DIR"
        ) from error
    except OSError as error:
        raise CommandError(f"--files {folder}: {error.strerror or error}") from error
    if as_json:
        say(json.dumps({"files": [str(each) for each in places]}))
        return
    for each in places:
        say(str(each))


def announce(url: str, *, as_json: bool) -> None:
    """Say where the exporter listens."""
    say(json.dumps({"metrics": url}) if as_json else f"Metrics at {url}")
    sys.stdout.flush()


def listen_address(text: str) -> tuple[str, int]:
    """Parse HOST:PORT; port 0 takes a free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise CommandError(f"--listen {text} is not HOST:PORT; write 127.0.0.1:9308")
    return host.strip("[]"), int(port)


@contextmanager
def until_signal() -> Iterator[threading.Event]:
    """Return an event that SIGTERM and Ctrl-C set."""
    stopped = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in numbers}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
