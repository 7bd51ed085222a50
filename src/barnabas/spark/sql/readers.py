"""Readers of topics that return only the columns that a table or view declares."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from barnabas.spark.source.batch_reader import BatchReader
from barnabas.spark.source.source_options import ReadSettings
from barnabas.spark.source.stream_reader import StreamReader
from barnabas.spark.sql.declared_columns import Shape, shape_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition


class DeclaredBatchReader(BatchReader):
    """Reads the declared columns of the records between two limits."""

    def __init__(self, settings: ReadSettings, shape: Shape) -> None:
        super().__init__(settings)
        self._shape = shape

    def read(self, partition: "InputPartition") -> Iterator["pa.RecordBatch"]:
        """Return the records of one piece, in a worker."""
        return self._shape.applied(super().read(partition))


class DeclaredStreamReader(StreamReader):
    """Reads the declared columns of new records."""

    def __init__(self, settings: ReadSettings, shape: Shape) -> None:
        super().__init__(settings)
        self._shape = shape

    def read(self, partition: "InputPartition") -> Iterator["pa.RecordBatch"]:
        """Return the records of one piece, in a worker."""
        return self._shape.applied(super().read(partition))

    def __reduce__(self) -> tuple[type["DeclaredStreamReader"], tuple[ReadSettings, Shape]]:
        return DeclaredStreamReader, (self._settings, self._shape)


def batch_reader(settings: ReadSettings, schema: StructType) -> BatchReader:
    """Return the reader of spark.read for the columns that Spark asks for."""
    shape = shape_of(schema)
    return BatchReader(settings) if shape is None else DeclaredBatchReader(settings, shape)


def stream_reader(settings: ReadSettings, schema: StructType) -> StreamReader:
    """Return the reader of spark.readStream for the columns that Spark asks for."""
    shape = shape_of(schema)
    return StreamReader(settings) if shape is None else DeclaredStreamReader(settings, shape)
