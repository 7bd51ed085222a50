"""What a task does: read one split by the way that the connection allows."""

from collections.abc import Iterator

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
        from barnabas.spark.fetching import fetched

        return fetched(partition.split, settings)
    from barnabas.spark.librdkafka import consumed

    return consumed(partition.split, settings)
