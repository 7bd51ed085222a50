"""`barnabas telemetry collect`: exporters, nvidia-smi and files into topic gpu-telemetry."""

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from barnabas.cli.connection import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.durations import parse_duration_ms
from barnabas.cli.extras import needs_extra
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.output import plural, say
from barnabas.cli.telemetry_sending import (
    CLOSING,
    LINE_EVERY,
    Display,
    Partitions,
    ProgressEvery,
    Refused,
    Speed,
    Target,
    TickAfter,
    Topic,
    parse_instant_ms,
    parse_interval_ms,
    parse_speed,
    report,
    sending,
)
from barnabas.telemetry.topics import REFUSED, SAMPLES

if TYPE_CHECKING:
    from barnabas.telemetry.collecting import Collector, Item
    from barnabas.telemetry.readings import Tally
    from barnabas.telemetry.sources import Sources

HELP = "Send GPU telemetry from dcgm-exporter, nvidia-smi or files to a topic."
EPILOG = (
    "Examples: barnabas telemetry collect --dcgm gpu-node-1:9400 --dcgm gpu-node-2:9400 ; "
    "barnabas telemetry collect --nvidia-smi --interval 1s ; "
    "barnabas telemetry collect --sample h200 --speed max --start now"
)
RECORDED = "recorded"
NOW = "now"
DCGM_INTERVAL = "30s"
SMI_INTERVAL = "1s"


class LayoutChoice(StrEnum):
    """How values are packed into messages."""

    AUTO = "auto"
    SAMPLE = "sample"
    SNAPSHOT = "snapshot"


class FormatChoice(StrEnum):
    """The layout of a file."""

    AUTO = "auto"
    NVIDIA_SMI = "nvidia-smi"
    LONG = "long"


Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE...", help="CSV of nvidia-smi, or long CSV; .gz is fine."),
]
Dcgm = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="A dcgm-exporter to scrape; may be repeated."),
]
NvidiaSmi = Annotated[bool, typer.Option("--nvidia-smi", help="Run nvidia-smi on this machine.")]
BundledSample = Annotated[
    str | None, typer.Option(metavar="NAME", help="A bundled recording: h200.")
]
FileFormatOption = Annotated[FormatChoice, typer.Option("--format", help="What the files are.")]
LayoutOption = Annotated[
    LayoutChoice,
    typer.Option(help="A message a metric, or a message a GPU; auto: as the source has it."),
]
Interval = Annotated[
    str | None,
    typer.Option(help="How often to ask: 30s of exporters, 1s of nvidia-smi if not given."),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Stop after asking so many times.")]
Follow = Annotated[bool, typer.Option("--follow", "-F", help="Go on reading as the file grows.")]
Loop = Annotated[int, typer.Option(min=1, help="Run through the recording so many times.")]
Start = Annotated[
    str,
    typer.Option(
        help="When the recording begins: recorded, an ISO time, or now "
        "(at other speeds than 1 it ends now, with its tick)."
    ),
]
Timezone = Annotated[str, typer.Option(help="The zone of nvidia-smi's times.")]
Hostname = Annotated[
    str | None, typer.Option(help="Whose cards they are, where the source does not say.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("collect", help=HELP, epilog=EPILOG)(collect)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to send what is asked for."""

    layout: LayoutChoice
    speed: float
    tick_ms: int
    hostname: str
    zone: tzinfo
    line_every_ms: int
    as_json: bool


@dataclass(frozen=True, kw_only=True)
class Request:
    """The source that the command line asks for."""

    files: list[Path]
    dcgm: list[str]
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
        if self.dcgm:
            return "dcgm-exporter"
        return "nvidia-smi" if self.nvidia_smi else "sample" if self.sample else "csv"

    @property
    def is_live(self) -> bool:
        """Whether time goes on by itself."""
        return bool(self.dcgm) or self.nvidia_smi or self.follow

    @property
    def layout(self) -> str:
        """The layout that suits: exporters have metrics one by one, the others all at once."""
        return LayoutChoice.SAMPLE if self.dcgm else LayoutChoice.SNAPSHOT

    def check(self) -> None:
        """Refuse what does not go together."""
        given = [bool(self.files), bool(self.dcgm), self.nvidia_smi, self.sample is not None]
        if sum(given) != 1:
            raise CommandError("Name one source: files, --dcgm URL, --nvidia-smi or --sample h200")
        if self.follow and len(self.files) != 1:
            raise CommandError("--follow reads one file; name exactly one")
        if self.is_live and (self.loop > 1 or self.start != RECORDED):
            raise CommandError("--loop and --start are for recordings, not for live sources")
        if (self.interval or self.rounds) and not (self.dcgm or self.nvidia_smi):
            raise CommandError("--interval and --rounds are for --dcgm and --nvidia-smi")

    def items(self, sources: "Sources", speed: float, tick_ms: int) -> "Iterator[Item]":
        """Open the source."""
        from barnabas.telemetry.inputs import FileFormat

        if self.dcgm:
            interval_ms = parse_interval_ms(self.interval or DCGM_INTERVAL, "--interval")
            return sources.exporters(self.dcgm, interval_s=interval_ms / 1000, rounds=self.rounds)
        if self.nvidia_smi:
            interval_ms = parse_interval_ms(self.interval or SMI_INTERVAL, "--interval")
            return sources.nvidia_smi(interval_ms=interval_ms, rounds=self.rounds)
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
        """Return where the recording is to begin or to end; None leaves it where it is.

        "now" begins now at real time, and ends with its tick now at any other speed: a time in
        the future would be taken for one of a wrong clock.
        """
        if self.start == RECORDED:
            return None, None
        at_ms = parse_instant_ms(self.start, "--start")
        return (None, at_ms - tick_ms) if self.start == NOW and speed != 1.0 else (at_ms, None)


def collect(  # noqa: PLR0913 - one parameter an option
    files: Files = None,
    *,
    dcgm: Dcgm = None,
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
        dcgm=dcgm or [],
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
    )
    plan = Plan(
        layout=layout,
        speed=0.0 if request.is_live else parse_speed(speed),
        tick_ms=0 if request.is_live else parse_duration_ms(tick, "--tick"),
        hostname=hostname or _own_name(request),
        zone=_zone(timezone),
        line_every_ms=parse_interval_ms(progress, "--progress"),
        as_json=as_json,
    )
    with needs_extra("telemetry"):
        _run(request, target, plan)


def _run(request: Request, target: Target, plan: Plan) -> None:
    from barnabas.telemetry.collecting import Collector
    from barnabas.telemetry.inputs import InputError
    from barnabas.telemetry.live_smi import SmiError
    from barnabas.telemetry.messages import Layout
    from barnabas.telemetry.pacing import Pacer, RealClock
    from barnabas.telemetry.readings import Tally
    from barnabas.telemetry.scraping import EndpointError
    from barnabas.telemetry.sources import Sources

    clock, tally = RealClock(), Tally()
    layout = Layout(request.layout if plan.layout is LayoutChoice.AUTO else plan.layout)
    publisher = target.open(request.source)
    display = Display(publisher, line_every_ms=plan.line_every_ms)
    pacer = Pacer(plan.speed, clock, display.draw)
    collector = Collector(publisher, pacer, layout=layout, source=request.source, tell=warn)
    sources = Sources(
        layout=layout,
        hostname=plan.hostname,
        zone=plan.zone,
        clock=clock,
        while_waiting=display.draw,
        tally=tally,
    )
    try:
        with sending(publisher, display):
            _send(request.items(sources, plan.speed, plan.tick_ms), collector, display)
            if plan.tick_ms:
                collector.tick(plan.hostname, plan.tick_ms)
    except (InputError, EndpointError, SmiError) as error:
        raise CommandError(str(error)) from error
    seconds = time.monotonic() - display.started_s
    if not plan.as_json:
        _tell(collector, tally)
    extra = _extra(collector, tally)
    report(publisher, seconds, extra, topic=target.topic, as_json=plan.as_json)


def _send(items: "Iterator[Item]", collector: "Collector", display: Display) -> None:
    for count, item in enumerate(items):
        collector.take(item)
        if count % 128 == 0:
            display.draw()


def _tell(collector: "Collector", tally: "Tally") -> None:
    for url, times in collector.outages.items():
        say(f"{url} did not answer {plural(times, 'time')}")
    if tally.no_value:
        say(f"{plural(tally.no_value, 'cell')} without a value left out")
    if tally.unknown:
        say(f"Not known, and left out: {', '.join(sorted(tally.unknown))}")


def _extra(collector: "Collector", tally: "Tally") -> dict[str, object]:
    return {
        "first_ms": collector.first_ms,
        "last_ms": collector.last_ms,
        "no_value": tally.no_value,
        "unknown": dict(tally.unknown),
        "outages": dict(collector.outages),
    }


def _own_name(request: Request) -> str:
    return f"{request.sample}-node" if request.sample else socket.gethostname()


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":  # needs no database of zones
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise CommandError(
            f"--timezone {name!r} is not known; write UTC or a name such as Europe/Berlin"
        ) from error
