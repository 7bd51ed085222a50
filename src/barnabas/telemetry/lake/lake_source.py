"""A Spark source that reads the silver table as a stream of packets: `format("barnabas-lake")`.

A packet is some rows of one window of event time and one bucket of GPUs, as Arrow bytes. Spark
groups, stores and closes windows as with any stream, but moves packets instead of rows: so two
cores are enough for a fleet of thousands of cards.

An offset is the number of a complete batch, so that a reader takes complete batches of the writing
job: Spark's own file source would take single files, and its watermark would be ahead of the rest
of their batch. Each batch also has its event time as an empty packet: the progress of the writer's
event time, even if it wrote no rows (a tick writes none).

Options: lake, columns (comma-separated), widthSeconds, buckets, batchesPerTrigger, rowsPerTrigger,
tasks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.telemetry.lake.lake import Lake
from barnabas.telemetry.samples.duplicates import text_numbers

TABLE = "silver"
NONE_YET = -1
SCHEMA = "timestamp timestamp, bucket int, packet binary"
PACKETS = pa.schema(
    [
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("bucket", pa.int32()),
        ("packet", pa.binary()),
    ]
)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")

Offset = dict[str, int]


@dataclass(frozen=True)
class Shape:
    """The settings of packing."""

    columns: tuple[str, ...]
    width_s: int
    buckets: int


@dataclass(frozen=True)
class Limits:
    """The size of a micro-batch: at least one batch of any size."""

    batches: int
    rows: int
    """A window may close with each row, and all closing windows are collected together."""


@dataclass(frozen=True)
class Piece(InputPartition):
    """Some files of silver, and their event times."""

    files: tuple[str, ...]
    event_times_us: tuple[int, ...] = ()


class RetainedError(Exception):
    """A job would start with batches that retention has removed."""


class LakeSource(DataSource):
    """The Spark data source behind `format("barnabas-lake")`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "barnabas-lake"

    def schema(self) -> str:
        """Return the columns of packets."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of spark.readStream."""
        given = self.options
        shape = Shape(
            tuple(given["columns"].split(",")), int(given["widthSeconds"]), int(given["buckets"])
        )
        limits = Limits(int(given["batchesPerTrigger"]), int(given["rowsPerTrigger"]))
        return LakeReader(Lake(given["lake"]), shape, limits, int(given["tasks"]))


class LakeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads complete batches in their order."""

    def __init__(self, lake: Lake, shape: Shape, limits: Limits, tasks: int) -> None:
        self._lake = lake
        self._shape = shape
        self._limits = limits
        self._tasks = tasks
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Begin with the first batch."""
        return {"batch": NONE_YET}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return no limit: `latestOffset` counts batches, and Spark's limits count rows."""
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the last batch that the next micro-batch takes."""
        last = start["batch"]
        end = last + self._limits.batches
        if self._target is not None:
            end = min(end, self._target)
        return {"batch": self._complete_until(last, end)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end: the next run reads batches that complete later."""
        self._target = self._lake.last_batch(TABLE)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Divide the files of some batches among tasks; the first also sends the event time."""
        files: list[str] = []
        times: list[int] = []
        for number in range(start["batch"] + 1, end["batch"] + 1):
            note = self._lake.note(TABLE, number)
            assert note is not None, f"batch {number} of {TABLE} was complete"
            files += [file["name"] for file in note["files"]]
            if note["event_us"] is not None:
                times.append(note["event_us"])
        first = Piece(tuple(files[:: self._tasks]), tuple(times))
        others = (tuple(files[n :: self._tasks]) for n in range(1, self._tasks))
        return [first, *(Piece(share) for share in others if share)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the packets of some files, in a worker."""
        assert isinstance(partition, Piece)
        if partition.files:
            wanted = list(self._shape.columns)
            rows = self._lake.read_table(TABLE, partition.files, wanted)
            yield from packets(rows, self._shape)
        if partition.event_times_us:
            time_us = max(partition.event_times_us)
            yield _batch([time_us], [None], [None])

    def _complete_until(self, last: int, end: int) -> int:
        if last == NONE_YET and self._lake.note(TABLE, 0) is None:
            newest = self._lake.last_batch(TABLE)
            if newest > 0:
                raise RetainedError(
                    f"The first batches of {TABLE} in {self._lake.root} were removed by retention, "
                    f"and this job has no checkpoint to go on from (batch {newest} is the newest): "
                    "restore its checkpoint, or start with an empty lake"
                )
        rows = 0
        while last < end:
            note = self._lake.note(TABLE, last + 1)
            if note is None or (rows and rows + note["rows"] > self._limits.rows):
                break
            rows += note["rows"]
            last += 1
        return last


def packets(rows: pa.Table, shape: Shape) -> Iterator[pa.RecordBatch]:
    """Pack rows; the time of a packet is that of its newest row."""
    if rows.num_rows == 0:
        return
    time_us = rows["timestamp"].cast(pa.int64()).to_numpy()
    bucket = (text_numbers(rows["gpu_id"].combine_chunks()) % np.uint64(shape.buckets)).astype(
        np.int64
    )
    place = time_us // (shape.width_s * 1_000_000) * shape.buckets + bucket
    order = np.argsort(place, kind="stable")
    rows, place, time_us = rows.take(pa.array(order)), place[order], time_us[order]
    starts = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    sizes = np.diff(np.append(starts, len(place)))
    newest = np.maximum.reduceat(time_us, starts)
    packed = [_packed(rows.slice(start, size)) for start, size in zip(starts, sizes, strict=True)]
    yield _batch(newest, (place[starts] % shape.buckets).astype(np.int32), packed)


def unpacked(contents: Iterable[bytes]) -> pa.Table:
    """Return the rows of some packets; columns that an earlier release lacks are null."""
    found = [pa.ipc.open_stream(content).read_all() for content in contents]
    return pa.concat_tables(found, promote_options="default")


def _packed(rows: pa.Table) -> bytes:
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, rows.schema, options=_COMPRESSED) as stream:
        stream.write_table(rows)
    return bytes(target.getvalue())


def _batch(time_us: object, bucket: object, packed: object) -> pa.RecordBatch:
    columns = [pa.array(time_us).cast(PACKETS.field(0).type)]
    columns += [pa.array(bucket, pa.int32()), pa.array(packed, pa.binary())]
    return pa.record_batch(columns, schema=PACKETS)
