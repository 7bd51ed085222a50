"""The writers behind `df.write.format("barnabas")` and `df.writeStream.format("barnabas")`.

Writes exactly once, even if processes are killed (ADR 16). Each attempt of a task writes its rows
in a separate transaction and passes the open transaction to the driver. When Spark reports that
every task is done, the driver decides the batch: one change of the job's record
(`spark/exactly_once/job_register.py`) names all transactions. Then it commits them. So:

- An attempt that fails, is killed or comes too late leaves a transaction that is never decided.
- A driver that dies before the decision has written nothing; the batch is written again.
- A driver that dies after it leaves transactions that the next run commits, even if that run has
  another number of tasks.
- A batch whose number was decided before is compared with its fingerprint and skipped. Other rows,
  or another target, stop the query.

Readers must read committed rows only (`isolation.level=read_committed`, librdkafka's default). A
batch must end within kafka.transaction.timeout.ms. Records live as long as
offsets.retention.minutes after a query's last batch.

With exactlyOnce=false rows are written by an idempotent producer without transactions: a retried
task or a replayed batch writes its rows again, as Spark's own connector does.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.spark.client_properties import security_of
from barnabas.spark.exactly_once.attempts import Attempt, Written, marker_group, this_attempt
from barnabas.spark.exactly_once.committing import Committer
from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint
from barnabas.spark.exactly_once.leases import leased, release
from barnabas.spark.query_errors import ReplayError
from barnabas.spark.sink.batch_sending import Sender
from barnabas.spark.sink.sink_cluster import Cluster, cluster_at
from barnabas.spark.sink.sink_columns import Columns, find_columns
from barnabas.spark.sink.sink_options import SinkOptions, check_properties, parse_options
from barnabas.spark.sink.sink_transactions import Transaction, end
from barnabas.wire.wire_failures import LinkError

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
MARKER_NOTE = "rows of a Spark sink up to this batch"
SPREAD = 0xFFFF
"""Tasks begin with a random partition, so that keyless rows do not all go to the first one."""


class Sink:
    """The common part of batch and stream writers."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Check columns and options, when the query is planned."""
        self._options = parse_options(options)
        self._columns = find_columns(
            schema, topic=self._options.topic, headers=self._options.include_headers
        )
        check_properties(self._options)

    def _write(
        self, iterator: Iterator["pa.RecordBatch"], attempt: Attempt, version: int | None
    ) -> Written:
        if not self._options.is_direct:
            from barnabas.spark.sink.librdkafka_sink import write_by_librdkafka

            rows = write_by_librdkafka(iterator, self._options, self._columns)
            return Written(rows=rows, bytes=0)
        return Task(self._options, self._columns, attempt).write(iterator, version)

    def _commit(self, messages: list[WriterCommitMessage | None], version: int | None) -> None:
        """Decide the batch and commit its transactions."""
        if self._options.exactly_once:
            cluster = _cluster(self._options)
            Committer(cluster, self._options, _reports(messages)).commit(version)

    def _abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the transactions of the tasks; the next run aborts those that stay open."""
        if not self._options.exactly_once:
            return
        cluster = _cluster(self._options)
        # Spark reports why the batch failed; an unreachable broker must not hide the reason.
        with contextlib.suppress(LinkError):
            for report in _reports(messages):
                if report.ticket is not None:
                    patience_ms = self._options.delivery.request_timeout_ms
                    end(cluster, report.ticket, patience_ms, commit=False)


class BatchWriter(Sink, DataSourceArrowWriter):
    """Writes a DataFrame to topics."""

    def __init__(
        self, schema: StructType, options: Mapping[str, str], overwrite: bool = False
    ) -> None:
        """Take the rows' schema and the options; a topic cannot be overwritten."""
        if overwrite:
            raise ValueError(
                "A topic cannot be overwritten; use mode append, or delete the topic first"
            )
        super().__init__(schema, options)
        self._run = uuid.uuid4().hex

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> Written:
        """Write the rows of one task."""
        job, version = self._options.application or ("", None)
        attempt = this_attempt(self._options.id_prefix, job, self._run)
        return self._write(iterator, attempt, version)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the rows of all tasks visible."""
        _, version = self._options.application or ("", None)
        self._commit(messages, version)
        self._release(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop the rows of all tasks."""
        self._abort(messages)
        self._release(messages)

    def _release(self, messages: list[WriterCommitMessage | None]) -> None:
        """Release the leased name, so that the next job can use it."""
        if self._options.exactly_once and self._options.application is None:
            names = [each.attempt.job for each in _reports(messages) if each.attempt is not None]
            release(_cluster(self._options), self._options, self._run, names)


class StreamWriter(Sink, DataSourceStreamArrowWriter):
    """Writes a stream to topics."""

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> Written:
        """Write the rows of one task of one micro-batch."""
        task = TaskContext.get()
        assert task is not None, "a stream is written by tasks"
        query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
        assert query is not None
        assert batch is not None
        return self._write(iterator, this_attempt(self._options.id_prefix, query), int(batch))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the rows of all tasks visible."""
        self._commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop the rows of all tasks."""
        del batchId
        self._abort(messages)


class Task:
    """What one attempt of a task does with its rows."""

    def __init__(self, options: SinkOptions, columns: Columns, attempt: Attempt) -> None:
        self._options = options
        self._columns = columns
        self._attempt = attempt
        self._cluster = _cluster(options)
        self._patience_s = options.delivery.delivery_timeout_ms / 1000
        self._transaction: Transaction | None = None
        self._expected: Fingerprint | None = None

    def write(self, iterator: Iterator["pa.RecordBatch"], version: int | None) -> Written:
        """Write all rows; return an open transaction, if there is one.

        A version is the number of a batch; a job without a name has none.
        """
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            attempt = None if version is None or not self._options.exactly_once else self._attempt
            return Written(0, 0, attempt=attempt)
        try:
            if self._options.exactly_once and not self._begin(first, version):
                return self._skip(first, iterator)
            return self._write_all(first, iterator, version)
        except BaseException:
            self._give_up()
            raise

    def _begin(self, first: "pa.RecordBatch", version: int | None) -> bool:
        """Begin a transaction; return False if the batch was written before."""
        from barnabas.spark.exactly_once.claims import Claimant

        topic = self._first_topic(first)
        self._cluster.topic(topic, self._patience_s)
        if version is None:
            self._attempt = leased(self._cluster, self._options, self._attempt, topic)
        else:
            plan = Claimant(self._cluster, self._options, self._attempt).plan(version, topic)
            self._expected = plan.expected
            if not plan.writes:
                return False
        self._transaction = Transaction(
            self._cluster,
            self._attempt.transactional_id,
            self._options.transaction_timeout_ms,
            self._options.delivery.delivery_timeout_ms,
        )
        self._transaction.fence()
        return True

    def _first_topic(self, first: "pa.RecordBatch") -> str:
        from barnabas.spark.sink.row_batching import no_topic

        if self._options.topic is not None:
            return self._options.topic
        assert self._columns.topic is not None, "planning refuses a sink without topic"
        name = first.column(self._columns.topic)[0].as_py()
        if name is None:
            raise no_topic()
        return str(name)

    def _skip(self, first: "pa.RecordBatch", rest: Iterator["pa.RecordBatch"]) -> Written:
        """Read all rows, so that the driver can compare them with the written rows."""
        from barnabas.spark.sink.row_batching import rows_fingerprint

        read = rows_fingerprint(self._columns, first)
        for batch in rest:
            read = read.plus(rows_fingerprint(self._columns, batch))
        return Written(0, 0, was_written_before=True, read=read, attempt=self._attempt)

    def _write_all(
        self, first: "pa.RecordBatch", rest: Iterator["pa.RecordBatch"], version: int | None
    ) -> Written:
        from barnabas.spark.sink.row_batching import Batcher

        sender = self._sender()
        batcher = Batcher(
            self._columns,
            self._options.topic,
            self._options.batch_bytes,
            lambda topic: self._cluster.topic(topic, self._patience_s).partitions,
            time.time_ns() & SPREAD,
            fingerprints=self._transaction is not None,
        )
        rows, batch, marked = 0, first, ""
        while batch is not None:
            rows += batch.num_rows
            for encoded in batcher.encoded(batch, time.time_ns() // 1_000_000):
                marked = marked or encoded[0].chunk.topic
                if self._transaction is not None:
                    self._transaction.add(
                        (each.chunk.topic, each.chunk.partition) for each in encoded
                    )
                sender.send(encoded)
            batch = next(rest, None)
        sender.flush()
        if self._transaction is None:
            return Written(rows, sender.sent_bytes)
        return self._open_transaction(batcher.read, sender.sent_bytes, marked, version)

    def _open_transaction(
        self, read: Fingerprint, sent_bytes: int, topic: str, version: int | None
    ) -> Written:
        """Commit the marker in the transaction, and pass the transaction to the driver."""
        assert self._transaction is not None
        if self._expected not in {None, read}:
            raise ReplayError(
                f"Task {self._attempt.task} of {self._attempt.job} must write again what it wrote "
                f"of batch {version}, but has other rows now: the number of tasks, the query or "
                "its input has changed. Start the query with the cores, shuffle partitions and "
                "options that it had, until this batch is done"
            )
        if version is not None:
            group = marker_group(self._attempt.job, self._attempt.task)
            self._transaction.mark(group, topic, version + 1, MARKER_NOTE)
        ticket = self._transaction.ticket(self._attempt.task, read)
        return Written(read.rows, sent_bytes, ticket, read=read, attempt=self._attempt, topic=topic)

    def _sender(self) -> Sender:
        from barnabas.spark.sink.record_encoding import Producer

        delivery = self._options.delivery
        if self._transaction is not None:
            producer = self._transaction.producer
            return Sender(self._cluster, delivery, producer, self._attempt.transactional_id)
        if delivery.acks != -1 or self._options.properties.get("enable.idempotence") == "false":
            return Sender(self._cluster, delivery, Producer(-1, -1, transactional=False))
        deadline_s = time.monotonic() + delivery.delivery_timeout_ms / 1000
        known = self._cluster.producer_id(deadline_s)
        return Sender(self._cluster, delivery, Producer(*known, transactional=False))

    def _give_up(self) -> None:
        """Leave no request in flight for the next task, and if possible no open transaction."""
        self._cluster.forget()
        if self._transaction is not None:
            try:
                ticket = self._transaction.ticket(self._attempt.task, NO_ROWS)
                end(self._cluster, ticket, 0, commit=False)
            except Exception:  # noqa: BLE001 - the next run aborts it; the cause matters more
                self._cluster.forget()


def _cluster(options: SinkOptions) -> Cluster:
    timeout_s = options.delivery.request_timeout_ms / 1000
    security = security_of(options.properties)
    return cluster_at(options.bootstrap, options.client_id, timeout_s, security)


def _reports(messages: list[WriterCommitMessage | None]) -> list[Written]:
    return [each for each in messages if isinstance(each, Written)]
