"""One Spark session for all tests; a broker for each module."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    pyspark = pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: apt install openjdk-17-jre-headless")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    del pyspark
    from pyspark.sql import SparkSession

    session = (
        # Two cores, and a task may fail twice.
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def sink(spark: "SparkSession") -> str:
    """The name of a data source that has a write side alone."""
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from barnabas.spark.sink import BatchWriter, StreamWriter

    class SinkAlone(DataSource):
        @classmethod
        def name(cls) -> str:
            return "sink-alone"

        def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
            return BatchWriter(schema, self.options, overwrite)

        def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
            return StreamWriter(schema, self.options)

    spark.dataSource.register(SinkAlone)
    return SinkAlone.name()
