"""One Spark session for all tests of the data pipeline, and a broker for each module."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from barnabas.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A session on two cores that retries a failed task twice; skipped if it cannot start."""
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("needs Java 17 or later: apt install openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,3]").appName("barnabas tests")
    session = builder.config(map=SETTINGS).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A real broker; `bootstrap` is its address."""
    with Broker() as started:
        yield started


@pytest.fixture(scope="session")
def sink(spark: "SparkSession") -> str:
    """The name for `format`."""
    from barnabas.spark import register

    register(spark)
    return "barnabas"
