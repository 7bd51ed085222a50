"""`barnabas console`: serve the web console, and write passwords of its users."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from barnabas.cli.common.client_config import merge_file
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import say
from barnabas.cli.console import console_options, password_command

if TYPE_CHECKING:
    from barnabas.console.console_settings import ConsoleSettings, LoginMethod, OidcSettings

GROUP_HELP = """Serve the web console until Ctrl-C.

The page shows brokers, topics, groups and their lag, searches and tails records, and makes changes
after a dry run. It reaches any Kafka cluster, as a client does.

On this computer alone (the default) no login is needed, and changes are allowed. On an address that
other computers reach it is read-only, and a login must be chosen. Every change is one line in the
audit log.
"""
GROUP_EPILOG = (
    "Example: barnabas console --bootstrap 127.0.0.1:9092 ; "
    "barnabas console --listen 0.0.0.0:8080 --login password --passwords users --read-write "
    "--public-url https://tools.example/kafka"
)

app = typer.Typer(pretty_exceptions_enable=False)
app.command("password", help=password_command.HELP, epilog=password_command.EPILOG)(
    password_command.password
)


@app.callback(invoke_without_command=True, help=GROUP_HELP, epilog=GROUP_EPILOG)
def console(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    listen: console_options.Listen = console_options.DEFAULT_LISTEN,
    client_config: console_options.ClientConfig = None,
    name: console_options.Name = "",
    metrics: console_options.Metrics = "",
    interval: console_options.Interval = "10s",
    login: console_options.Login = None,
    passwords: console_options.Passwords = None,
    oidc_issuer: console_options.OidcIssuer = None,
    oidc_client_id: console_options.OidcClientId = None,
    oidc_client_secret_file: console_options.OidcClientSecretFile = None,
    oidc_claim: console_options.OidcClaim = "preferred_username",
    read_write: console_options.ReadWrite = None,
    base_path: console_options.BasePath = "",
    public_url: console_options.PublicUrl = None,
    lake: console_options.Lake = None,
    streams_topic: console_options.StreamsTopic = None,
    alertmanager: console_options.Alertmanager = None,
    audit: console_options.Audit = None,
    with_parent: console_options.WithParent = False,
    as_json: Json = False,
    properties: Properties = None,
) -> None:
    """Serve the web console."""
    if context.invoked_subcommand is not None:
        return
    values: dict[str, Any] = {"bootstrap": bootstrap, "properties": properties}
    if client_config is not None:
        merge_file(client_config, values, context)
    with needs_extra("console"):
        from barnabas.console.console_server import die_with_parent
        from barnabas.console.console_settings import (
            ConsoleSettings,
            clean_base_path,
            is_loopback,
            public_parts,
        )
        from barnabas.monitor.stream_progress import TOPIC
    host, port = _address(listen)
    path = base_path or ("" if public_url is None else public_parts(public_url)[1])
    settings = ConsoleSettings(
        bootstrap=values["bootstrap"],
        properties=tuple(values["properties"] or ()),
        host=host,
        port=port,
        name=name,
        login=_method(login, is_local=is_loopback(host)),
        passwords=passwords,
        oidc=_oidc(oidc_issuer, oidc_client_id, oidc_client_secret_file, oidc_claim),
        read_only=not is_loopback(host) if read_write is None else not read_write,
        base_path=clean_base_path(path),
        public_url=public_url,
        metrics=tuple(each.strip() for each in metrics.split(",") if each.strip()),
        interval_s=parse_duration_ms(interval, "--interval") / 1000,
        lake=lake,
        streams_topic=streams_topic or TOPIC,
        alertmanager=alertmanager,
        audit=audit,
    )
    if with_parent:
        die_with_parent()
    _serve(settings, as_json=as_json)


def _serve(settings: "ConsoleSettings", *, as_json: bool) -> None:
    """Watch the cluster and serve the page until a signal."""
    from barnabas import logs
    from barnabas.admin.connecting import settings as client_settings
    from barnabas.console.console_server import run_console
    from barnabas.monitor.watcher import Watcher, WatchSettings

    logs.configure(json=as_json, level="info", stream=sys.stderr)
    watched = WatchSettings(
        properties=client_settings(settings.bootstrap, settings.properties),
        interval_s=settings.interval_s,
        metrics=settings.metrics,
        client_id="barnabas-console",
    )
    with Watcher(watched) as watcher:
        run_console(settings, watcher, lambda url: _say_ready(settings, url, as_json=as_json))


def _say_ready(settings: "ConsoleSettings", url: str, *, as_json: bool) -> None:
    if as_json:
        line = {"event": "ready", "url": url, "read_only": settings.read_only}
        say(json.dumps({**line, "login": settings.login.value}))
    else:
        how = "read-only" if settings.read_only else "changes are allowed"
        say(f"The console of {settings.bootstrap} is at {url} ({how}); Ctrl-C stops it")
    sys.stdout.flush()


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise CommandError(
            f"--listen {listen!r} is not HOST:PORT; write {console_options.DEFAULT_LISTEN}"
        )
    return host.strip("[]"), int(port)


def _method(login: str | None, *, is_local: bool) -> "LoginMethod":
    from barnabas.console.console_settings import LoginMethod

    if login is None:
        if is_local:
            return LoginMethod.NONE
        raise CommandError(
            "Other computers can reach --listen; choose --login password, --login broker or "
            "--login oidc (or --login none, which shows records to everyone, read-only)"
        )
    try:
        return LoginMethod(login.lower())
    except ValueError:
        known = ", ".join(LoginMethod)
        raise CommandError(f"--login {login!r} is none of {known}") from None


def _oidc(
    issuer: str | None, client_id: str | None, secret_file: Path | None, claim: str
) -> "OidcSettings | None":
    from barnabas.console.console_settings import OidcSettings

    if issuer is None or client_id is None:
        return None
    secret = None
    if secret_file is not None:
        try:
            secret = secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--oidc-client-secret-file {secret_file}: {error}") from None
    return OidcSettings(issuer=issuer, client_id=client_id, client_secret=secret, user_claim=claim)
