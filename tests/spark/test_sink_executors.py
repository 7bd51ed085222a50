"""Tests the sink on a cluster: stages that run again, speculation, and dynamic allocation."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark: pip install 'barnabas[spark]'")

from barnabas.admin.transaction_admin import Transactions
from barnabas.testing.broker import Broker
from barnabas.wire.cluster_wire import Wire
from tests.support.loads.topic_reading import committed_records, create_topic
from tests.support.pipelines.executor_job import ROWS
from tests.support.pipelines.spark_cluster import SparkCluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster"), workers=3) as running:
        yield running


@pytest.mark.parametrize("mode", ["stage-retry", "speculation", "allocation"])
def test_every_row_once_whatever_becomes_of_executors(
    cluster: SparkCluster, broker: Broker, tmp_path: Path, mode: str
) -> None:
    topic = create_topic(broker.bootstrap, mode, 3)
    place = ["--bootstrap", broker.bootstrap, "--topic", topic, "--master", cluster.master]
    command = [sys.executable, "-m", "tests.support.pipelines.executor_job", "--mode", mode]
    done = subprocess.run(
        [*command, *place, "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"happened": True}, done.stderr[-3000:]
    values = sorted(int(each.value or b"") for each in committed_records(broker.bootstrap, topic))
    assert values == list(range(ROWS))
    with Wire({"bootstrap.servers": broker.bootstrap}) as wire:
        still_open = [each.transactional_id for each in Transactions(wire).all(["Ongoing"])]
    assert [each for each in still_open if mode in each] == []
