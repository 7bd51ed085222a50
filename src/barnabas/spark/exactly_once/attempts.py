"""Data classes for a task attempt and for what the attempt reports to the driver."""

from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint
from barnabas.spark.exactly_once.job_record import Ticket

RUN_ID = "spark.jobGroup.id"
"""Structured Streaming runs the jobs of a query in a group named after the query's run."""

FIRST_RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt of a task of a job."""

    job: str
    """The prefix of the job's transactional ids."""
    run: str
    """The run of the query, or the batch job."""
    owner: str = ""
    """The Spark application and the address of its driver."""
    task: int = 0
    number: int = 0
    """The number of earlier attempts of this task."""
    speculation: bool = False
    """Whether Spark may start attempts without a failure (speculation)."""

    @property
    def transactional_id(self) -> str:
        """The transactional id. Each attempt has another one, so that none fences another."""
        return marker_group(self.job, self.task) + (f".{self.number}" if self.number else "")


@dataclass
class Written(WriterCommitMessage):
    """The result of an attempt."""

    rows: int
    bytes: int
    ticket: Ticket | None = None
    """The transaction to commit; None if there is nothing to."""
    was_written_before: bool = False
    """Whether these rows belong to a batch that was decided before."""
    read: Fingerprint = NO_ROWS
    """The fingerprint of the task's input."""
    attempt: Attempt | None = None
    topic: str = ""
    """A topic that the record of the job can be stored under."""


def marker_group(job: str, task: int) -> str:
    """Return the group that holds the marker of a task."""
    return f"{job}-{task}"


def this_attempt(prefix: str, job: str, run: str | None = None) -> Attempt:
    """Return the attempt that runs here; without a task there is one attempt of one task."""
    task = TaskContext.get()
    if task is None:
        return Attempt(job=f"{prefix}-{job}", run=run or FIRST_RUN)
    properties = {
        name: task.getLocalProperty(f"spark.{name}") or ""
        for name in ("app.id", "driver.host", "driver.port", "speculation")
    }
    return Attempt(
        job=f"{prefix}-{job}",
        run=run or task.getLocalProperty(RUN_ID) or FIRST_RUN,
        owner=f"{properties['app.id']} {properties['driver.host']} {properties['driver.port']}",
        task=task.partitionId(),
        number=task.attemptNumber(),
        speculation=properties["speculation"] == "true",
    )
