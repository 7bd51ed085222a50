"""Turns Arrow batches of rows into encoded record batches, one or more per partition.

Steps for each Arrow batch: take the columns of the sink, find the topic and partition of every row,
group the rows by partition (their order stays), divide them into chunks of `batch.size` bytes, and
encode.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint, fingerprint
from barnabas.spark.sink.partitioning import Rotation, keyed_partitions
from barnabas.spark.sink.record_encoding import (
    RECORD_OVERHEAD_BYTES,
    Chunk,
    Encoded,
    Integers,
    RowError,
    Rows,
    as_binary,
    encode,
    header_column,
    lengths_and_sizes,
)
from barnabas.spark.sink.sink_columns import Columns

SLICE_BYTES = 4 << 20
"""Arrow batches are encoded in slices of about this size, one while another is sent."""


class Batcher:
    """Turns Arrow batches into record batches."""

    def __init__(
        self,
        columns: Columns,
        topic: str | None,
        batch_bytes: int,
        partition_count: Callable[[str], int],
        first_partition: int,
        *,
        fingerprints: bool = False,
    ) -> None:
        """Take the topic that overrides the column, and the first partition of keyless rows."""
        self._fingerprints = fingerprints
        self.read = NO_ROWS
        """The fingerprint of all rows so far, if fingerprints are needed."""
        self._columns = columns
        self._topic = topic
        self._batch_bytes = batch_bytes
        self._partition_count = partition_count
        self._rotation = Rotation(first_partition, batch_bytes)

    def encoded(self, batch: pa.RecordBatch, now_ms: int) -> Iterator[list[Encoded]]:
        """Return the record batches of an Arrow batch, a slice at a time."""
        for piece in _slices(batch):
            rows = self._rows(piece, now_ms)
            if self._fingerprints:
                self.read = self.read.plus(fingerprint(rows.values, rows.keys))
            sizes = _sizes(rows)
            places = self._places(piece, rows, sizes)
            rows, order = _sorted(rows, places)
            chunks = list(self._chunks(places, order, sizes))
            yield encode(rows, chunks, now_ms)

    def _rows(self, batch: pa.RecordBatch, now_ms: int) -> Rows:
        columns = self._columns
        headers = None if columns.headers is None else batch.column(columns.headers)
        has_headers = (
            headers is not None
            and pc.any(pc.greater(pc.fill_null(pc.list_value_length(headers), 0), 0)).as_py()
        )
        return Rows(
            values=as_binary(batch.column(columns.value)),
            keys=None if columns.key is None else as_binary(batch.column(columns.key)),
            headers=header_column(headers) if has_headers else None,
            timestamps_ms=self._timestamps_ms(batch, now_ms),
        )

    def _timestamps_ms(self, batch: pa.RecordBatch, now_ms: int) -> Integers | None:
        if self._columns.timestamp is None:
            return None
        column = batch.column(self._columns.timestamp).cast(pa.int64())
        times = pc.fill_null(column, now_ms * 1000).to_numpy(zero_copy_only=False)
        found: Integers = times.astype(np.int64) // 1000
        if len(found) and int(found.min()) < 0:
            raise RowError(
                "Column timestamp has a value before 1970, which Kafka cannot store; "
                "correct it, or drop the column"
            )
        return found

    def _places(self, batch: pa.RecordBatch, rows: Rows, sizes: Integers) -> "Places":
        if self._topic is not None:
            return Places(
                [self._topic],
                np.zeros(batch.num_rows, dtype=np.int64),
                self._partitions(self._topic, batch, rows, sizes),
            )
        assert self._columns.topic is not None, "planning refuses a sink without topic"
        names = batch.column(self._columns.topic)
        if names.null_count:
            raise no_topic()
        encoded = names.dictionary_encode()
        topics = encoded.dictionary.to_pylist()
        indexes = encoded.indices.to_numpy().astype(np.int64)
        return Places(
            topics, indexes, self._partitions_by_topic(topics, indexes, batch, rows, sizes)
        )

    def _partitions_by_topic(
        self,
        topics: list[str],
        indexes: Integers,
        batch: pa.RecordBatch,
        rows: Rows,
        sizes: Integers,
    ) -> Integers:
        partitions = np.zeros(batch.num_rows, dtype=np.int64)
        for index, topic in enumerate(topics):
            chosen = np.flatnonzero(indexes == index)
            picked = pa.array(chosen)
            few = Rows(
                rows.values, None if rows.keys is None else rows.keys.take(picked), None, None
            )
            partitions[chosen] = self._partitions(topic, batch.take(picked), few, sizes[chosen])
        return partitions

    def _partitions(
        self, topic: str, batch: pa.RecordBatch, rows: Rows, sizes: Integers
    ) -> Integers:
        count = self._partition_count(topic)
        if self._columns.partition is None:
            return self._defaults(rows, sizes, count)
        column = batch.column(self._columns.partition)
        filled = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
        named: Integers = filled.astype(np.int64)
        unnamed = column.is_null().to_numpy(zero_copy_only=False)
        wrong = named[((named < 0) & ~unnamed) | (named >= count)]
        if len(wrong):
            raise RowError(
                f"A row names partition {wrong[0]} of topic {topic!r}, which has partitions 0 to "
                f"{count - 1}; correct column partition, or add partitions"
            )
        if not unnamed.any():
            return named
        return np.where(unnamed, self._defaults(rows, sizes, count), named)

    def _defaults(self, rows: Rows, sizes: Integers, count: int) -> Integers:
        keys = rows.keys
        if keys is None or keys.null_count == len(keys):
            return self._rotation.partitions(sizes, count)
        partitions = keyed_partitions(keys, count)
        if keys.null_count:
            missing = keys.is_null().to_numpy(zero_copy_only=False)
            partitions[missing] = self._rotation.partitions(sizes[missing], count)
        return partitions

    def _chunks(self, places: "Places", order: Integers, sizes: Integers) -> Iterator[Chunk]:
        """Return runs of rows of one partition, divided before a batch would grow too large."""
        codes = places.codes[order]
        ends = np.cumsum(sizes[order])
        bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        for start, stop in pairwise(bounds):
            topic = places.topics[int(places.topic_indexes[order[start]])]
            partition = int(places.partitions[order[start]])
            while start < stop:
                before = int(ends[start - 1]) if start else 0
                fits = int(np.searchsorted(ends, before + self._batch_bytes, side="right"))
                cut = min(stop, max(start + 1, fits))
                yield Chunk(topic, partition, start, cut)
                start = cut  # noqa: PLW2901 - the rest of the run


def no_topic() -> RowError:
    """Return the error of a row without a topic."""
    return RowError(
        "A row has no topic: column topic is null; filter such rows, or set option topic"
    )


def rows_fingerprint(columns: Columns, batch: pa.RecordBatch) -> Fingerprint:
    """Return the fingerprint of rows that are not written."""
    keys = None if columns.key is None else as_binary(batch.column(columns.key))
    return fingerprint(as_binary(batch.column(columns.value)), keys)


class Places(NamedTuple):
    """The topic and the partition of each row."""

    topics: list[str]
    topic_indexes: Integers
    partitions: Integers

    @property
    def codes(self) -> Integers:
        """A number for each row, the same for rows of the same partition of a topic."""
        return (self.topic_indexes << 32) | self.partitions


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    rows = max(1, int(batch.num_rows * SLICE_BYTES / max(batch.nbytes, 1)))
    # Two slices of medium size are better than a full one and a small rest.
    count = max(1, round(batch.num_rows / rows))
    step = -(-batch.num_rows // count)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _sizes(rows: Rows) -> Integers:
    """Return the maximum number of bytes that each row takes."""
    sizes = lengths_and_sizes(rows.values)[1] + RECORD_OVERHEAD_BYTES
    for column in (rows.keys, rows.headers):
        if column is not None:
            sizes = sizes + lengths_and_sizes(column)[1]
    return sizes


def _sorted(rows: Rows, places: Places) -> tuple[Rows, Integers]:
    """Group rows by partition, in their order."""
    codes = places.codes
    if len(codes) < 2 or bool((codes[1:] >= codes[:-1]).all()):
        return rows, np.arange(len(codes), dtype=np.int64)
    narrow = codes.astype(np.uint16) if int(codes.max()) < 1 << 16 else codes
    order = np.argsort(narrow, kind="stable")
    picked = pa.array(order)
    return (
        Rows(
            rows.values.take(picked),
            None if rows.keys is None else rows.keys.take(picked),
            None if rows.headers is None else rows.headers.take(picked),
            None if rows.timestamps_ms is None else rows.timestamps_ms[order],
        ),
        order,
    )
