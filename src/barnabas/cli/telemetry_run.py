"""`barnabas telemetry run`: the streaming jobs, here or on any Spark master."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from barnabas.cli.connection import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    Properties,
    pairs,
    require_listener,
)
from barnabas.cli.durations import parse_duration_ms
from barnabas.cli.extras import needs_extra
from barnabas.cli.failure import CommandError, warn
from barnabas.cli.output import say
from barnabas.telemetry.samples.topics import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.telemetry.findings.thresholds import Thresholds
    from barnabas.telemetry.jobs.jobs import Job, JobSettings
    from barnabas.telemetry.jobs.session import SessionSettings

HELP = """Run the streaming jobs: tables, findings and alerts from topic gpu-telemetry.

Ctrl-C stops the jobs after their present batch, a second one at once. Whatever stops them, the next
run goes on where this one was, with every message in the tables once.
"""
EPILOG = (
    "Examples: barnabas telemetry run --lake lake ; barnabas telemetry run --lake lake --once ; "
    "barnabas telemetry run --lake /mnt/lake --master spark://head:7077 "
    "--conf spark.executor.memory=4g"
)
DEFAULT_LAKE = "lake"
LOG = "spark.log"
SHOW_EVERY_S = 1.0
SHOW_EVERY_PLAIN_S = 10.0


class TableFormat(StrEnum):
    """What the tables are."""

    PARQUET = "parquet"
    DELTA = "delta"


LakeOption = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="BARNABAS_LAKE",
        metavar="DIR",
        help="Where the tables are; a folder or a URI.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="local[*] if not given (under spark-submit: its own); or spark://HOST:PORT, yarn, "
        "k8s://URL.",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Work off what is there, then leave.")]
Trigger = Annotated[str, typer.Option(help="How often to look for more.")]
FormatOption = Annotated[TableFormat, typer.Option(help="Parquet files, or with a Delta log.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings", metavar="FILE", help="Thresholds and prices as YAML; see docs/telemetry.md."
    ),
]
JobNames = Annotated[
    str | None, typer.Option("--jobs", metavar="NAME,...", help="Only these jobs.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
]
DriverMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory of the driver's JVM; 2g on this machine."),
]
MessagesABatch = Annotated[
    int, typer.Option(min=1, help="At most so many messages a batch: it bounds memory.")
]
Log = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What Spark says; LAKE/_logs/spark.log if not given."),
]
Every = Annotated[
    str | None,
    typer.Option(help="How often to show the state: 1s on a terminal, else 10s."),
]
TopicOption = Annotated[str, typer.Option(help="Where the telemetry is.")]
Rebind = Annotated[
    bool,
    typer.Option(
        "--rebind",
        help="Let a lake go on with another topic than it was filled from, a topic that was "
        "created again, or another cluster; the topic is read from its beginning.",
    ),
]


class Stoppable(Protocol):
    """What runs until it is told to stop."""

    stop_requested: bool

    def request_stop(self) -> None:
        """Stop after the present batches."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What a run is to do."""

    session: "SessionSettings"
    jobs: "JobSettings"
    chosen: "tuple[Job, ...]"
    once: bool
    show_every_s: float
    as_json: bool
    rebind: bool = False
    prices: "Thresholds | None" = None
    """From a settings file: reports on the lake use them."""


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("run", help=HELP, epilog=EPILOG)(run)


def run(  # noqa: PLR0913 - one parameter an option
    *,
    lake: LakeOption = DEFAULT_LAKE,
    master: Master = None,
    once: Once = False,
    trigger: Trigger = "10s",
    table_format: FormatOption = TableFormat.PARQUET,
    settings: SettingsFile = None,
    jobs: JobNames = None,
    topic: TopicOption = SAMPLES,
    rebind: Rebind = False,
    messages_a_batch: MessagesABatch = 200_000,
    driver_memory: DriverMemory = None,
    conf: Conf = None,
    log: Log = None,
    every: Every = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Run the streaming jobs."""
    thresholds = _thresholds(settings)
    place = lake if "://" in lake else str(Path(lake).resolve())
    with needs_extra("telemetry"):
        from barnabas.telemetry.jobs.jobs import JobSettings
        from barnabas.telemetry.jobs.session import SessionSettings

        request = RunRequest(
            session=SessionSettings(
                master=submitted_master(master),
                driver_memory=driver_memory,
                log=log or _log(place),
                conf=pairs(conf, "--conf"),
                lake=place,
            ),
            jobs=JobSettings(
                bootstrap=bootstrap,
                lake=place,
                table_format=table_format.value,
                thresholds=thresholds,
                trigger_s=parse_duration_ms(trigger, "--trigger") / 1000,
                messages_a_batch=messages_a_batch,
                client=pairs(properties, "property"),
                topic=topic,
            ),
            chosen=_chosen(jobs),
            once=once,
            show_every_s=every_s(every),
            as_json=as_json,
            rebind=rebind,
            prices=None if settings is None else thresholds,
        )
        require_listener(bootstrap)
        execute(request)


def execute(request: RunRequest) -> None:
    """Start Spark, run the jobs, and say what is next."""
    from barnabas.telemetry.jobs.jobs import SESSION
    from barnabas.telemetry.jobs.session import SessionError, session
    from barnabas.telemetry.lake import prices
    from barnabas.telemetry.lake.lake import Lake
    from barnabas.telemetry.lake.lake_identity import WrongSourceError
    from barnabas.telemetry.lake.lake_lock import LakeBusyError, held

    try:
        with held(request.jobs.lake):
            bind(request.jobs, rebind=request.rebind)
            if request.prices is not None:
                prices.store(Lake(request.jobs.lake), request.prices)
            if not request.as_json:
                warn(f"Starting Spark on {request.session.master or 'the submitted master'} ...")
            with session(request.session, SESSION) as spark:
                supervise(spark, request)
    except (LakeBusyError, SessionError, WrongSourceError) as error:
        raise CommandError(str(error)) from error
    if not request.as_json:
        say(footer(request))


def bind(jobs: "JobSettings", *, rebind: bool = False) -> None:
    """Make sure that the lake is filled from one topic only, and let it know which.

    Raises `WrongSourceError`, before anything is started or written.
    """
    from confluent_kafka import KafkaException

    from barnabas.telemetry.lake import lake_identity
    from barnabas.telemetry.lake.lake import Lake
    from barnabas.telemetry.lake.topic_identity import source_of
    from barnabas.telemetry.samples import topic_setup

    place = Lake(jobs.lake)
    client = {"bootstrap.servers": jobs.bootstrap, **jobs.client}
    try:
        found = source_of(client, jobs.topic)
        if not rebind:
            lake_identity.check(place, found, jobs.topic)
        if found is None and jobs.topic == SAMPLES:
            topic_setup.create_missing(client)
            found = source_of(client, jobs.topic)
    except KafkaException as error:
        cause = error.args[0].str()
        raise CommandError(
            f"{jobs.bootstrap} did not describe topic {jobs.topic}: {cause}"
        ) from error
    if found is None:
        raise CommandError(
            f'There is no topic "{jobs.topic}" at {jobs.bootstrap}; create it, or pass another '
            "--topic"
        )
    if rebind:
        lake_identity.rebind(place, found)
    else:
        lake_identity.record(place, found)


def supervise(spark: "SparkSession", request: RunRequest, *, in_peace: bool = True) -> None:
    """Run the jobs in a session; raise a sentence where one of them cannot go on.

    In peace, signals stop the jobs after their batches; else Ctrl-C raises as it does anywhere.
    """
    from py4j.protocol import Py4JError

    from barnabas.cli.telemetry_live import display
    from barnabas.telemetry.jobs.supervising import JobFailedError, Supervisor

    supervisor = Supervisor(spark, request.jobs, request.chosen, once=request.once)
    log = request.session.log
    where = f"; {log} says more" if log else ""
    try:
        with (
            stopped_by_signals(supervisor) if in_peace else nullcontext(),
            display(footer(request), as_json=request.as_json) as show,
        ):
            supervisor.run(show, request.show_every_s)
    except JobFailedError as error:
        raise CommandError(f"{error}{where}") from error
    except (Py4JError, ConnectionError) as error:
        raise CommandError(
            f"Spark's JVM has ended{where}; start the command again: it goes on where it was"
        ) from error


@contextmanager
def stopped_by_signals(supervisor: Stoppable) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the jobs after their batch, and the second one at once."""

    def stop(number: int, _: FrameType | None) -> None:
        if supervisor.stop_requested:
            from barnabas.telemetry.jobs.session import abandon

            abandon()
            os._exit(128 + number)
        supervisor.request_stop()
        sys.stderr.write("Stopping after the present batches; once more stops at once\n")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def footer(request: RunRequest) -> str:
    """Say where things are and what to type next."""
    lake, log = request.jobs.lake, request.session.log
    logged = f"; Spark's log is {log}" if log else ""
    return (
        f"Tables are in {lake}{logged}\n"
        f"Next: barnabas telemetry report --lake {shlex.quote(lake)} --out report.html"
    )


def submitted_master(given: str | None) -> str | None:
    """Return the master: that of the command line, spark-submit's, or this machine."""
    from barnabas.telemetry.jobs.session import GATEWAY

    return "local[*]" if given is None and GATEWAY not in os.environ else given


def _log(lake: str) -> Path | None:
    return None if "://" in lake else Path(lake) / "_logs" / LOG


def every_s(given: str | None) -> float:
    """Return how often to show the state."""
    if given is not None:
        return parse_duration_ms(given, "--every") / 1000
    return SHOW_EVERY_S if sys.stdout.isatty() else SHOW_EVERY_PLAIN_S


def _thresholds(path: Path | None) -> "Thresholds":
    from barnabas.telemetry.findings.thresholds import Thresholds
    from barnabas.telemetry.settings_file import SettingsError, read

    if path is None:
        return Thresholds()
    try:
        return read(path)
    except SettingsError as error:
        raise CommandError(str(error)) from error


def _chosen(names: str | None) -> "tuple[Job, ...]":
    from barnabas.telemetry.jobs.jobs import JOBS

    if names is None:
        return JOBS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {job.name: job for job in JOBS}
    strange = [name for name in wanted if name not in known]
    if strange or not wanted:
        raise CommandError(f"--jobs {names!r}: choose from {', '.join(known)}")
    return tuple(job for job in JOBS if job.name in wanted)
