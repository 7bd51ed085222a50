"""`barnabas telemetry collect`: send samples of exporters, nvidia-smi and files to a topic."""

import socket
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import say
from barnabas.cli.telemetry.exporter_options import (
    Dcgm,
    Exporters,
    Http,
    Kubernetes,
    ScrapeSettingsFile,
    TargetFiles,
    Timeout,
    own_pages,
)
from barnabas.cli.telemetry.sending_options import (
    CLOSING,
    LINE_EVERY,
    SPOOL_LIMIT,
    Display,
    Partitions,
    ProgressEvery,
    Refused,
    Speed,
    SpoolFolder,
    SpoolLimit,
    Stop,
    Target,
    TickAfter,
    Topic,
    parse_instant_ms,
    parse_speed,
    report,
    sending,
)
from barnabas.telemetry.samples.telemetry_topics import REFUSED, SAMPLES

if TYPE_CHECKING:
    from barnabas.telemetry.collect.collecting import Collector, Item
    from barnabas.telemetry.collect.collector_sources import Sources
    from barnabas.telemetry.collect.publishing import Publisher
    from barnabas.telemetry.samples.readings import Tally

HELP = "Send GPU telemetry from dcgm-exporter, nvidia-smi or files to a topic."
EPILOG = (
    "Examples: barnabas telemetry collect --dcgm gpu-node-1:9400 --dcgm gpu-node-2:9400 ; "
    "barnabas telemetry collect --targets gpu-nodes.yml --spool spool --http :9401 ; "
    "barnabas telemetry collect --nvidia-smi --interval 1s ; "
    "barnabas telemetry collect --sample h200 --speed max --start now"
)
RECORDED = "recorded"
NOW = "now"
DCGM_INTERVAL = "30s"
SMI_INTERVAL = "1s"


class LayoutChoice(StrEnum):
    """The layout of messages."""

    AUTO = "auto"
    SAMPLE = "sample"
    SNAPSHOT = "snapshot"


class FormatChoice(StrEnum):
    """The layout of a file."""

    AUTO = "auto"
    NVIDIA_SMI = "nvidia-smi"
    LONG = "long"
    DCGM = "dcgm"


Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE...", help="CSV of nvidia-smi, or long CSV, also as .gz."),
]
NvidiaSmi = Annotated[bool, typer.Option("--nvidia-smi", help="Run nvidia-smi on this machine.")]
BundledSample = Annotated[
    str | None, typer.Option(metavar="NAME", help="A bundled recording: h200.")
]
FileFormatOption = Annotated[
    FormatChoice, typer.Option("--format", help="The format of the files.")
]
LayoutOption = Annotated[
    LayoutChoice,
    typer.Option(help="One message per metric or per GPU; auto: as the source has it."),
]
Interval = Annotated[
    str | None,
    typer.Option(help="Sampling interval; default: 30s for exporters, 1s for nvidia-smi."),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Stop after this many rounds.")]
Follow = Annotated[bool, typer.Option("--follow", "-F", help="Continue reading as the file grows.")]
Loop = Annotated[int, typer.Option(min=1, help="Repeat the recording this many times.")]
Start = Annotated[
    str,
    typer.Option(
        help="Start time of the recording: recorded, an ISO time, or now "
        "(at other speeds than 1 it ends now, with its tick)."
    ),
]
Timezone = Annotated[str, typer.Option(help="The time zone of nvidia-smi's times.")]
Hostname = Annotated[
    str | None, typer.Option(help="The host of the GPUs, if the source does not name it.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("collect", help=HELP, epilog=EPILOG)(collect)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to send the samples."""

    layout: LayoutChoice
    speed: float
    tick_ms: int
    hostname: str
    zone: tzinfo
    line_every_ms: int
    http: str | None
    as_json: bool


@dataclass(frozen=True, kw_only=True)
class Request:
    """The source that the command line selects."""

    files: list[Path]
    exporters: Exporters
    nvidia_smi: bool
    sample: str | None
    file_format: FormatChoice
    interval: str | None
    follow: bool
    loop: int
    start: str
    rounds: int | None

    @property
    def source(self) -> str:
        """The kind of source, for the header of the messages."""
        if self.exporters:
            return "dcgm-exporter"
        return "nvidia-smi" if self.nvidia_smi else "sample" if self.sample else "csv"

    @property
    def is_live(self) -> bool:
        """Whether the source is live."""
        return bool(self.exporters) or self.nvidia_smi or self.follow

    @property
    def layout(self) -> str:
        """The default layout: exporters have single metrics, other sources all metrics of a GPU."""
        return LayoutChoice.SAMPLE if self.exporters else LayoutChoice.SNAPSHOT

    @property
    def is_polled(self) -> bool:
        """Whether the source itself checks for the signal to stop."""
        return bool(self.exporters) or self.follow

    @property
    def interval_ms(self) -> int:
        """The sampling interval."""
        default = DCGM_INTERVAL if self.exporters else SMI_INTERVAL
        return parse_duration_ms(self.interval or default, "--interval")

    def check(self) -> None:
        """Reject options that cannot be combined."""
        given = [bool(self.files), bool(self.exporters), self.nvidia_smi, self.sample is not None]
        if sum(given) != 1:
            raise CommandError(
                "Select one source: files, exporters (--dcgm URL, --targets FILE, --kubernetes "
                "SELECTOR or --settings FILE), --nvidia-smi or --sample h200"
            )
        if self.follow and len(self.files) != 1:
            raise CommandError("--follow reads one file; pass exactly one")
        if self.is_live and (self.loop > 1 or self.start != RECORDED):
            raise CommandError("--loop and --start are for recordings, not for live sources")
        if (self.interval or self.rounds) and not (self.exporters or self.nvidia_smi):
            raise CommandError("--interval and --rounds are for --dcgm and --nvidia-smi")
        if self.exporters.timeout is not None and not self.exporters:
            raise CommandError("--timeout is for exporters")
        if self.exporters and self.interval_ms <= 0:
            raise CommandError("--interval must be longer than 0s; write 30s")

    def items(self, sources: "Sources", speed: float, tick_ms: int) -> "Iterator[Item]":
        """Open the source."""
        from barnabas.telemetry.collect.inputs import FileFormat

        if self.exporters:
            return sources.exporters(
                self.exporters.open(sources.is_stopping).targets,
                interval_s=self.interval_ms / 1000,
                timeout_s=self.exporters.timeout_s,
                rounds=self.rounds,
            )
        if self.nvidia_smi:
            return sources.nvidia_smi(interval_ms=self.interval_ms, rounds=self.rounds)
        start_ms, end_ms = self.moved(speed, tick_ms)
        if self.sample is not None:
            return sources.sample(self.sample, loop=self.loop, start_ms=start_ms, end_ms=end_ms)
        file_format = FileFormat(self.file_format)
        if self.follow:
            return sources.followed(self.files[0], file_format)
        return sources.files(
            self.files, file_format, loop=self.loop, start_ms=start_ms, end_ms=end_ms
        )

    def moved(self, speed: float, tick_ms: int) -> tuple[int | None, int | None]:
        """Return the start or end time of the recording; None keeps the recorded times.

        "now" begins now at real time, and ends with its tick now at any other speed: a time in
        the future would count as a wrong clock.
        """
        if self.start == RECORDED:
            return None, None
        at_ms = parse_instant_ms(self.start, "--start")
        return (None, at_ms - tick_ms) if self.start == NOW and speed != 1.0 else (at_ms, None)


def collect(  # noqa: PLR0913 - one parameter an option
    files: Files = None,
    *,
    dcgm: Dcgm = None,
    targets: TargetFiles = None,
    kubernetes: Kubernetes = None,
    settings: ScrapeSettingsFile = None,
    timeout: Timeout = None,
    nvidia_smi: NvidiaSmi = False,
    sample: BundledSample = None,
    file_format: FileFormatOption = FormatChoice.AUTO,
    layout: LayoutOption = LayoutChoice.AUTO,
    interval: Interval = None,
    rounds: Rounds = None,
    speed: Speed = "1",
    follow: Follow = False,
    loop: Loop = 1,
    start: Start = RECORDED,
    timezone: Timezone = "UTC",
    hostname: Hostname = None,
    tick: TickAfter = CLOSING,
    progress: ProgressEvery = LINE_EVERY,
    spool: SpoolFolder = None,
    spool_limit: SpoolLimit = SPOOL_LIMIT,
    http: Http = None,
    topic: Topic = SAMPLES,
    refused_topic: Refused = REFUSED,
    partitions: Partitions = 4,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Collect telemetry."""
    request = Request(
        files=files or [],
        exporters=Exporters(dcgm or [], targets or [], kubernetes, settings, timeout),
        nvidia_smi=nvidia_smi,
        sample=sample,
        file_format=file_format,
        interval=interval,
        follow=follow,
        loop=loop,
        start=start,
        rounds=rounds,
    )
    request.check()
    target = Target(
        bootstrap=bootstrap,
        properties=properties,
        topic=topic,
        refused_topic=refused_topic,
        partitions=partitions,
        spool=spool,
        spool_limit=spool_limit,
    )
    plan = Plan(
        layout=layout,
        speed=0.0 if request.is_live else parse_speed(speed),
        tick_ms=0 if request.is_live else parse_duration_ms(tick, "--tick"),
        hostname=hostname or _own_name(request),
        zone=_zone(timezone),
        line_every_ms=parse_duration_ms(progress, "--progress"),
        http=http,
        as_json=as_json,
    )
    with needs_extra("telemetry"):
        _run(request, target, plan)


def _run(request: Request, target: Target, plan: Plan) -> None:
    from barnabas.telemetry.collect.collecting import Collector
    from barnabas.telemetry.collect.collector_sources import Sources
    from barnabas.telemetry.collect.inputs import InputError
    from barnabas.telemetry.collect.live_smi import SmiError
    from barnabas.telemetry.collect.pacing import Pacer, RealClock
    from barnabas.telemetry.collect.vitals import Vitals
    from barnabas.telemetry.samples.readings import Tally
    from barnabas.telemetry.samples.sample_messages import Layout

    clock, tally, stop = RealClock(), Tally(), Stop(is_polled=request.is_polled)
    vitals = Vitals(interval_s=request.interval_ms / 1000 if request.exporters else 0.0)
    layout = Layout(request.layout if plan.layout is LayoutChoice.AUTO else plan.layout)
    publisher = target.open(request.source)
    display = Display(
        publisher,
        line_every_ms=plan.line_every_ms,
        watch=lambda: vitals.update(publisher.totals()),
    )
    pacer = Pacer(plan.speed, clock, display.draw)
    collector = Collector(
        publisher, pacer, layout=layout, source=request.source, tell=warn, vitals=vitals
    )
    sources = Sources(
        layout=layout,
        hostname=plan.hostname,
        zone=plan.zone,
        clock=clock,
        while_waiting=display.draw,
        is_stopping=stop.requested,
        tally=tally,
    )
    try:
        pages = own_pages(plan.http, vitals) if plan.http else nullcontext()
        with pages, sending(publisher, display, stop):
            _send(request.items(sources, plan.speed, plan.tick_ms), collector, display)
            if plan.tick_ms:
                collector.tick(plan.hostname, plan.tick_ms)
    except (InputError, SmiError) as error:
        raise CommandError(str(error)) from error
    _conclude(collector, tally, publisher, time.monotonic() - display.started_s, target, plan)


def _conclude(
    collector: "Collector",
    tally: "Tally",
    publisher: "Publisher",
    seconds: float,
    target: Target,
    plan: Plan,
) -> None:
    if not plan.as_json:
        _tell(collector, tally)
    extra = _extra(collector, tally)
    report(publisher, seconds, extra, topic=target.topic, as_json=plan.as_json)
    if collector.is_without_any:
        raise CommandError(f"No exporter returned a page ({collector.last_reason or 'no targets'})")


def _send(items: "Iterator[Item]", collector: "Collector", display: Display) -> None:
    for count, item in enumerate(items):
        collector.take(item)
        if count % 128 == 0:
            display.draw()


def _tell(collector: "Collector", tally: "Tally") -> None:
    for url, times in collector.outages.items():
        say(f"{url} did not answer {plural(times, 'time')}")
    if collector.skipped:
        say(f"{plural(collector.skipped, 'round')} skipped: earlier ones took too long")
    if tally.no_value:
        say(f"{plural(tally.no_value, 'cell')} without a value skipped")
    if tally.unknown:
        say(f"Unknown, and skipped: {', '.join(sorted(tally.unknown))}")


def _extra(collector: "Collector", tally: "Tally") -> dict[str, object]:
    return {
        "first_ms": collector.first_ms,
        "last_ms": collector.last_ms,
        "no_value": tally.no_value,
        "unknown": dict(tally.unknown),
        "outages": dict(collector.outages),
        "scrapes": collector.scrapes,
        "skipped_rounds": collector.skipped,
    }


def _own_name(request: Request) -> str:
    return f"{request.sample}-node" if request.sample else socket.gethostname()


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":  # needs no time zone database
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CommandError(
            f"--timezone {name!r} is not a time zone; write UTC or a name such as Europe/Berlin"
        ) from error
