"""Tests Spark Connect: a server, and a client without a JVM that runs `connect_dialogues.py`."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("grpc", reason="needs Spark Connect: pip install 'pyspark[connect]'")
pytest.importorskip("grpc_status", reason="needs Spark Connect: pip install 'pyspark[connect]'")

from barnabas.spark import ChangelogTable
from barnabas.testing.waiting import eventually
from tests.support.pipelines.spark_cluster import spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NAMES = ["batches", "mistakes", "streams", "values", "windows", "tables"]
NAMES += ["table-of-files", "new-table"]
CHANGES = "key STRING, value STRING, partition INT, offset BIGINT"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SCRIPT = Path(__file__).parent / "connect_dialogues.py"
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a Spark Connect server from pip's pyspark."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    confs = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    words = [word for conf in confs.items() for word in ("--conf", "=".join(conf))]
    log = tmp_path_factory.mktemp("connect") / "server.log"
    program = str(spark_home() / "bin" / "spark-submit")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [program, "--class", SERVER, "--master", "local[2]", *words, "spark-internal"],
            stdout=stream,
            stderr=stream,
            cwd=log.parent,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    try:
        started = re.compile(r"Spark Connect server started")
        eventually(lambda: started.search(log.read_text(errors="replace")), PATIENCE_S)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def outcomes(
    server: str,
    spark: "SparkSession",
    broker: "Broker",
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """Return "pass" or the error of each dialogue."""
    folder = tmp_path_factory.mktemp("dialogues")
    table = ChangelogTable(f"{folder}/table")
    table.upsert(spark.createDataFrame([("of a JVM", "1", 0, 0)], CHANGES), 0)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), server, broker.bootstrap, str(folder)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
    found = {row[1]: "pass" if row[0] == "pass" else row[-1] for row in rows}
    table.upsert(spark.createDataFrame([("of a JVM", None, 0, 1)], CHANGES), 0)
    found["table-afterwards"] = str(sorted(row.key for row in table.read(spark).collect()))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_dialogue(outcomes: dict[str, str], name: str) -> None:
    assert outcomes.get(name) == "pass"


def test_a_session_with_a_jvm_continues_with_the_table(outcomes: dict[str, str]) -> None:
    assert outcomes["table-afterwards"] == "['key', 'streamed']"
