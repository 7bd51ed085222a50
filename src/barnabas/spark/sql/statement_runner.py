"""Runs a file of statements: each statement once, in order, and its streams until they are stopped.

A stream whose broker is unreachable is restarted with growing delays; any other failure stops all
streams and is raised. A restart continues from the checkpoint: no row is lost or written twice.
With `once`, a stream processes all present records before the next statement runs.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.spark.sql import functions
from barnabas.spark.sql.run_status import (
    Status,
    StreamStatus,
    is_complete,
    measured,
    moment,
    write_status,
)
from barnabas.spark.sql.sql_error_lines import located
from barnabas.spark.sql.sql_sources import create_source
from barnabas.spark.sql.statements import (
    CreateFunction,
    CreateSource,
    CreateStream,
    Into,
    SparkStatement,
    Statement,
)
from barnabas.spark.sql.streams import Place, Stream, create_stream, dead_letter_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.speculation": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
"""A kill in the first batch leaves an incomplete checkpoint, from which Spark does not start."""
POLL_S = 0.2
NOTE_EVERY_S = 1.0
STOP_PATIENCE_S = 30.0
BACKOFF_MAX_S = 60.0
ROWS_SHOWN = 1_000


class StreamFailedError(Exception):
    """A stream failed for a reason that a restart cannot cure."""


class FailureJudge(Protocol):
    """Interprets a failure of Spark."""

    def __call__(self, text: str) -> tuple[str, int | None]:
        """Return a sentence, and how many restarts in a row can help; None means no limit."""


class Answer(NamedTuple):
    """The rows that a statement returned."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    is_cut: bool
    """Whether there are more rows."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A file of statements, and the folder of its modules."""

    name: str
    folder: Path
    statements: Sequence[Statement]


@dataclass
class Running:
    """A stream and its present query."""

    stream: Stream
    status: StreamStatus
    query: "StreamingQuery | None" = None
    start_at_s: float = 0.0
    failures: int = 0
    """The number of failures without a batch in between."""
    seen: tuple[str, int] = ("", -1)
    """The run and the number of the last batch that was counted."""

    def measure(self) -> None:
        """Process the reports that arrived since the last call."""
        if self.query is None:
            return
        for report in filter(is_complete, reports_of(self.query)):
            run, batch = str(report["runId"]), int(report["batchId"])
            if run != self.seen[0] or batch > self.seen[1]:
                self.seen = (run, batch)
                self.failures = 0
                self.status = replace(measured(self.status, report), error=None)


class Runner:
    """Runs one script in one session."""

    def __init__(
        self,
        spark: "SparkSession",
        script: Script,
        place: Place,
        judge: FailureJudge,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = spark
        self._script = script
        self._place = place
        self._judge = judge
        self._now_s = now_s
        self._started = moment()
        self._streams: list[Running] = []
        self.stop_requested = False

    def request_stop(self) -> None:
        """Stop all streams. Safe in a signal handler."""
        self.stop_requested = True

    @property
    def status(self) -> Status:
        """The progress of the streams."""
        return Status(
            file=self._script.name,
            bootstrap=self._place.brokers["kafka.bootstrap.servers"],
            started=self._started,
            updated=moment(),
            streams=tuple(each.status for each in self._streams),
        )

    def execute(self) -> Iterator[Answer]:
        """Run the statements in order; yield the rows of each that has rows to show."""
        try:
            for each in self._script.statements:
                if self.stop_requested:
                    return
                yield from self._execute(each)
        except BaseException:
            self.stop()
            raise
        finally:
            self._note()

    def follow(self, show: Callable[[Status], None], interval_s: float) -> None:
        """Supervise the streams until they are done or stopped."""
        next_note_s = next_show_s = 0.0
        try:
            while not self.stop_requested and any(
                self._should_continue(each) for each in self._streams
            ):
                self._supervise()
                if self._now_s() >= next_note_s:
                    status = self._note()
                    next_note_s = self._now_s() + NOTE_EVERY_S
                    if self._now_s() >= next_show_s:
                        show(status)
                        next_show_s = self._now_s() + interval_s
                time.sleep(POLL_S)
        finally:
            self.stop()
            show(self._note())

    def stop(self) -> None:
        """Stop the streams, after their present batch if that ends soon.

        An interrupted batch runs again at the next start.
        """
        running = [each for each in self._streams if each.query is not None]
        before = {each.stream.name: last_batch(each.query) for each in running if each.query}
        deadline_s = self._now_s() + STOP_PATIENCE_S
        for each in running:
            assert each.query is not None
            while self._now_s() < deadline_s and is_in_batch(each.query, before[each.stream.name]):
                time.sleep(POLL_S)
            each.query.stop()
            each.measure()
        for each in self._streams:
            if self._should_continue(each):
                each.status = replace(each.status, state="stopped")

    def _execute(self, statement: Statement) -> Iterator[Answer]:
        match statement:
            case CreateFunction():
                functions.create_function(self._spark, statement, self._script.folder)
            case CreateSource():
                with located(statement.line):
                    letters = create_source(self._spark, statement, self._place.brokers)
                if letters is not None:
                    self._add(dead_letter_stream(letters, self._place))
            case CreateStream():
                with located(statement.line):
                    stream = create_stream(self._spark, statement, self._place)
                self._add(stream)
            case SparkStatement(line, text):
                with located(line):
                    self._refresh_tables()
                    answer = answered(self._spark.sql("\n" * (line - 1) + text))
                if answer.columns:
                    yield answer

    def _refresh_tables(self) -> None:
        """Have Spark list the files of the streams' tables again."""
        statements = self._script.statements
        streams = [each for each in statements if isinstance(each, CreateStream)]
        for name in [each.target for each in streams if each.into is Into.TABLE]:
            if self._spark.catalog.tableExists(name):
                self._spark.catalog.refreshTable(name)

    def _add(self, stream: Stream) -> None:
        running = Running(stream, StreamStatus(name=stream.name, into=stream.into))
        self._streams.append(running)
        self._start(running)
        while self._place.once and self._should_continue(running) and not self.stop_requested:
            self._supervise()
            self._note()
            time.sleep(POLL_S)

    def _supervise(self) -> None:
        for each in self._streams:
            if each.query is None:
                if each.status.state == "waiting" and self._now_s() >= each.start_at_s:
                    self._start(each)
            elif not each.query.isActive:
                self._ended(each, each.query)

    def _start(self, each: Running) -> None:
        try:
            each.query = each.stream.start()
        except Exception as error:  # noqa: BLE001 - it is judged like any other failure
            self._failed(each, f"{type(error).__module__}.{type(error).__name__}: {error}")
        else:
            each.status = replace(each.status, state="running")

    def _ended(self, each: Running, query: "StreamingQuery") -> None:
        error = query.exception()
        each.measure()
        each.query = None
        if error is None:
            each.status = replace(each.status, state="done", error=None)
        else:
            self._failed(each, str(error))

    def _failed(self, each: Running, text: str) -> None:
        sentence, starts = self._judge(text)
        each.failures += 1
        if starts is not None and each.failures > starts:
            each.status = replace(each.status, state="failed", error=sentence)
            raise StreamFailedError(
                f"line {each.stream.line}: stream {each.stream.name} stopped: {sentence}"
            )
        restarts = each.status.restarts + 1
        each.status = replace(each.status, state="waiting", error=sentence, restarts=restarts)
        each.start_at_s = self._now_s() + min(BACKOFF_MAX_S, 2.0 ** (each.failures - 1))

    def _note(self) -> Status:
        for each in self._streams:
            each.measure()
        found = self.status
        write_status(self._place.folder, found)
        return found

    @staticmethod
    def _should_continue(each: Running) -> bool:
        return each.status.state not in {"done", "failed", "stopped"}


def last_batch(query: "StreamingQuery") -> int:
    """Return the number of the last batch that Spark has reported."""
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


def is_in_batch(query: "StreamingQuery", batch_before: int) -> bool:
    """Return whether the batch that ran at the request to stop still runs."""
    is_busy = query.isActive and query.status["isTriggerActive"]
    return bool(is_busy) and last_batch(query) <= batch_before


def answered(frame: "DataFrame") -> Answer:
    """Return the first rows of a statement."""
    if not frame.columns:
        return Answer((), (), is_cut=False)
    found = [tuple(row) for row in frame.take(ROWS_SHOWN + 1)]
    return Answer(frame.columns, found[:ROWS_SHOWN], len(found) > ROWS_SHOWN)


def reports_of(query: "StreamingQuery") -> list[dict[str, Any]]:
    """Return Spark's reports of the last batches of a query."""
    return [json.loads(each.json) for each in query.recentProgress]
