"""The write side: `df.write.format("barnabas")` and `df.writeStream.format("barnabas")`.

Exactly once, whatever is killed. Each task writes its rows in one transaction of its own, with a
marker in it that names the batch (`transactional.py`), and hands the open transaction to the
driver. The driver ends all of them once Spark says that every task is done, before the batch
counts as done. So:

- A task that fails leaves an open transaction, which its next attempt aborts before it writes.
- Of two attempts at once, the one that asked last fences the other; only one is ever committed.
- A driver that dies in between leaves some transactions committed and some open. The batch
  is replayed: tasks whose marker names it skip their rows, the others abort and write theirs.

Readers must read committed rows only (`isolation.level=read_committed`, librdkafka's default).

What it rests on: a replayed batch hands each sink task the same rows. It does when the source
is replayable and the plan between source and sink is the same; it does not when
spark.sql.shuffle.partitions or the shape of the query changes while a batch is unfinished, or when
rows depend on rand() or the clock. A query's markers live as long as
offsets.retention.minutes after its last batch; a query that is replayed after a longer pause
writes its last batch again. A batch must end within kafka.transaction.timeout.ms.

With exactlyOnce=false rows are written by an idempotent producer without transactions: a retried
task or a replayed batch writes its rows again, as Spark's own connector does.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.model.errors import ErrorCode
from barnabas.spark.cluster import Cluster, cluster_at
from barnabas.spark.sending import DeliveryError, Sender, name_of
from barnabas.spark.sink_columns import Columns, find_columns
from barnabas.spark.sink_options import SinkOptions, check_properties, parse_options
from barnabas.spark.transactional import Ticket, Transaction, delete_marker, end
from barnabas.wire.failures import LinkError

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
TIDY_PATIENCE_MS = 1000
SPREAD = 0xFFFF
"""Tasks begin anywhere, lest rows without a key crowd the first partition."""


@dataclass
class Written(WriterCommitMessage):
    """What a task did."""

    rows: int
    bytes: int
    ticket: Ticket | None = None
    """The transaction to commit; None where there is nothing to."""
    was_written_before: bool = False
    """Whether an earlier attempt had committed these rows already."""


class Sink:
    """What batch and stream writers have in common."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Check columns and options: this runs where the query is planned."""
        self._options = parse_options(options)
        self._columns = find_columns(
            schema, topic=self._options.topic, headers=self._options.include_headers
        )
        check_properties(self._options)

    def _write(self, iterator: Iterator["pa.RecordBatch"], job: str, version: int) -> Written:
        if not self._options.plaintext:
            from barnabas.spark.librdkafka_sink import write_by_librdkafka

            rows = write_by_librdkafka(iterator, self._options, self._columns)
            return Written(rows=rows, bytes=0)
        task = TaskContext.get()
        partition = 0 if task is None else task.partitionId()
        return Task(self._options, self._columns).write(
            iterator, f"{self._options.id_prefix}-{job}-{partition}", version
        )

    def _commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """End all transactions; one that is refused does not keep the others open."""
        cluster = _cluster(self._options)
        patience_ms = self._options.delivery.delivery_timeout_ms
        failures = []
        for ticket in _tickets(messages):
            code = end(cluster, ticket, patience_ms, commit=True)
            if code != ErrorCode.NONE:
                failures.append(f"{ticket.transactional_id}: {name_of(code)}")
        if failures:
            raise DeliveryError(
                f"{len(failures)} transactions could not be committed ({failures[0]}); the batch "
                "is written again. If it takes longer than kafka.transaction.timeout.ms "
                f"({self._options.transaction_timeout_ms}), make batches smaller or raise it; "
                "speculative execution must be off"
            )

    def _abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort what tasks handed over; what stays open is aborted by the next attempt."""
        cluster = _cluster(self._options)
        # Spark reports why the batch failed; that a broker is gone must not hide it.
        with contextlib.suppress(LinkError):
            for ticket in _tickets(messages):
                end(cluster, ticket, self._options.delivery.request_timeout_ms, commit=False)


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
        self._job, self._version = self._options.application or (uuid.uuid4().hex, 0)

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> Written:
        """Write the rows of one task."""
        return self._write(iterator, self._job, self._version)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the rows of all tasks visible."""
        self._commit(messages)
        if self._options.application is None:
            self._tidy(messages)

    def _tidy(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the markers of a job that never runs again; left alone, they expire."""
        cluster = _cluster(self._options)
        with contextlib.suppress(LinkError):
            for ticket in _tickets(messages):
                delete_marker(cluster, ticket.transactional_id, TIDY_PATIENCE_MS)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop the rows of all tasks."""
        self._abort(messages)


class StreamWriter(Sink, DataSourceStreamArrowWriter):
    """Writes a stream to topics."""

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> Written:
        """Write the rows of one task of one micro-batch."""
        task = TaskContext.get()
        assert task is not None, "a stream is written by tasks"
        query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
        assert query is not None
        assert batch is not None
        return self._write(iterator, query, int(batch))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the rows of all tasks visible."""
        del batchId
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop the rows of all tasks."""
        del batchId
        self._abort(messages)


class Task:
    """What one task does with its rows."""

    def __init__(self, options: SinkOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns
        self._cluster = _cluster(options)
        self._transaction: Transaction | None = None

    def write(
        self, iterator: Iterator["pa.RecordBatch"], transactional_id: str, version: int
    ) -> Written:
        """Write all rows; return an open transaction, if there is one."""
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return Written(0, 0)
        if self._options.exactly_once:
            self._transaction = self._new_transaction(transactional_id)
            if self._transaction.begin() > version:
                return Written(0, 0, was_written_before=True)
        try:
            return self._write_all(first, iterator, version)
        except BaseException:
            self._give_up()
            raise

    def _write_all(
        self, first: "pa.RecordBatch", rest: Iterator["pa.RecordBatch"], version: int
    ) -> Written:
        from barnabas.spark.batching import Batcher

        sender = self._sender()
        batcher = Batcher(
            self._columns,
            self._options.topic,
            self._options.batch_bytes,
            lambda topic: self._cluster.topic(topic).partitions,
            time.time_ns() & SPREAD,
        )
        rows, batch, marked = 0, first, None
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
        assert marked is not None
        self._transaction.mark(marked, version + 1)
        return Written(rows, sender.sent_bytes, self._transaction.ticket)

    def _sender(self) -> Sender:
        from barnabas.spark.encoding import Producer

        delivery = self._options.delivery
        if self._transaction is not None:
            ticket = self._transaction.ticket
            producer = self._transaction.producer
            return Sender(self._cluster, delivery, producer, ticket.transactional_id)
        if delivery.acks != -1 or self._options.properties.get("enable.idempotence") == "false":
            return Sender(self._cluster, delivery, Producer(-1, -1, transactional=False))
        deadline_s = time.monotonic() + delivery.delivery_timeout_ms / 1000
        known = self._cluster.producer_id(deadline_s)
        return Sender(self._cluster, delivery, Producer(*known, transactional=False))

    def _new_transaction(self, transactional_id: str) -> Transaction:
        return Transaction(
            self._cluster,
            transactional_id,
            self._options.transaction_timeout_ms,
            self._options.delivery.delivery_timeout_ms,
        )

    def _give_up(self) -> None:
        """Leave no answer on its way to the next task, and no transaction open if it can be."""
        self._cluster.forget()
        if self._transaction is not None:
            try:
                end(self._cluster, self._transaction.ticket, 0, commit=False)
            except Exception:  # noqa: BLE001 - the next attempt aborts it; the cause matters more
                self._cluster.forget()


def _cluster(options: SinkOptions) -> Cluster:
    timeout_s = options.delivery.request_timeout_ms / 1000
    return cluster_at(options.bootstrap, options.client_id, timeout_s)


def _tickets(messages: list[WriterCommitMessage | None]) -> list[Ticket]:
    written = [each for each in messages if isinstance(each, Written)]
    return [each.ticket for each in written if each.ticket is not None]
