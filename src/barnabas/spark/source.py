"""`format("barnabas")`: where Spark enters, for reads and for writes."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from barnabas.spark.failures import OptionError
from barnabas.spark.options import includes_headers, parse_batch, parse_stream
from barnabas.spark.schema import spark_schema


class BarnabasDataSource(DataSource):
    """Topics as a source and a sink, with the columns and options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """The word for `format`."""
        return "barnabas"

    def schema(self) -> StructType:
        """Return the columns of a read; they are fixed."""
        return spark_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of spark.read."""
        from barnabas.spark.batch import BatchReader

        settings = parse_batch(self.options)
        _refuse_columns(schema, include_headers=settings.include_headers)
        return BatchReader(settings)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of spark.readStream."""
        from barnabas.spark.stream import StreamReader

        settings = parse_stream(self.options)
        _refuse_columns(schema, include_headers=settings.include_headers)
        return StreamReader(settings)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of DataFrame.write."""
        from barnabas.spark.sink import BatchWriter

        return BatchWriter(schema, self.options, overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamWriter:
        """Return the writer of DataFrame.writeStream."""
        from barnabas.spark.sink import StreamWriter

        return StreamWriter(schema, self.options)


def _refuse_columns(schema: StructType, *, include_headers: bool) -> None:
    if schema.fieldNames() != spark_schema(include_headers=include_headers).fieldNames():
        raise OptionError(
            "The columns of a topic are fixed; leave .schema(...) out and take what you need "
            "with select"
        )
