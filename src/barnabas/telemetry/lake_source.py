"""A table of the lake as a stream: `format("barnabas-lake")`.

An offset is the number of a complete batch, so that a reader takes batches of the writing job
whole or not at all: Spark's own file source would take single files, and its watermark would run
ahead of the rest of their batch. Each batch also brings its event time as a row of its own, without
a GPU: that is how far the writer's clock of samples is, whether or not it wrote rows (a tick writes
none).

Options: lake, table, columns (comma-separated; the first timestamp among them is event time),
batchesPerTrigger, tasks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.telemetry.lake import Lake, arrow_schema
from barnabas.telemetry.tables import TABLES, Column

NONE_YET = -1
EVENT_TIME = "event_us"
"""Where a note says how far event time is."""

Offset = dict[str, int]


@dataclass(frozen=True)
class Piece(InputPartition):
    """Some files of a table, and the event times that go with them."""

    files: tuple[str, ...]
    event_times_us: tuple[int, ...] = ()


class LakeSource(DataSource):
    """Where Spark enters."""

    @classmethod
    def name(cls) -> str:
        """The word for `format`."""
        return "barnabas-lake"

    def schema(self) -> str:
        """Return the columns that the options name."""
        return ", ".join(f"{each.name} {each.type}" for each in _columns(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of spark.readStream."""
        options = self.options
        return LakeReader(
            Lake(options["lake"]),
            options["table"],
            _columns(options),
            int(options["batchesPerTrigger"]),
            int(options["tasks"]),
        )


class LakeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads complete batches in their order."""

    def __init__(
        self, lake: Lake, table: str, columns: Sequence[Column], batches: int, tasks: int
    ) -> None:
        self._lake = lake
        self._table = table
        self._schema = arrow_schema(columns)
        self._batches = batches
        self._tasks = tasks
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Begin with the first batch."""
        return {"batch": NONE_YET}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Let `latestOffset` count batches by itself: Spark's limits count rows."""
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the last batch that the next micro-batch takes."""
        last = start["batch"]
        end = (
            last + self._batches
            if self._target is None
            else min(last + self._batches, self._target)
        )
        return {"batch": self._complete_until(last, end)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end: batches that complete later are for the next run."""
        self._target = self._lake.last_batch(self._table)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Share out the files of some batches; whoever is first also tells the time."""
        files: list[str] = []
        times: list[int] = []
        for number in range(start["batch"] + 1, end["batch"] + 1):
            note = self._lake.note(self._table, number)
            assert note is not None, f"batch {number} of {self._table} was complete"
            files += [file["name"] for file in note["files"]]
            if note[EVENT_TIME] is not None:
                times.append(note[EVENT_TIME])
        shares = [tuple(files[n :: self._tasks]) for n in range(self._tasks)]
        told = tuple(times)
        return [
            Piece(share, told if n == 0 else ())
            for n, share in enumerate(shares)
            if n == 0 or share
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of some files, in a worker."""
        assert isinstance(partition, Piece)
        names = self._schema.names
        for name in partition.files:
            path = f"{self._table}/{name}"
            with self._lake.files().open_input_file(path) as file:
                for batch in pq.ParquetFile(file).iter_batches(65_536, columns=names):
                    yield batch.select(names).cast(self._schema)
        if partition.event_times_us:
            yield self._clock(max(partition.event_times_us))

    def _clock(self, event_us: int) -> pa.RecordBatch:
        """Return a row that says nothing but the time."""
        columns = [
            pa.array([event_us]).cast(field.type)
            if pa.types.is_timestamp(field.type)
            else pa.nulls(1, field.type)
            for field in self._schema
        ]
        return pa.record_batch(columns, schema=self._schema)

    def _complete_until(self, last: int, end: int) -> int:
        while last < end and self._lake.note(self._table, last + 1) is not None:
            last += 1
        return last


def _columns(options: dict[str, str]) -> list[Column]:
    known = {column.name: column for column in TABLES[options["table"]]}
    return [known[name] for name in options["columns"].split(",")]
