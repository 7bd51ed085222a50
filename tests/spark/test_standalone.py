"""Tests the pipeline on a standalone cluster: a master and two worker processes.

The workers have no Barnabas installed: Spark ships what they need.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.testing.broker import Broker
from tests.support.loads.topic_reading import committed_records, create_topic
from tests.support.pipelines.pipeline import drain, tables, telemetry
from tests.support.pipelines.spark_cluster import SparkCluster, spark_home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux"),
]

DOUBLE = """
CREATE FUNCTION twice FROM 'cluster_functions';
CREATE SOURCE numbers (n BIGINT NOT NULL) FROM TOPIC numbers;
CREATE STREAM doubled AS SELECT n, twice(n) AS twice FROM numbers;
"""
LOCAL = ["--driver-memory", "1g", "--messages-a-batch", "2000"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def filled(broker: Broker) -> Broker:
    """A broker with a small fleet in its topic."""
    given = ["--gpus", "6", "--duration", "120s", "--speed", "max", "--dirt", "0.01"]
    command = telemetry("simulate", *given, "--bootstrap", broker.bootstrap)
    subprocess.run(command, check=True, capture_output=True)
    return broker


def remote(cluster: SparkCluster) -> list[str]:
    confs = {
        "spark.pyspark.python": str(cluster.python),
        "spark.pyspark.driver.python": sys.executable,
        "spark.cores.max": "2",
        "spark.executor.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    return [
        "--master",
        cluster.master,
        *(w for c in confs.items() for w in ("--conf", "=".join(c))),
    ]


def test_a_cluster_makes_the_tables_that_one_machine_makes(
    cluster: SparkCluster, filled: Broker, tmp_path: Path
) -> None:
    drain(filled.bootstrap, tmp_path / "local", [*LOCAL, "--master", "local[2]"])
    assert subprocess.run([cluster.python, "-c", "import barnabas"], check=False).returncode == 1
    before = len(cluster.python_starts())
    drain(filled.bootstrap, tmp_path / "remote", [*LOCAL, *remote(cluster)])
    assert len(cluster.python_starts()) > before

    here, there = tables(tmp_path / "local"), tables(tmp_path / "remote")

    assert {name: sum(rows.values()) for name, rows in here.items()}["silver"] > 600
    assert there == here


def test_spark_submit_runs_the_package_that_the_command_wrote(
    cluster: SparkCluster, filled: Broker, tmp_path: Path
) -> None:
    package = tmp_path / "barnabas.zip"
    said = subprocess.run(
        telemetry("package", "--out", str(package), "--json"), check=True, capture_output=True
    )
    main = json.loads(said.stdout)["main"]
    options = remote(cluster)
    submit = [str(spark_home() / "bin" / "spark-submit"), *options]
    place = ["--bootstrap", filled.bootstrap, "--lake", str(tmp_path / "lake"), "--once"]
    # The driver has the package from the zip only, as on a machine without Barnabas.
    environment = {**os.environ, "PYSPARK_DRIVER_PYTHON": str(cluster.python)}
    environment.pop("PYTHONPATH", None)
    at = options.index("spark.pyspark.driver.python=" + sys.executable)
    del submit[at : at + 2]

    done = subprocess.run(
        [*submit, "--py-files", str(package), main, *place, "--jobs", "bronze,silver", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    last = json.loads(done.stdout.strip().splitlines()[-1])
    assert [each["state"] for each in last["jobs"]] == ["done", "done"]
    assert sum(tables(tmp_path / "lake")["silver"].values()) > 600


def test_a_file_of_statements_runs_on_the_cluster(
    cluster: SparkCluster, broker: Broker, tmp_path: Path
) -> None:
    create_topic(broker.bootstrap, "numbers", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(100):
        producer.produce("numbers", json.dumps({"n": number}))
    assert producer.flush(60) == 0
    (tmp_path / "cluster_functions.py").write_text("def twice(n: int) -> int:\n    return 2 * n\n")
    (tmp_path / "double.sql").write_text(DOUBLE)
    command = [sys.executable, "-m", "barnabas.cli", "sql", "run", str(tmp_path / "double.sql")]
    before = len(cluster.python_starts())

    done = subprocess.run(
        [*command, "--once", "--bootstrap", broker.bootstrap, *remote(cluster)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert len(cluster.python_starts()) > before
    records = committed_records(broker.bootstrap, "doubled")
    found = sorted(json.loads(each.value or b"")["twice"] for each in records)
    assert found == list(range(0, 200, 2))


def test_workers_that_lack_packages_are_named(
    cluster: SparkCluster, filled: Broker, tmp_path: Path
) -> None:
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    command = telemetry(
        "run", "--once", "--bootstrap", filled.bootstrap, "--lake", str(tmp_path / "lake"),
        *remote(cluster), "--conf", f"spark.pyspark.python={bare}",
    )  # fmt: skip

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "lacks numpy, pyarrow" in done.stderr, done.stderr[-3000:]
    assert "pip install" in done.stderr
