"""Steps of a task attempt before it writes: claim the job for this run, and check what was written.

Only the run that holds the claim can decide a batch. A run that claims a job commits the batch that
the previous run has decided, and aborts its open transactions. Attempts of one run share the claim.
"""

import time
from typing import NamedTuple

from barnabas.spark.exactly_once.attempts import Attempt, marker_group
from barnabas.spark.exactly_once.fingerprint import Fingerprint
from barnabas.spark.exactly_once.job_record import Record
from barnabas.spark.exactly_once.job_register import Register
from barnabas.spark.exactly_once.leftover_endings import abort_leftovers, finish, is_committed
from barnabas.spark.exactly_once.replays import (
    refuse_forgotten,
    refuse_older_version,
    refuse_target,
)
from barnabas.spark.sink.batch_sending import DeliveryError
from barnabas.spark.sink.sink_cluster import Cluster
from barnabas.spark.sink.sink_options import SinkOptions
from barnabas.spark.sink.sink_transactions import marker


class Plan(NamedTuple):
    """What an attempt must do with its rows."""

    writes: bool
    expected: Fingerprint | None = None
    """The fingerprint that the rows must have, if the rows of one task are written again."""


WRITE = Plan(writes=True)
SKIP = Plan(writes=False)


class Claimant:
    """An attempt, before it writes."""

    def __init__(self, cluster: Cluster, options: SinkOptions, attempt: Attempt) -> None:
        self._cluster = cluster
        self._options = options
        self._attempt = attempt
        self._patience_ms = options.delivery.delivery_timeout_ms
        self._register = Register(cluster, attempt.job, self._patience_ms)

    def plan(self, batch: int, topic: str) -> Plan:
        """Return what to do with the rows of a batch; the record is stored under a topic."""
        record = self._register.read()
        if record is not None:
            self._refuse(record, batch)
        if record is None or record.run != self._attempt.run:
            record = self._register.change(topic, self._claimed)
            assert record is not None
        if batch >= record.next_batch:
            return self._unless_older_version_wrote(batch)
        return self._replay(record, batch)

    def _refuse(self, record: Record, batch: int) -> None:
        if self._attempt.run in record.replaced:
            raise DeliveryError(replaced(self._attempt, record))
        if batch < record.next_batch and self._options.check_replays:
            refuse_target(self._attempt.job, record, batch, self._options.target)
            refuse_forgotten(self._attempt.job, record, batch)

    def _claimed(self, old: Record | None) -> Record | None:
        attempt = self._attempt
        if old is None:
            abort_leftovers(self._cluster, self._options.properties, attempt.job)
            return Record(run=attempt.run, owner=attempt.owner)
        if old.run == attempt.run:
            return None
        if attempt.run in old.replaced:
            raise DeliveryError(replaced(attempt, old))
        return taken_over(self._cluster, self._options, attempt, old)

    def _unless_older_version_wrote(self, batch: int) -> Plan:
        group = marker_group(self._attempt.job, self._attempt.task)
        if marker(self._cluster, group, self._patience_ms) <= batch:
            return WRITE
        if self._options.check_replays:
            refuse_older_version(group, batch)
        return SKIP

    def _replay(self, record: Record, batch: int) -> Plan:
        """Skip the rows of a batch that was decided, unless this task's transaction is lost.

        A run does not repeat a batch that it has decided itself: such an attempt is too late, and
        the next batch may be in progress.
        """
        mine = [each for each in record.tickets if each.task == self._attempt.task]
        is_late = record.decided_by == self._attempt.run or batch < record.next_batch - 1
        if is_late or not mine:
            return SKIP
        (ticket,) = mine
        job = self._attempt.job
        if is_committed(self._cluster, job, ticket, record.next_batch, self._patience_ms):
            return SKIP
        return Plan(writes=True, expected=ticket.written)


def replaced(attempt: Attempt, record: Record | None) -> str:
    """Return the message that another run has replaced this one."""
    other = "none" if record is None else record.run
    return (
        f"{attempt.job} belongs to another run now ({other}, this is {attempt.run}); nothing of "
        "this batch was committed by this run. Two queries use the same checkpoint or the same "
        "txnAppId: stop one of them, or give it a transactionalIdPrefix of its own"
    )


def taken_over(
    cluster: Cluster, options: SinkOptions, attempt: Attempt, old: Record, lease_ms: int = 0
) -> Record:
    """Return the record for another run, once the transactions of the previous run have ended."""
    finish(cluster, attempt.job, old, options.delivery.delivery_timeout_ms)
    abort_leftovers(cluster, options.properties, attempt.job, old.tickets)
    expires_ms = time.time_ns() // 1_000_000 + lease_ms if lease_ms else 0
    return old.claimed(attempt.run, attempt.owner, expires_ms)
