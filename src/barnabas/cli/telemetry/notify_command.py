"""`barnabas telemetry notify`: forward alerts to webhooks and Alertmanager."""

import hashlib
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import require_listener, settings
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, say
from barnabas.telemetry.samples.telemetry_topics import ALERTS, SILENCES

if TYPE_CHECKING:
    from barnabas.telemetry.notify.endpoints import Endpoint
    from barnabas.telemetry.notify.forwarder import Forwarder

HELP = """Send alerts from topic gpu-alerts to a webhook and to Alertmanager, until Ctrl-C.

Each endpoint has its own consumer group: an unreachable endpoint does not delay others, and a
restart continues at the last offset. An alert may be sent twice; a lost alert is always logged.
Silenced alerts (`barnabas telemetry silence`) are not sent.
"""
EPILOG = (
    "Examples: barnabas telemetry notify --alertmanager http://alertmanager:9093 ; "
    "barnabas telemetry notify --webhook https://example.org/hook --secret-file secret"
)
COUNTS = ("delivered", "resent", "silenced", "given_up", "unreadable", "removed")


def notify(  # noqa: PLR0913 - one parameter an option
    *,
    webhook: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="POST alerts here; may be repeated.")
    ] = None,
    alertmanager: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="As http://HOST:9093; may be repeated."),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Sign webhooks with the secret in this file."),
    ] = None,
    generator_url: Annotated[
        str, typer.Option(metavar="URL", help="The link of alerts in Alertmanager.")
    ] = "",
    resend: Annotated[
        str, typer.Option(help="How often to resend firing alerts to Alertmanager.")
    ] = "60s",
    timeout: Annotated[str, typer.Option(help="Timeout of a request.")] = "10s",
    give_up_after: Annotated[
        str, typer.Option(help="How long to retry alerts before they are dropped.")
    ] = "1h",
    once: Annotated[
        bool, typer.Option("--once", help="Forward existing alerts, then exit.")
    ] = False,
    group: Annotated[str, typer.Option(help="Prefix of the consumer groups.")] = "barnabas-notify",
    topic: Annotated[str, typer.Option(help="The topic of alerts.")] = ALERTS,
    silences: Annotated[str, typer.Option(help="The topic of silences.")] = SILENCES,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Send alerts to a webhook and to Alertmanager."""
    from barnabas.telemetry.notify.forwarder import Forwarder, ForwarderSettings
    from barnabas.telemetry.notify.outbox import Outbox, Patience

    resend_s = parse_duration_ms(resend, "--resend") / 1000
    endpoints = _endpoints(webhook or [], alertmanager or [], resend_s, generator_url)
    if secret_file is not None and not secret_file.is_file():
        raise CommandError(f"There is no file {secret_file}; pass a file with the secret")
    patience = Patience(give_up_after_s=parse_duration_ms(give_up_after, "--give-up-after") / 1000)
    require_listener(bootstrap)
    forwarders = [
        Forwarder(
            ForwarderSettings(
                client=settings(bootstrap, properties),
                group=group_of(group, each),
                topic=topic,
                silences=silences,
                timeout_s=parse_duration_ms(timeout, "--timeout") / 1000,
                secret_file=secret_file,
                once=once,
            ),
            Outbox(each, patience),
        )
        for each in endpoints
    ]
    run_all([each.run for each in forwarders])
    _conclude(endpoints, forwarders, as_json=as_json)


def group_of(prefix: str, endpoint: "Endpoint") -> str:
    """Return the consumer group of an endpoint: another address is another group."""
    digest = hashlib.sha256(endpoint.url.encode()).hexdigest()[:8]
    return f"{prefix}-{endpoint.kind}-{digest}"


def run_all(runs: list[Callable[[threading.Event], None]]) -> None:
    """Run each in a thread until all end, a signal arrives, or one fails; raise its error."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(run: Callable[[threading.Event], None]) -> None:
        try:
            run(stop)
        except BaseException as error:  # noqa: BLE001 - raised after all have ended
            failures.append(error)
            stop.set()

    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    threads = [threading.Thread(target=guarded, args=[run], daemon=True) for run in runs]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures:
        raise failures[0]


def _endpoints(
    webhooks: list[str], alertmanagers: list[str], resend_s: float, generator_url: str
) -> "list[Endpoint]":
    from barnabas.telemetry.notify.endpoints import (
        Alertmanager,
        Endpoint,
        EndpointError,
        Webhook,
        checked_url,
    )

    if not webhooks and not alertmanagers:
        raise CommandError("Pass --webhook URL, --alertmanager URL, or both")
    if resend_s <= 0:
        raise CommandError("--resend must be longer than 0s")
    try:
        found: list[Endpoint] = [Webhook(checked_url(each, "--webhook")) for each in webhooks]
        found += [
            Alertmanager(checked_url(each, "--alertmanager"), resend_s, generator_url)
            for each in alertmanagers
        ]
    except EndpointError as error:
        raise CommandError(str(error)) from error
    return found


def _conclude(endpoints: "list[Endpoint]", forwarders: "list[Forwarder]", *, as_json: bool) -> None:
    rows = [
        {"endpoint": endpoint.kind, "url": endpoint.url}
        | {name: forwarder.counts[name] for name in COUNTS}
        for endpoint, forwarder in zip(endpoints, forwarders, strict=True)
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        told = ", ".join(f"{row[name]} {name.replace('_', ' ')}" for name in COUNTS if row[name])
        say(f"{row['endpoint']} {row['url']}: {told or 'nothing to send'}")


def register(app: typer.Typer) -> None:
    """Add the command to `barnabas telemetry`."""
    app.command("notify", help=HELP, epilog=EPILOG)(notify)
