"""The driver's commit of a batch after all its tasks are done: record the decision, then commit.

The decision is one change of the job's record: it names every transaction of the batch. From then
on this driver or the next run must commit the batch. Before that, the batch must not be committed.
"""

from barnabas.spark.exactly_once.attempts import Attempt, Written
from barnabas.spark.exactly_once.claims import replaced
from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint
from barnabas.spark.exactly_once.job_record import Decided, Record, Ticket
from barnabas.spark.exactly_once.job_register import Register
from barnabas.spark.exactly_once.leftover_endings import abort_leftovers, finish
from barnabas.spark.exactly_once.replays import lost, refuse_other_rows, refuse_target
from barnabas.spark.sink.batch_sending import DeliveryError
from barnabas.spark.sink.sink_cluster import Cluster
from barnabas.spark.sink.sink_options import SinkOptions
from barnabas.spark.sink.sink_transactions import is_open


class Committer:
    """The driver's side of one batch."""

    def __init__(self, cluster: Cluster, options: SinkOptions, reports: list[Written]) -> None:
        """Take the reports of the tasks, one of each task."""
        self._cluster = cluster
        self._options = options
        self._reports = reports
        self._patience_ms = options.delivery.delivery_timeout_ms
        self._tickets = tuple(each.ticket for each in reports if each.ticket is not None)
        self._read = _total(reports)

    def commit(self, batch: int | None) -> None:
        """Make the rows of a batch visible; a job without a name has no batch number."""
        attempt = next((each.attempt for each in self._reports if each.attempt), None)
        if attempt is None:
            return
        record = self._record(Register(self._cluster, attempt.job, self._patience_ms), batch)
        if record is None:
            return
        number = record.next_batch - 1 if batch is None else batch
        missing = finish(self._cluster, attempt.job, record, self._patience_ms)
        if missing:
            raise lost(attempt.job, record, [each.task for each in missing])
        if self._options.check_replays:
            refuse_target(attempt.job, record, number, self._options.target)
            refuse_other_rows(attempt.job, record, number, self._read)
        if any(_may_have_rivals(each) for each in self._reports):
            abort_leftovers(self._cluster, self._options.properties, attempt.job)

    def _record(self, register: Register, batch: int | None) -> Record | None:
        """Return the record with the batch decided; None if there is nothing to commit."""
        attempt = next((each.attempt for each in self._reports if each.ticket), None)
        if attempt is not None:
            return self._decided(register, attempt, batch)
        record = None if batch is None else register.read()
        return None if record is None or batch is None or batch >= record.next_batch else record

    def _decided(self, register: Register, attempt: Attempt, batch: int | None) -> Record:
        self._require_open(attempt)
        topic = next(each.topic for each in self._reports if each.ticket is not None)

        def change(old: Record | None) -> Record | None:
            if old is None or old.run != attempt.run:
                raise DeliveryError(replaced(attempt, old))
            number = old.next_batch if batch is None else batch
            if number >= old.next_batch:
                decided = Decided(number, self._read)
                return old.with_batch(decided, self._options.target, self._tickets)
            if set(self._tickets) <= set(old.tickets):
                return None
            if number < old.next_batch - 1:
                raise DeliveryError(replaced(attempt, old))
            return old.with_tickets(self._tickets)

        found = register.change(topic, change)
        assert found is not None
        return found

    def _require_open(self, attempt: Attempt) -> None:
        """Refuse to decide a batch that can no longer be committed completely."""
        gone = [each for each in self._tickets if not self._is_open(each)]
        if gone:
            raise DeliveryError(
                f"{len(gone)} of {len(self._tickets)} transactions of {attempt.job} have ended "
                f"before the batch was done (task {gone[0].task}); nothing of it is visible. If it "
                "takes longer than kafka.transaction.timeout.ms "
                f"({self._options.transaction_timeout_ms}), make batches smaller or raise it; if "
                "another run of the query is active, stop one of the two"
            )

    def _is_open(self, ticket: Ticket) -> bool:
        return is_open(self._cluster, ticket, self._patience_ms)


def _total(reports: list[Written]) -> Fingerprint:
    total = NO_ROWS
    for each in reports:
        total = total.plus(each.read)
    return total


def _may_have_rivals(report: Written) -> bool:
    """Return whether other attempts of a task may have left a transaction open."""
    attempt = report.attempt
    return attempt is not None and (attempt.number > 0 or attempt.speculation)
