"""Options of `barnabas telemetry collect` for exporters and for its own HTTP pages."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError, warn

if TYPE_CHECKING:
    from barnabas.telemetry.collect.collector_web import OwnPages
    from barnabas.telemetry.collect.discovery import Discovery
    from barnabas.telemetry.collect.vitals import Vitals

Dcgm = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="A dcgm-exporter to scrape; may be repeated."),
]
TargetFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--targets",
        metavar="FILE",
        help="A list of exporters in Prometheus' file_sd format; read again when it changes.",
    ),
]
Kubernetes = Annotated[
    str | None,
    typer.Option(metavar="SELECTOR", help="Scrape the pods with these labels in this cluster."),
]
ScrapeSettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", help="YAML: sources of targets, authentication, TLS."
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        help="The deadline of one scrape; default: 10s, or the interval if that is shorter."
    ),
]
Http = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Serve /metrics and /health of the collector here."),
]


@dataclass(frozen=True)
class Exporters:
    """The exporter options of the command line."""

    addresses: list[str]
    files: list[Path]
    selector: str | None
    settings: Path | None
    timeout: str | None

    def __bool__(self) -> bool:
        """Return whether exporters are the source."""
        return bool(self.addresses or self.files or self.selector or self.settings)

    @property
    def timeout_s(self) -> float | None:
        """The deadline of one scrape; None means by the interval."""
        if self.timeout is None:
            return None
        timeout_ms = parse_duration_ms(self.timeout, "--timeout")
        if timeout_ms <= 0:
            raise CommandError("--timeout must be longer than 0s; write 5s")
        return timeout_ms / 1000

    def open(self, is_stopping: Callable[[], bool]) -> "Discovery":
        """Open all sources of targets."""
        from barnabas.telemetry.collect.discovery import discovery
        from barnabas.telemetry.collect.file_targets import TargetsError
        from barnabas.telemetry.collect.kubernetes import PodSettings
        from barnabas.telemetry.collect.scrape_settings import (
            ScrapeSettings,
            ScrapeSettingsError,
            read,
        )
        from barnabas.telemetry.collect.targets import EndpointError

        try:
            settings = read(self.settings) if self.settings else ScrapeSettings()
            if self.selector:
                known = settings.pods
                pods = (
                    replace(known, selector=self.selector)
                    if known
                    else PodSettings(selector=self.selector)
                )
                settings = replace(settings, pods=pods)
            self._require_source(has_more=bool(settings.files or settings.pods))
            return discovery(
                self.addresses,
                self.files,
                settings,
                environment=os.environ,
                tell=warn,
                is_stopping=is_stopping,
            )
        except EndpointError as error:
            raise CommandError(f"--dcgm: {error}") from error
        except (ScrapeSettingsError, TargetsError) as error:
            raise CommandError(str(error)) from error

    def _require_source(self, *, has_more: bool) -> None:
        if not (self.addresses or self.files or self.selector or has_more):
            raise CommandError(
                f"{self.settings} has no targets; add files or kubernetes to it, or pass --dcgm"
            )


def own_pages(text: str, vitals: "Vitals") -> "OwnPages":
    """Open the collector's own pages."""
    from barnabas.telemetry.collect.collector_web import OwnPages, WebError

    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65_535:
        raise CommandError(f"--http {text!r} is not HOST:PORT; write 127.0.0.1:9401")
    try:
        pages = OwnPages(host.strip("[]") or "0.0.0.0", int(port), vitals)  # noqa: S104 - as asked
    except WebError as error:
        raise CommandError(f"--http: {error}") from error
    if port == "0":
        warn(f"The collector's own pages are on port {pages.port}")
    return pages
