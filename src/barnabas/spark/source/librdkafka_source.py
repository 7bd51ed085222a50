"""Reads the records of one split with librdkafka, for settings that only it supports.

These are Kerberos, key stores and OAUTHBEARER with a token endpoint; our own connections support
the rest of TLS and SASL. It is slower, since every record becomes a Python object, but it returns
the same columns. The consumer joins no group; it is kept for the next task of this worker.

Each call asks for the rest of the split, so that it returns as soon as that is available. If
offsets are missing (compaction, transaction markers), fewer records arrive; then the call returns
after a short wait. The broker does not wait longer either: librdkafka fetches ahead, and at the end
of a log the next split's first Fetch would queue behind one that waits for records.
"""

import time
from collections.abc import Iterator, Mapping

import pyarrow as pa
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from barnabas.spark import schema
from barnabas.spark.query_errors import FetchError
from barnabas.spark.source.data_loss import report
from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.split_planning import (
    OffsetRange,
    deleted_records_message,
    truncation_message,
)

MESSAGES_MAX = 10_000
WAIT_S = 0.05
FETCH_WAIT_MS = 10
LOOKUP_TIMEOUT_S = 15.0

_consumers: dict[tuple[tuple[str, str], ...], Consumer] = {}


def consumed(split: OffsetRange, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Return the records of a split."""
    consumer = _consumer(settings)
    consumer.assign([ClientPartition(*split.place, split.start)])
    try:
        yield from _Consumption(split, settings, consumer).rows()
    finally:
        consumer.unassign()


def _consumer(settings: ReadSettings) -> Consumer:
    properties = consumer_properties(settings)
    key = tuple(sorted((name, str(value)) for name, value in properties.items()))
    if key not in _consumers:
        _consumers[key] = Consumer(properties)
    return _consumers[key]


def consumer_properties(settings: ReadSettings) -> dict[str, str | int | bool]:
    """Return the properties of the consumer."""
    level = "read_committed" if settings.is_read_committed else "read_uncommitted"
    return {
        "log_level": 0,
        "check.crcs": True,
        "fetch.wait.max.ms": FETCH_WAIT_MS,
        **settings.client,
        "group.id": settings.group_id,
        "isolation.level": level,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
    }


class _Consumption:
    """One read of one split."""

    def __init__(self, split: OffsetRange, settings: ReadSettings, consumer: Consumer) -> None:
        self._place, self._next, self._end = split
        self._settings = settings
        self._consumer = consumer
        self._restart_timeout()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Return records up to the end, or up to the last record before it."""
        while self._next < self._end:
            got = self._consumer.consume(min(MESSAGES_MAX, self._end - self._next), WAIT_S)
            records = [each for each in got if self._is_record(each)]
            if records:
                yield to_arrow(records, include_headers=self._settings.include_headers)
            elif not got:
                self._out_of_patience("no answer")

    def _is_record(self, message: Message) -> bool:
        """Return whether a message is a wanted record; handle errors and other events."""
        error = message.error()
        if error is None:
            wanted: bool = self._next <= message.offset() < self._end
            self._next = max(self._next, message.offset() + 1)
            self._restart_timeout()
            return wanted
        if error.code() == KafkaError._PARTITION_EOF:
            self._at_log_end(message.offset())
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._out_of_range()
        elif error.fatal() or not error.retriable():
            self._out_of_patience(error.str())
        return False

    def _at_log_end(self, offset: int) -> None:
        if offset >= self._end:
            self._next = self._end
        elif time.monotonic() > self._deadline_s:
            self._lost(truncation_message(self._place, offset, self._end), self._end)

    def _out_of_range(self) -> None:
        earliest, latest = self._consumer.get_watermark_offsets(
            ClientPartition(*self._place), timeout=LOOKUP_TIMEOUT_S
        )
        if earliest > self._next:
            first = min(earliest, self._end)
            self._lost(deleted_records_message(self._place, self._next, first), first)
        else:
            self._lost(truncation_message(self._place, latest, self._end), self._end)
        self._consumer.assign([ClientPartition(*self._place, self._next)])

    def _lost(self, loss: str, go_on_at: int) -> None:
        report([loss], fail=self._settings.fail_on_data_loss)
        self._next = go_on_at

    def _out_of_patience(self, why: str) -> None:
        if time.monotonic() > self._deadline_s:
            raise FetchError(
                f"{self._place} could not be read at offset {self._next} for "
                f"{self._settings.patience_ms / 1000:.0f} s: {why}. Check the brokers, or raise "
                "the option kafkaConsumer.pollTimeoutMs"
            )

    def _restart_timeout(self) -> None:
        self._deadline_s = time.monotonic() + self._settings.patience_ms / 1000


def to_arrow(records: list[Message], *, include_headers: bool) -> pa.RecordBatch:
    """Return messages as columns."""
    times = [record.timestamp() for record in records]
    columns: Mapping[str, list[object]] = {
        "key": [record.key() for record in records],
        "value": [record.value() for record in records],
        "topic": [record.topic() for record in records],
        "partition": [record.partition() for record in records],
        "offset": [record.offset() for record in records],
        "timestamp": [time_ms * 1000 for _, time_ms in times],
        "timestampType": [int(kind == TIMESTAMP_LOG_APPEND_TIME) for kind, _ in times],
    }
    if include_headers:
        columns = {**columns, "headers": [_headers(record) for record in records]}
    return pa.RecordBatch.from_pydict(
        columns, schema=schema.arrow_schema(include_headers=include_headers)
    )


def _headers(record: Message) -> list[dict[str, object]] | None:
    headers = record.headers()
    return [{"key": name, "value": value} for name, value in headers] if headers else None
