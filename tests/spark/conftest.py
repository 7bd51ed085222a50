"""One Spark session for all tests, and a broker for each module."""

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
    """A session on two cores; skipped where it cannot start."""
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("needs Java 17 or later: apt install openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("barnabas tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A real broker; `bootstrap` is where it listens."""
    with Broker() as started:
        yield started
