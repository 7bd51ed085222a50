"""Tests the commit protocol of the sink against a real broker, without Spark (ADR 16)."""

import socket
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from barnabas.admin.transaction_admin import Transactions
from barnabas.spark.exactly_once.attempts import Attempt, Written
from barnabas.spark.exactly_once.committing import Committer
from barnabas.spark.exactly_once.fingerprint import NO_ROWS
from barnabas.spark.exactly_once.job_record import Record, Ticket
from barnabas.spark.exactly_once.job_register import Register
from barnabas.spark.exactly_once.leases import release
from barnabas.spark.query_errors import ReplayError
from barnabas.spark.sink.batch_sending import DeliveryError
from barnabas.spark.sink.sink_cluster import Cluster, cluster_at
from barnabas.spark.sink.sink_columns import Columns
from barnabas.spark.sink.sink_options import SinkOptions, parse_options
from barnabas.spark.sink.sink_transactions import Transaction, end
from barnabas.spark.sink.writers import MARKER_NOTE, Task
from barnabas.testing.broker import Broker
from barnabas.wire.cluster_wire import Wire
from tests.support.loads.topic_reading import committed_records, create_topic

VALUE_ALONE = Columns(0, None, None, None, None, None)
PATIENCE_MS = 20_000
FIRST, SECOND = "first run", "second run"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


class Query:
    """A job whose tasks and driver a test calls one by one."""

    def __init__(self, broker: Broker, name: str, **more: str) -> None:
        self.bootstrap = broker.bootstrap
        self.name = name
        self.topic = more.get("topic") or create_topic(broker.bootstrap, name)
        settings = {"kafka.bootstrap.servers": broker.bootstrap, "topic": self.topic, **more}
        self.options: SinkOptions = parse_options(settings)

    @property
    def cluster(self) -> Cluster:
        return cluster_at(self.options.bootstrap, self.options.client_id)

    def write(self, values: str, batch: int, run: str = FIRST, **more: int) -> Written:
        """Write values, which are single letters, as one attempt of a task."""
        attempt = Attempt(job=self.name, run=run, **more)  # type: ignore[arg-type]
        content = pa.record_batch({"value": pa.array(list(values), pa.string())})
        return Task(self.options, VALUE_ALONE, attempt).write(iter([content]), batch)

    def commit(self, reports: list[Written], batch: int) -> None:
        Committer(self.cluster, self.options, reports).commit(batch)

    def decide(self, reports: list[Written], batch: int) -> None:
        """Act as a driver that dies between its decision and the first commit."""
        committer = Committer(self.cluster, self.options, reports)
        assert reports[0].attempt is not None
        committer._decided(self.register, reports[0].attempt, batch)

    def end(self, ticket: Ticket | None, *, commit: bool) -> None:
        assert ticket is not None
        end(self.cluster, ticket, PATIENCE_MS, commit=commit)

    @property
    def register(self) -> Register:
        return Register(self.cluster, self.name, PATIENCE_MS)

    def values(self) -> str:
        found = committed_records(self.bootstrap, self.topic)
        return "".join(sorted((each.value or b"").decode() for each in found))

    def open_ids(self) -> list[str]:
        with Wire({"bootstrap.servers": self.bootstrap}) as wire:
            listed = Transactions(wire).all(["Ongoing"])
        return [
            each.transactional_id for each in listed if each.transactional_id.startswith(self.name)
        ]


def test_a_half_committed_batch_is_finished_by_a_run_with_another_number_of_tasks(
    broker: Broker,
) -> None:
    query = Query(broker, "half")
    reports = [query.write("ab", 0, task=0), query.write("cd", 0, task=1)]
    query.decide(reports, 0)
    query.end(reports[0].ticket, commit=True)

    again = [query.write(value, 0, SECOND, task=task) for task, value in enumerate("dcba")]
    assert all(each.was_written_before for each in again)
    query.commit(again, 0)
    assert query.values() == "abcd"
    query.commit([query.write("e", 1, SECOND)], 1)
    assert query.values() == "abcde"


def test_an_undecided_batch_is_written_again_by_any_number_of_tasks(
    broker: Broker,
) -> None:
    query = Query(broker, "undecided")
    for task, values in enumerate(("ab", "cd", "ef")):
        query.write(values, 0, task=task)
    query.commit([query.write("abcdef", 0, SECOND)], 0)
    # The transactions of the first run do not hide what the second has written.
    assert query.open_ids() == []
    assert query.values() == "abcdef"


def test_a_replayed_batch_with_other_rows_stops_the_query(broker: Broker) -> None:
    query = Query(broker, "restored")
    query.commit([query.write("a", 0)], 0)
    query.commit([query.write("b", 1)], 1)
    for other in ("bc", "c"):
        report = query.write(other, 1, SECOND)
        with pytest.raises(ReplayError, match="restored from a backup") as caught:
            query.commit([report], 1)
        assert "transactionalIdPrefix" in str(caught.value)
    assert query.values() == "ab"


def test_an_earlier_batch_with_the_same_rows_is_skipped(broker: Broker) -> None:
    query = Query(broker, "earlier")
    for batch, value in enumerate("abc"):
        query.commit([query.write(value, batch)], batch)
    for batch, value in enumerate("abcd"):
        query.commit([query.write(value, batch, SECOND)], batch)
    assert query.values() == "abcd"


def test_a_batch_that_is_too_old_to_compare_stops_the_query(broker: Broker) -> None:
    query = Query(broker, "old")
    query.commit([query.write("z", 99)], 99)
    with pytest.raises(ReplayError, match="too old"):
        query.write("a", 0, SECOND)


def test_a_copied_checkpoint_does_not_write_to_another_topic(broker: Broker) -> None:
    query = Query(broker, "copied")
    query.commit([query.write("a", 0)], 0)
    other = create_topic(broker.bootstrap, "copied-elsewhere")
    copied = Query(broker, "copied", topic=other)
    with pytest.raises(ReplayError, match="written to 'copied' before"):
        copied.write("a", 0, SECOND)
    assert copied.values() == ""


def test_checks_of_replays_can_be_switched_off(broker: Broker) -> None:
    query = Query(broker, "unchecked", checkReplays="false")
    query.commit([query.write("a", 5)], 5)
    for batch, value in ((5, "b"), (1, "c")):
        query.commit([query.write(value, batch, SECOND)], batch)
    assert query.values() == "a"


def test_rows_that_retention_has_removed_from_a_decided_batch_are_missed(broker: Broker) -> None:
    query = Query(broker, "retention")
    reports = [query.write("a", 0, task=0), query.write("b", 0, task=1)]
    query.decide(reports, 0)
    # The source has lost the rows meanwhile, and failOnDataLoss=false: the batch is empty.
    empty = Written(0, 0, attempt=Attempt(job=query.name, run=SECOND))
    with pytest.raises(ReplayError, match="had 2 rows then and has 0 now"):
        query.commit([empty], 0)
    assert query.values() == "ab"


def partly_committed(broker: Broker, name: str) -> Query:
    """Return a query with a decided batch: task 0 is committed, task 1's transaction is lost."""
    query = Query(broker, name)
    reports = [query.write("ab", 0, task=0), query.write("cd", 0, task=1)]
    query.decide(reports, 0)
    query.end(reports[0].ticket, commit=True)
    query.end(reports[1].ticket, commit=False)
    return query


def test_a_task_whose_decided_transaction_timed_out_writes_its_rows_again(broker: Broker) -> None:
    query = partly_committed(broker, "expired")
    again = [query.write("ab", 0, SECOND, task=0), query.write("dc", 0, SECOND, task=1)]
    assert [each.was_written_before for each in again] == [True, False]
    query.commit(again, 0)
    assert query.values() == "abcd"


def test_other_tasks_cannot_write_what_a_lost_transaction_held(broker: Broker) -> None:
    query = partly_committed(broker, "expired-otherwise")
    with pytest.raises(ReplayError, match="has other rows now"):
        query.write("ad", 0, SECOND, task=1)
    with pytest.raises(ReplayError, match="is written in part"):
        query.commit([query.write("abcd", 0, SECOND, task=0)], 0)
    assert query.values() == "ab"


def test_attempts_of_a_task_do_not_fence_each_other(broker: Broker) -> None:
    query = Query(broker, "speculation")
    slow = query.write("ab", 0, number=0, speculation=True)
    copy = query.write("ab", 0, number=1, speculation=True)
    assert copy.ticket != slow.ticket
    query.commit([slow], 0)
    # The transaction of the attempt that lost does not hide later rows.
    assert query.open_ids() == []
    assert query.values() == "ab"


def test_a_stage_that_is_tried_again_counts_once(broker: Broker) -> None:
    query = Query(broker, "stage")
    query.write("ab", 0, task=0)  # the stage fails after it, and Spark drops the report
    # Spark numbers the attempts of the second stage from 0 again.
    again = [query.write("ab", 0, task=0), query.write("cd", 0, task=1)]
    query.commit(again, 0)
    assert query.open_ids() == []
    assert query.values() == "abcd"


def test_a_task_that_was_lost_with_its_executor_counts_once(broker: Broker) -> None:
    query = Query(broker, "executor")
    kept = query.write("ab", 0, task=0)
    query.write("cd", 0, task=1)  # dynamic allocation removes the executor before it reports
    query.commit([kept, query.write("cd", 0, task=1, number=1)], 0)
    assert query.open_ids() == []
    assert query.values() == "abcd"


def test_a_late_attempt_of_the_batch_before_does_not_stop_the_next(broker: Broker) -> None:
    query = Query(broker, "late")
    query.commit([query.write("a", 0)], 0)
    next_batch = query.write("b", 1)
    # It belongs to a decided batch, and begins no transaction that could fence the next.
    assert query.write("a", 0).was_written_before
    query.commit([next_batch], 1)
    assert query.values() == "ab"


def test_a_transaction_that_was_fenced_before_the_decision_fails_the_whole_batch(
    broker: Broker,
) -> None:
    query = Query(broker, "fenced")
    reports = [query.write("a", 0, task=0), query.write("b", 0, task=1)]
    Transaction(query.cluster, f"{query.name}-1", 60_000, PATIENCE_MS).fence()
    with pytest.raises(DeliveryError, match="nothing of it is visible"):
        query.commit(reports, 0)
    query.commit([query.write("ab", 0, SECOND)], 0)
    assert query.values() == "ab"


def test_a_driver_that_was_replaced_cannot_decide(broker: Broker) -> None:
    query = Query(broker, "replaced")
    reports = [query.write("a", 0, task=0), query.write("b", 0, task=1)]
    query.commit([query.write("ab", 0, SECOND, task=2)], 0)
    with pytest.raises(DeliveryError):
        query.commit(reports, 0)
    assert query.values() == "ab"


def test_a_late_task_of_a_run_that_was_replaced_does_not_disturb_the_next(broker: Broker) -> None:
    query = Query(broker, "zombie")
    query.write("a", 0)
    report = query.write("a", 0, SECOND)
    with pytest.raises(DeliveryError, match="belongs to another run now"):
        query.write("a", 0, FIRST, task=1)
    query.commit([report], 0)
    assert query.values() == "a"


def test_a_batch_of_an_older_version_is_not_skipped_in_silence(broker: Broker) -> None:
    query = Query(broker, "upgrade")
    older = Transaction(query.cluster, f"{query.name}-0", 60_000, PATIENCE_MS)
    older.fence()
    older.mark(f"{query.name}-0", query.topic, 8, MARKER_NOTE)
    query.end(older.ticket(0, NO_ROWS), commit=True)

    with pytest.raises(ReplayError, match="older version"):
        query.write("a", 7)
    query.commit([query.write("b", 8)], 8)
    assert query.values() == "b"


def test_a_record_of_many_tasks_is_read_as_it_was_written(broker: Broker) -> None:
    query = Query(broker, "many")
    tickets = tuple(Ticket(f"{query.name}-{task}", 10**12 + task, 7, task) for task in range(500))
    written = query.register.change(query.topic, lambda _: Record(run=FIRST, tickets=tickets))
    assert query.register.read() == written
    assert written is not None
    short = query.register.change(query.topic, lambda old: old and replace(old, tickets=()))
    assert query.register.read() == short
    assert (written.changes, short and short.changes) == (1, 2)


class Jobs(Query):
    """Tests of batch jobs without a name."""

    def job(self, values: str, run: str, owner: str = "") -> Written:
        attempt = Attempt(job="", run=run, owner=owner)
        content = pa.record_batch({"value": pa.array(list(values), pa.string())})
        return Task(self.options, VALUE_ALONE, attempt).write(iter([content]), None)

    def finish(self, reports: list[Written], run: str) -> None:
        Committer(self.cluster, self.options, reports).commit(None)
        release(self.cluster, self.options, run)

    def ids(self) -> list[str]:
        with Wire({"bootstrap.servers": self.bootstrap}) as wire:
            listed = [each.transactional_id for each in Transactions(wire).all()]
        return [each for each in listed if each.startswith(self.options.id_prefix)]


def test_the_next_job_ends_the_transaction_of_a_job_that_was_killed(broker: Broker) -> None:
    jobs = Jobs(broker, "killed-job", transactionalIdPrefix="killed-job")
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    jobs.job("x", "killed", f"app-1 127.0.0.1 {port}")
    jobs.finish([jobs.job("ab", "next", "app-2 127.0.0.1 1")], "next")
    assert jobs.values() == "ab"


def test_jobs_that_run_at_once_do_not_fence_each_other(broker: Broker) -> None:
    jobs = Jobs(broker, "jobs-at-once", transactionalIdPrefix="jobs-at-once")
    with socket.create_server(("127.0.0.1", 0)) as driver:
        port = driver.getsockname()[1]
        one = jobs.job("a", "one", f"app-1 127.0.0.1 {port}")
        two = jobs.job("b", "two", f"app-1 127.0.0.1 {port}")
        other = jobs.job("c", "other", "app-2 127.0.0.1 1")
        for report, run in ((one, "one"), (two, "two"), (other, "other")):
            jobs.finish([report], run)
    assert jobs.values() == "abc"


def test_finished_jobs_leave_their_ids_to_the_next_ones(broker: Broker) -> None:
    jobs = Jobs(broker, "many-jobs", transactionalIdPrefix="many-jobs")
    for number in range(10):
        jobs.finish([jobs.job("a", f"job {number}")], f"job {number}")
    assert jobs.ids() == ["many-jobs-job-0-0", "many-jobs-job-0-batch"]
    assert jobs.values() == "a" * 10
