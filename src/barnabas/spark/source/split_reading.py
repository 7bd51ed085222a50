"""Reads the splits of a task, directly over a socket or with librdkafka.

PySpark collects garbage after every task, which takes 40 ms for the modules of a worker, longer
than reading a small micro-batch. The modules are never freed, so they are frozen once, at the end
of the first task, since the first use of Arrow loads more.
"""

import gc
import time
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.spark.schema import FETCH_TIME
from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.split_planning import OffsetRange


class SplitPartition(InputPartition):
    """The splits of one task; Spark sends them from the driver to a worker."""

    def __init__(self, *splits: OffsetRange) -> None:
        super().__init__(splits)
        self.splits = splits


def read_splits(partition: InputPartition, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Return the records of splits, one after another; none if a batch had nothing to plan."""
    if not isinstance(partition, SplitPartition):
        return
    rows = _records(partition, settings)
    yield from timed(rows) if settings.include_fetch_time else rows
    _freeze_modules()


def _records(partition: SplitPartition, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    if settings.is_direct:
        from barnabas.spark.source.split_fetching import fetched as records_of
    else:
        from barnabas.spark.source.librdkafka_source import consumed as records_of
    for split in partition.splits:
        yield from records_of(split, settings)


def timed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the time that passed until each batch was there, less what the task did with the last.

    The first row of a batch has the time of all of it, so that Spark can add times up.
    """
    began_s = time.perf_counter()
    for batch in batches:
        times = np.zeros(batch.num_rows, np.int64)
        times[:1] = round((time.perf_counter() - began_s) * 1e6)
        column = pa.Array.from_buffers(pa.int64(), len(times), [None, pa.py_buffer(times)])
        yield batch.append_column(FETCH_TIME, column)
        began_s = time.perf_counter()


@cache
def _freeze_modules() -> None:
    gc.freeze()
