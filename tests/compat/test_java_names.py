"""Compares Java's own lists of its clients' settings with the tables of the Spark connector."""

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from barnabas.spark.settings import java_properties as java

pytestmark = pytest.mark.compat

NAMES = Path(__file__).parent / "java" / "Names.java"


def test_every_setting_of_java_is_in_the_tables(jars: str) -> None:
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", jars, str(NAMES)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) > 200
    known = set().union(java.SAME, java.RENAMED, java.TRANSLATED, java.NO_EFFECT, java.REFUSED)
    assert {name for _, name in rows} - known == set()
    producers = {name for client, name in rows if client == "producer"}
    consumers = {name for client, name in rows if client == "consumer"}
    assert consumers - producers <= java.CONSUMER
    assert producers - consumers <= java.PRODUCER
