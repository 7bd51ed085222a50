"""The PySpark `DataSource` class behind `format("barnabas")`, for reads and writes."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from barnabas.spark.source.source_options import parse_batch, parse_stream
from barnabas.spark.sql.sql_tables import for_reading, for_writing, source_schema


class BarnabasDataSource(DataSource):
    """Topics as a source and a sink, with the columns and options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "barnabas"

    def schema(self) -> StructType:
        """Return the columns of a read, unless a table declares others."""
        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of spark.read."""
        from barnabas.spark.sql.readers import batch_reader

        return batch_reader(parse_batch(for_reading(self.options, schema)), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of spark.readStream."""
        from barnabas.spark.sql.readers import stream_reader

        return stream_reader(parse_stream(for_reading(self.options, schema)), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of DataFrame.write."""
        from barnabas.spark.sink.writers import BatchWriter

        return BatchWriter(schema, for_writing(self.options, schema), overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamWriter:
        """Return the writer of DataFrame.writeStream."""
        from barnabas.spark.sink.writers import StreamWriter

        return StreamWriter(schema, for_writing(self.options, schema))
