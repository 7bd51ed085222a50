"""`barnabas telemetry run`: run the streaming jobs, locally or on any Spark master."""

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

from barnabas.admin.connecting import pairs, require_listener
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import say
from barnabas.cli.telemetry.progress_option import StreamsTopic, reporting
from barnabas.telemetry.samples.telemetry_topics import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.telemetry.findings.thresholds import Thresholds
    from barnabas.telemetry.jobs.pipeline_jobs import Job, JobSettings
    from barnabas.telemetry.jobs.spark_session import SessionSettings

HELP = """Run the streaming jobs: tables, findings and alerts from topic gpu-telemetry.

Ctrl-C stops the jobs after their current batch, a second one immediately. In every case the next
run continues there, with every message in the tables once.
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
    """The format of the tables."""

    PARQUET = "parquet"
    DELTA = "delta"


LakeOption = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="BARNABAS_LAKE",
        metavar="DIR",
        help="Location of the tables; a directory or a URI.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Default: local[*] (under spark-submit: its own); or spark://HOST:PORT, yarn, "
        "k8s://URL.",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Process existing messages, then exit.")]
Trigger = Annotated[str, typer.Option(help="How often to look for new messages.")]
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
    typer.Option(metavar="KEY=VALUE", help="A Spark property; may be repeated."),
]
DriverMemory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory of the driver's JVM; 2g on this machine."),
]
MessagesABatch = Annotated[
    int, typer.Option(min=1, help="Maximum number of messages per batch; limits memory.")
]
Log = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Spark's log file; default: LAKE/_logs/spark.log."),
]
Every = Annotated[
    str | None,
    typer.Option(help="How often to show the state: 1s on a terminal, else 10s."),
]
TopicOption = Annotated[str, typer.Option(help="The topic of samples.")]
Rebind = Annotated[
    bool,
    typer.Option(
        "--rebind",
        help="Continue the lake with another topic, a topic that was created again, "
        "or another cluster; the topic is read from its beginning.",
    ),
]


class Stoppable(Protocol):
    """Something that runs until it is stopped."""

    stop_requested: bool

    def request_stop(self) -> None:
        """Stop after the current batches."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The options of a run."""

    session: "SessionSettings"
    jobs: "JobSettings"
    chosen: "tuple[Job, ...]"
    once: bool
    show_every_s: float
    as_json: bool
    rebind: bool = False
    prices: "Thresholds | None" = None
    """Prices of the settings file, for reports on the lake."""
    streams_topic: str | None = None


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
    streams_topic: StreamsTopic = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Run the streaming jobs."""
    thresholds = _thresholds(settings)
    place = lake if "://" in lake else str(Path(lake).resolve())
    with needs_extra("telemetry"):
        from barnabas.telemetry.jobs.pipeline_jobs import JobSettings
        from barnabas.telemetry.jobs.spark_session import SessionSettings

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
            streams_topic=streams_topic,
        )
        require_listener(bootstrap)
        execute(request)


def execute(request: RunRequest) -> None:
    """Start Spark, run the jobs, and print the next commands."""
    from barnabas.telemetry.jobs.pipeline_jobs import SESSION
    from barnabas.telemetry.jobs.spark_session import SessionError, session
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
    """Check that the lake belongs to this topic, and store the topic in a new lake.

    Raise `WrongSourceError` before anything is started or written.
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


def supervise(spark: "SparkSession", request: RunRequest, *, stop_on_signals: bool = True) -> None:
    """Run the jobs in a session; raise an error if one of them fails.

    With `stop_on_signals` the jobs stop after their batches; otherwise Ctrl-C raises as usual.
    """
    from py4j.protocol import Py4JError

    from barnabas.cli.telemetry.live_view import display
    from barnabas.telemetry.jobs.supervising import JobFailedError, Supervisor

    supervisor = Supervisor(spark, request.jobs, request.chosen, once=request.once)
    client = {"bootstrap.servers": request.jobs.bootstrap, **request.jobs.client}
    log = request.session.log
    where = f"; {log} says more" if log else ""
    try:
        with (
            reporting(spark, request.streams_topic, client),
            stopped_by_signals(supervisor) if stop_on_signals else nullcontext(),
            display(footer(request), as_json=request.as_json) as show,
        ):
            supervisor.run(show, request.show_every_s)
    except JobFailedError as error:
        raise CommandError(f"{error}{where}") from error
    except (Py4JError, ConnectionError) as error:
        raise CommandError(
            f"Spark's JVM has ended{where}; run the command again: it continues at its last batch"
        ) from error


@contextmanager
def stopped_by_signals(supervisor: Stoppable) -> Iterator[None]:
    """Stop the jobs at Ctrl-C or SIGTERM after their batch, at the second one immediately."""

    def stop(number: int, _: FrameType | None) -> None:
        if supervisor.stop_requested:
            from barnabas.telemetry.jobs.spark_session import abandon

            abandon()
            os._exit(128 + number)
        supervisor.request_stop()
        sys.stderr.write("Stopping after the current batches; Ctrl-C again stops immediately\n")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def footer(request: RunRequest) -> str:
    """Print locations and the next commands."""
    lake, log = request.jobs.lake, request.session.log
    logged = f"; Spark's log is {log}" if log else ""
    return (
        f"Tables are in {lake}{logged}\n"
        f"Next: barnabas telemetry report --lake {shlex.quote(lake)} --out report.html"
    )


def submitted_master(given: str | None) -> str | None:
    """Return the Spark master: that of the command line, spark-submit's, or this machine."""
    from barnabas.telemetry.jobs.spark_session import GATEWAY

    return "local[*]" if given is None and GATEWAY not in os.environ else given


def _log(lake: str) -> Path | None:
    return None if "://" in lake else Path(lake) / "_logs" / LOG


def every_s(given: str | None) -> float:
    """Return the display interval."""
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
    from barnabas.telemetry.jobs.pipeline_jobs import JOBS

    if names is None:
        return JOBS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {job.name: job for job in JOBS}
    strange = [name for name in wanted if name not in known]
    if strange or not wanted:
        raise CommandError(f"--jobs {names!r}: choose from {', '.join(known)}")
    return tuple(job for job in JOBS if job.name in wanted)
