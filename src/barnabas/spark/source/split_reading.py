"""Reads the splits of a task, directly over a socket or with librdkafka.

PySpark collects garbage after every task, which takes a worker 40 ms for the modules it has loaded,
more than a small micro-batch takes to read. They are never freed, so they are frozen once: at
the end of the first task, since a first use of Arrow loads more.
"""

import gc
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.split_planning import OffsetRange


class SplitPartition(InputPartition):
    """The splits of one task; Spark sends them from the driver to a worker."""

    def __init__(self, *splits: OffsetRange) -> None:
        super().__init__(splits)
        self.splits = splits


def read_splits(partition: InputPartition, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Return the records of splits, one after another; none where a batch had nothing to plan."""
    if not isinstance(partition, SplitPartition):
        return
    if settings.is_plaintext:
        from barnabas.spark.source.split_fetching import fetched as records_of
    else:
        from barnabas.spark.source.librdkafka_source import consumed as records_of
    for split in partition.splits:
        yield from records_of(split, settings)
    _freeze_modules()


@cache
def _freeze_modules() -> None:
    gc.freeze()
