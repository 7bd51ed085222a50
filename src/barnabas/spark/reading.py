"""What a task does: read one split by the way that the connection allows.

PySpark collects garbage after every task, which takes a worker 40 ms for the modules it has loaded,
more than a small micro-batch takes to read. They stay for good anyway, so they are frozen once: at
the end of the first split, since a first use of Arrow loads more.
"""

import gc
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.spark.options import ReadSettings
from barnabas.spark.planning import OffsetRange


class SplitPartition(InputPartition):
    """A split, on its way from the driver to a task."""

    def __init__(self, split: OffsetRange) -> None:
        super().__init__(split)
        self.split = split


def read_split(partition: InputPartition, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Return the records of a split; none where a batch had nothing to plan."""
    if not isinstance(partition, SplitPartition):
        return iter(())
    if settings.is_plaintext:
        from barnabas.spark.fetching import fetched as records_of
    else:
        from barnabas.spark.librdkafka import consumed as records_of
    return _then_frozen(records_of(partition.split, settings))


def _then_frozen(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from records
    _freeze_modules()


@cache
def _freeze_modules() -> None:
    gc.freeze()
