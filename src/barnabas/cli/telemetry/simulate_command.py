"""`barnabas telemetry simulate`: send samples of a simulated fleet with labelled faults."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.wording import plural
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import say
from barnabas.cli.telemetry.collect_command import LayoutChoice
from barnabas.cli.telemetry.sending_options import (
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
    parse_speed,
    report,
    sending,
)
from barnabas.telemetry.samples.telemetry_topics import REFUSED, SAMPLES

if TYPE_CHECKING:
    from barnabas.telemetry.collect.publishing import Publisher
    from barnabas.telemetry.simulation import Fault, FleetSettings, Simulation
    from barnabas.telemetry.simulation.malformed_messages import Dirt

HELP = "Send samples of a simulated fleet, and write its faults to a file of labels."
EPILOG = (
    "Examples: barnabas telemetry simulate --gpus 500 --duration 10m --speed max "
    "--labels truth.jsonl ; "
    "barnabas telemetry simulate --faults xid,missing --dirt 0.01 --dirt-labels dirt.jsonl"
)
SOURCE = "simulate"


Gpus = Annotated[int, typer.Option(min=1, help="Number of GPUs, eight per host.")]
Interval = Annotated[str, typer.Option(help="Sampling interval.")]
Duration = Annotated[str, typer.Option(help="Duration, in the fleet's own time.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same fleet.")]
Start = Annotated[
    str | None,
    typer.Option(
        help="Event time of the first sample: now, or an ISO time. "
        "Default: now at speed 1, else such that the tick after the last sample is now."
    ),
]
LayoutOption = Annotated[LayoutChoice, typer.Option(help="One message per metric or per GPU.")]
Faults = Annotated[str, typer.Option(metavar="NAME,...", help="Faults: all, none, or names.")]
FaultShare = Annotated[float, typer.Option(min=0, max=1, help="The share of GPUs with a fault.")]
LabelsFile = Annotated[Path | None, typer.Option(help="Write the labels here, as JSON lines.")]
DirtShare = Annotated[float, typer.Option(min=0, max=1, help="The share of malformed messages.")]
DirtLabelsFile = Annotated[
    Path | None, typer.Option(help="Write the labels of malformed messages here, as JSON lines.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("simulate", help=HELP, epilog=EPILOG)(simulate)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The other options of the command line."""

    speed: float
    dirt_share: float
    tick_ms: int
    labels: Path | None
    dirt_labels: Path | None
    line_every_ms: int
    as_json: bool


def simulate(  # noqa: PLR0913 - one parameter an option
    *,
    gpus: Gpus = 64,
    interval: Interval = "1s",
    duration: Duration = "5m",
    speed: Speed = "1",
    seed: Seed = 1,
    start: Start = None,
    layout: LayoutOption = LayoutChoice.SNAPSHOT,
    faults: Faults = "all",
    fault_share: FaultShare = 0.2,
    labels: LabelsFile = None,
    dirt: DirtShare = 0.0,
    dirt_labels: DirtLabelsFile = None,
    tick: TickAfter = CLOSING,
    progress: ProgressEvery = LINE_EVERY,
    topic: Topic = SAMPLES,
    refused_topic: Refused = REFUSED,
    partitions: Partitions = 4,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Simulate a fleet."""
    target = Target(
        bootstrap=bootstrap,
        properties=properties,
        topic=topic,
        refused_topic=refused_topic,
        partitions=partitions,
    )
    request = Request(
        speed=parse_speed(speed),
        dirt_share=dirt,
        tick_ms=parse_duration_ms(tick, "--tick"),
        labels=labels,
        dirt_labels=dirt_labels,
        line_every_ms=parse_duration_ms(progress, "--progress"),
        as_json=as_json,
    )
    duration_ms = parse_duration_ms(duration, "--duration")
    with needs_extra("telemetry"):
        from barnabas.telemetry.samples.sample_messages import Layout
        from barnabas.telemetry.simulation import FleetSettings

        settings = FleetSettings(
            gpus=gpus,
            seed=seed,
            start_ms=_start_ms(start, request.speed, duration_ms + request.tick_ms),
            interval_ms=_positive(parse_duration_ms(interval, "--interval"), "--interval"),
            duration_ms=_positive(duration_ms, "--duration"),
            layout=Layout.SAMPLE if layout is LayoutChoice.SAMPLE else Layout.SNAPSHOT,
            faults=_faults(faults),
            fault_share=fault_share,
        )
        _run(settings, request, target)


def _run(settings: "FleetSettings", request: Request, target: Target) -> None:
    from barnabas.telemetry.simulation import simulate as make_fleet
    from barnabas.telemetry.simulation.malformed_messages import Dirt

    fleet = make_fleet(settings)
    dirt = Dirt(request.dirt_share, settings.seed)
    publisher = target.open(SOURCE)
    # The labels are known before the first message, and useful even after Ctrl-C.
    _write(request.labels, (each.as_json() for each in fleet.truth))
    display = Display(
        publisher,
        lambda: f"{len(dirt.labels):,} dirt" if dirt.labels else "",
        line_every_ms=request.line_every_ms,
    )
    try:
        with sending(publisher, display):
            _send(fleet, dirt, publisher, display, request)
    finally:
        _write(request.dirt_labels, (each.as_json() for each in dirt.labels))
    seconds = time.monotonic() - display.started_s
    found = sorted({each.name for each in fleet.truth if each.kind == "finding"})
    if not request.as_json:
        say(f"{plural(settings.gpus, 'GPU')}, faults: {', '.join(found) or 'none'}")
    extra: dict[str, object] = {
        "gpus": settings.gpus,
        "start_ms": settings.start_ms,
        "last_ms": fleet.last_ms,
        "findings": found,
        "dirt": len(dirt.labels),
    }
    report(publisher, seconds, extra, topic=target.topic, as_json=request.as_json)


def _send(
    fleet: "Simulation", dirt: "Dirt", publisher: "Publisher", display: Display, request: Request
) -> None:
    from barnabas.telemetry.collect.pacing import Pacer, RealClock
    from barnabas.telemetry.samples.sample_messages import Tick, encode_tick

    pacer = Pacer(request.speed, RealClock(), display.draw)
    samples, send = fleet.samples_per_message, publisher.send
    for due_ms, batch in fleet.batches():
        pacer.wait_for(due_ms)
        for message in dirt.mixed(batch) if request.dirt_share else batch:
            send(message, samples)
        display.draw()
    if request.tick_ms:
        tick = Tick(timestamp_ms=fleet.last_ms + request.tick_ms, hostname=SOURCE)
        send(encode_tick(tick, SOURCE), 0)


def _faults(text: str) -> "tuple[Fault, ...]":
    from barnabas.telemetry.simulation import Fault

    words = [word.strip() for word in text.split(",") if word.strip()]
    if words in (["all"], ["none"]):
        return tuple(Fault) if words == ["all"] else ()
    try:
        return tuple(Fault(word) for word in words)
    except ValueError as error:
        names = ", ".join(Fault)
        raise CommandError(f"--faults {text!r}: choose from all, none, {names}") from error


def _start_ms(text: str | None, speed: float, length_ms: int) -> int:
    """Return the first sample's time; no sample may be ahead of the broker's clock."""
    if text is not None:
        return parse_instant_ms(text, "--start")
    now_ms = time.time_ns() // 1_000_000
    return now_ms if speed == 1.0 else now_ms - length_ms


def _positive(span_ms: int, option: str) -> int:
    if span_ms < 1:
        raise CommandError(f"{option} must be longer than 0s; write 1s or more")
    return span_ms


def _write(path: Path | None, lines: Iterable[str] | Iterator[str]) -> None:
    if path is not None:
        with path.open("w") as stream:
            stream.writelines(f"{line}\n" for line in lines)
