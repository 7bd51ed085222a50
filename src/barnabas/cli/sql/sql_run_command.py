"""`barnabas sql run`: run a file of SQL statements, locally or on any Spark master."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.admin.connecting import pairs, require_listener
from barnabas.admin.wording import plural
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say
from barnabas.cli.sql.sql_status_command import document, lags_of, show_lines
from barnabas.cli.telemetry.progress_option import StreamsTopic, reporting
from barnabas.cli.telemetry.query_command import cell, plain
from barnabas.cli.telemetry.run_command import (
    Conf,
    DriverMemory,
    Every,
    Master,
    Once,
    Trigger,
    every_s,
    stopped_by_signals,
    submitted_master,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.sql.run_status import Status
    from barnabas.spark.sql.statement_runner import Answer, Runner, Script
    from barnabas.spark.sql.statements import Statement
    from barnabas.spark.sql.streams import Place
    from barnabas.telemetry.jobs.spark_session import SessionSettings

HELP = """Run a file of SQL statements on topics.

CREATE SOURCE defines a topic to select from, CREATE STREAM a continuous query into a topic or
table, CREATE FUNCTION a Python function; Spark runs every other statement unchanged. Ctrl-C stops
the streams after their current batch. The next run continues there, with every row once.
docs/spark-sql.md describes the statements and their options.
"""
EPILOG = (
    "Example: barnabas sql run shop.sql ; barnabas sql run shop.sql --once ; "
    'barnabas sql run -e "SELECT key, value FROM barnabas.orders LIMIT 5" ; '
    "barnabas sql run shop.sql --master spark://head:7077 --state /mnt/shop"
)
STATE_SUFFIX = ".state"
LOG = "spark.log"
ATTEMPTS_AFTER_A_DEATH = 5

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="A file of statements.")]
Execute = Annotated[
    str | None, typer.Option("--execute", "-e", metavar="SQL", help="Statements, without a file.")
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Directory of checkpoints, tables and the status; default: FILE with .state. On a "
        "cluster, all machines need access to it.",
    ),
]
Log = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Spark's log file; default: STATE/spark.log.")
]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a run."""

    script: "Script"
    place: "Place"
    session: "SessionSettings"
    show_every_s: float
    as_json: bool
    streams_topic: str | None = None


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("run", help=HELP, epilog=EPILOG)(run)


def run(  # noqa: PLR0913 - one parameter an option
    file: File = None,
    *,
    execute: Execute = None,
    state: State = None,
    master: Master = None,
    once: Once = False,
    trigger: Trigger = "1s",
    driver_memory: DriverMemory = None,
    conf: Conf = None,
    log: Log = None,
    every: Every = None,
    streams_topic: StreamsTopic = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Run a file of statements."""
    with needs_extra("spark"):
        from barnabas.spark.sql.statement_runner import Script
        from barnabas.spark.sql.streams import Place
        from barnabas.telemetry.jobs.spark_session import SessionSettings

        name, text = given(file, execute)
        statements = parsed(name, text)
        folder = (state or Path(name).with_suffix(STATE_SUFFIX)).resolve()
        trigger_ms = parse_duration_ms(trigger, "--trigger")
        client = {"bootstrap.servers": bootstrap, **pairs(properties, "property")}
        request = Request(
            script=Script(name=name, folder=Path(name).resolve().parent, statements=statements),
            place=Place(
                folder=folder,
                brokers={f"kafka.{key}": value for key, value in client.items()},
                trigger=f"{trigger_ms} milliseconds",
                once=once,
            ),
            session=SessionSettings(
                name="barnabas sql",
                master=submitted_master(master),
                driver_memory=driver_memory,
                log=log or folder / LOG,
                conf=pairs(conf, "--conf"),
                lake=str(folder),
            ),
            show_every_s=every_s(every),
            as_json=as_json,
            streams_topic=streams_topic,
        )
        require_listener(bootstrap)
        start(request)


def given(file: Path | None, execute: str | None) -> tuple[str, str]:
    """Return the name and the text of the statements."""
    if (file is None) == (execute is None):
        raise CommandError("Pass a FILE of statements, or -e with statements")
    if execute is not None:
        return "sql", execute
    assert file is not None
    if not file.is_file():
        raise CommandError(
            f"There is no file {file}; pass a FILE of statements. `barnabas sql --help` lists the "
            "commands"
        )
    return str(file), file.read_text()


def parsed(name: str, text: str) -> "Sequence[Statement]":
    """Parse the statements, and reject invalid ones."""
    from barnabas.spark.sql.output_topics import output_topics
    from barnabas.spark.sql.statements import StatementError, parse

    try:
        statements = parse(text)
        output_topics(statements)
    except StatementError as error:
        raise CommandError(f"{name}, {error}") from error
    if not statements:
        raise CommandError(f"{name} has no statements; `barnabas sql run --help` has an example")
    return statements


def start(request: Request) -> None:
    """Start Spark, run the statements, and say what is next."""
    from barnabas.spark.sql.statement_runner import SESSION
    from barnabas.telemetry.jobs.spark_session import SessionError, session
    from barnabas.telemetry.lake.lake_lock import LakeBusyError, held

    folder = request.place.folder
    if not request.as_json:
        warn(f"Starting Spark on {request.session.master or 'the submitted master'} ...")
    try:
        with held(str(folder)), session(request.session, SESSION) as spark:
            follow(spark, request)
    except LakeBusyError as error:
        raise CommandError(
            f"Another run holds {folder}; stop it first, or pass another --state"
        ) from error
    except SessionError as error:
        raise CommandError(str(error)) from error


def follow(spark: "SparkSession", request: Request) -> None:
    """Run the statements in a session; raise an error if one of them fails."""
    from py4j.protocol import Py4JError

    from barnabas.spark.client_properties import client_properties
    from barnabas.spark.sql.statement_runner import Runner, StreamFailedError
    from barnabas.spark.sql.statements import StatementError

    prepare(spark, request)
    client = client_properties(request.place.brokers)
    runner = Runner(spark, request.script, request.place, judged)
    where = f"; {request.session.log} says more"
    try:
        with reporting(spark, request.streams_topic, client), stopped_by_signals(runner):
            _run(runner, request)
    except StatementError as error:
        raise CommandError(f"{request.script.name}, {error}") from error
    except StreamFailedError as error:
        raise CommandError(f"{request.script.name}, {error}{where}") from error
    except (Py4JError, ConnectionError) as error:
        raise CommandError(
            f"Spark's JVM has ended{where}; run the command again: it continues at its last batch"
        ) from error


def _run(runner: "Runner", request: Request) -> None:
    from barnabas.spark.sql.lag import LagReader

    for answer in runner.execute():
        show_answer(answer, as_json=request.as_json)
    if not runner.status.streams:
        return
    reader = LagReader(request.place.brokers)

    def show(status: "Status") -> None:
        lags = lags_of(status, reader, status.bootstrap)
        if request.as_json:
            say_now(document(status, lags))
        else:
            show_lines(status, lags)

    runner.follow(show, request.show_every_s)
    if not request.as_json:
        say(f"Next: barnabas sql status --state {shlex.quote(str(request.place.folder))}")


def say_now(value: object) -> None:
    """Print a document and flush it, for readers of a pipe."""
    print_json(value)
    sys.stdout.flush()


def prepare(spark: "SparkSession", request: Request) -> None:
    """Make the connector, the topics to write to and the database of topics ready."""
    from barnabas.spark import register
    from barnabas.spark.sql.output_topics import create_missing, output_topics

    register(spark)
    made = create_missing(request.place.brokers, output_topics(request.script.statements))
    if made and not request.as_json:
        warn(f"Created {plural(len(made), 'topic')}: {', '.join(made)}")
    if any(names_database(each) for each in request.script.statements):
        from barnabas.spark.sql.topic_tables import register_topics

        left_out = register_topics(spark, request.place.brokers).without_table
        if left_out:
            warn(
                f"No table for {', '.join(left_out)}: another topic has taken the name; read it "
                "with CREATE SOURCE name FROM TOPIC"
            )


def names_database(statement: "Statement") -> bool:
    """Return whether a statement may read the database of topics, which takes time to create."""
    from barnabas.spark.sql.statements import CreateStream, SparkStatement

    match statement:
        case SparkStatement(_, text):
            return re.search(r"\bbarnabas\b(?!\s+OPTIONS)", text, re.IGNORECASE) is not None
        case CreateStream(query=query):
            return re.search(r"\bbarnabas\b", query, re.IGNORECASE) is not None
        case _:
            return False


def judged(text: str) -> tuple[str, int | None]:
    """Return why a stream stopped, and how many restarts are allowed."""
    from barnabas.telemetry.findings.causes import Remedy, explain

    cause = explain(text)
    attempts = {
        Remedy.RETRY: None,
        Remedy.RETRY_A_FEW_TIMES: ATTEMPTS_AFTER_A_DEATH,
        Remedy.GIVE_UP: 0,
    }
    return cause.sentence, attempts[cause.remedy]


def show_answer(answer: "Answer", *, as_json: bool) -> None:
    """Print the rows of a statement."""
    if as_json:
        say_now([dict(zip(answer.columns, map(_value, row), strict=True)) for row in answer.rows])
    else:
        print_table(answer.columns, [tuple(map(_cell, row)) for row in answer.rows])
        sys.stdout.flush()
    if answer.is_cut:
        warn(f"Only the first {plural(len(answer.rows), 'row')}; a LIMIT says how many to show")


def _value(value: Any) -> object:  # noqa: ANN401 - whatever a column holds
    return plain(bytes(value) if isinstance(value, bytearray) else value)


def _cell(value: Any) -> object:  # noqa: ANN401 - whatever a column holds
    return cell(bytes(value) if isinstance(value, bytearray) else value)
