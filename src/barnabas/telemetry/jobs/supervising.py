"""Supervises the jobs: starts them, restarts them if that can help, and stops them cleanly.

A job whose broker is unreachable is restarted with growing delays, without a limit; a job whose
process died is restarted a few times; any other failure stops the other jobs after their present
batch, and is raised. No data is lost: each start continues from the checkpoint.

A stop waits for the running batch. Spark has no such stop: the supervisor waits until a batch is
over, and then stops the query; if the next batch has begun meanwhile, it will run again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.telemetry.findings.causes import Cause, Remedy, explain
from barnabas.telemetry.jobs import pipeline_jobs
from barnabas.telemetry.jobs.job_progress import (
    UPSTREAM,
    Document,
    Followed,
    JobProgress,
    Measured,
    Totals,
    reports_of,
)
from barnabas.telemetry.jobs.pipeline_jobs import Job, JobSettings
from barnabas.telemetry.samples.topic_ends import TopicEnds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BACKOFF_FIRST_S = 1.0
BACKOFF_MAX_S = 60.0
DEATHS_MAX = 5
"""How often in a row a job may lose its process without completing a batch."""
STOP_POLL_S = 0.1
FOLLOWED = ("silver", "gold_10s", "gold_1m", "findings", "alerts")


class JobFailedError(Exception):
    """A job failed for a reason that a retry cannot cure."""


@dataclass(frozen=True)
class Picture:
    """The state to display."""

    jobs: Sequence[JobProgress]
    totals: Totals
    broker_answers: bool
    elapsed_s: float


def backoff_s(failures: int) -> float:
    """Return how long to wait after a number of failures in a row."""
    return float(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** (failures - 1)))


@dataclass
class Watched:
    """One job and its present query."""

    job: Job
    measured: Measured
    query: "StreamingQuery | None" = None
    failures: int = 0
    start_at_s: float = 0.0
    done: bool = False
    last_report: Document | None = field(default=None)

    @property
    def progress(self) -> JobProgress:
        """The state of the job, for display."""
        return self.measured.progress


class Supervisor:
    """Runs jobs until they are done, are stopped, or fail permanently."""

    def __init__(
        self,
        spark: "SparkSession",
        settings: JobSettings,
        chosen: Sequence[Job],
        *,
        once: bool,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._once = once
        self._now_s = now_s
        self._started_s = now_s()
        self.lake = pipeline_jobs.prepare(spark, settings)
        client = {"bootstrap.servers": settings.bootstrap, **settings.client}
        self._ends = TopicEnds(client, settings.topic)
        self._followed = {name: Followed(self.lake, name) for name in FOLLOWED}
        self.watched = [Watched(job, Measured(self.lake, job.name)) for job in chosen]
        self.totals = Totals()
        self.stop_requested = False

    def request_stop(self) -> None:
        """Stop after the present batches. Safe in a signal handler."""
        self.stop_requested = True

    def run(self, show: Callable[[Picture], None], interval_s: float) -> None:
        """Run to the end, showing progress at intervals; raise the failure that a retry cannot
        cure."""
        for stage in self._stages():
            self._run_stage(stage, show, interval_s)
            if self.stop_requested:
                break
        show(self._picture())

    def _stages(self) -> list[list[Watched]]:
        if not self._once:
            return [self.watched]
        numbers = sorted({each.job.stage for each in self.watched})
        return [[each for each in self.watched if each.job.stage == n] for n in numbers]

    def _run_stage(
        self, stage: list[Watched], show: Callable[[Picture], None], interval_s: float
    ) -> None:
        next_show_s = 0.0
        try:
            while not self.stop_requested and not all(each.done for each in stage):
                for each in stage:
                    self._supervise(each)
                if self._now_s() >= next_show_s:
                    show(self._picture())
                    next_show_s = self._now_s() + interval_s
                time.sleep(STOP_POLL_S)
        except JobFailedError:
            self._stop(stage)
            show(self._picture())
            raise
        self._stop(stage)

    def _supervise(self, each: Watched) -> None:
        query = each.query
        if query is None:
            if self._now_s() >= each.start_at_s and not each.done:
                self._launch(each)
            return
        if query.isActive:
            return
        error = query.exception()
        self._measure(each)
        each.query = None
        if error is None:
            each.done = True
            each.progress.state = "done"
        else:
            self._failed(each, explain(str(error)))

    def _launch(self, each: Watched) -> None:
        trigger: dict[str, Any] = {
            "processingTime": f"{round(self._settings.trigger_s * 1000)} milliseconds"
        }
        if self._once:
            trigger = {"availableNow": True}
        try:
            each.query = pipeline_jobs.launched(
                self._spark, self.lake, self._settings, each.job, trigger
            )
            each.progress.state = "running"
        except Exception as error:  # noqa: BLE001 - any failure is reported or retried
            self._failed(each, explain(f"{type(error).__module__}.{type(error).__name__}: {error}"))

    def _failed(self, each: Watched, cause: Cause) -> None:
        each.failures += 1
        each.progress.error = cause.sentence
        each.progress.restarts += 1
        tired = cause.remedy is Remedy.RETRY_A_FEW_TIMES and each.failures > DEATHS_MAX
        if cause.remedy is Remedy.GIVE_UP or tired:
            each.progress.state = "failed"
            each.done = True
            raise JobFailedError(f"{each.job.name} stopped: {cause.sentence}")
        wait_s = backoff_s(each.failures)
        each.start_at_s = self._now_s() + wait_s
        each.progress.state = f"again in {wait_s:.0f} s"

    def _picture(self) -> Picture:
        ends = self._ends.ask()
        for name, followed in self._followed.items():
            for note in followed.new():
                self.totals.take(name, note)
        for each in self.watched:
            self._measure(each)
            upstream = UPSTREAM.get(each.job.name)
            count = None if upstream is None else self._followed[upstream].count
            each.measured.compare(each.last_report, ends, count)
            own = self._followed.get(each.job.name)
            each.measured.read_note(None if own is None else own.latest)
        shown = [each.progress for each in self.watched]
        return Picture(shown, self.totals, self._ends.answered, self._now_s() - self._started_s)

    def _measure(self, each: Watched) -> None:
        if each.query is None:
            return
        reports = reports_of(each.query)
        if each.measured.take(reports, self._now_s()):
            each.failures = 0
            each.progress.error = ""
        complete = [r for r in reports if "addBatch" in r.get("durationMs", {})]
        each.last_report = complete[-1] if complete else each.last_report

    def _stop(self, running: list[Watched]) -> None:
        """Stop queries, each after its batch."""
        waiting = {}
        for each in running:
            if each.query is not None and each.query.isActive:
                each.progress.state = "stopping"
                waiting[each.job.name] = (each.query, _last_batch(each.query))
        while waiting:
            for name, (query, batch) in list(waiting.items()):
                if _is_between(query, batch):
                    query.stop()
                    del waiting[name]
            time.sleep(STOP_POLL_S if waiting else 0)
        for each in running:
            if not each.done:
                each.progress.state = "stopped"


def _last_batch(query: "StreamingQuery") -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


def _is_between(query: "StreamingQuery", batch_before: int) -> bool:
    """Return whether the batch that ran when the stop was requested is over."""
    if not query.isActive or not query.status["isTriggerActive"]:
        return True
    return _last_batch(query) > batch_before
