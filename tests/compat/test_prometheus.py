"""Tests the files for Prometheus and Grafana with a real Prometheus, brokers and an exporter.

It needs Debian's package prometheus.
"""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.exporter import files
from barnabas.monitor.stream_progress import TOPIC, StreamProgress
from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually
from tests.support.prometheus_server import (
    OF_A_BUSY_MACHINE,
    PATIENCE_S,
    Prometheus,
    found_prometheus,
    scraping,
)
from tools.dashboards.boards import BOARDS
from tools.dashboards.grafana import Board

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(600)]

WITHOUT_DATA = {
    "Slowest replica": "only while a replica is behind",
    "Refused connections": "only after a refusal",
    "Refused": "only after a refusal",
    "No lag in": "only while a group catches up",
    "Until retention deletes unread records": "only while a group lags",
    "Full in": "only while the disk fills",
    "Refused messages": "only where telemetry runs",
}
"""Panels that are empty in a cluster that is well."""
NOT_HERE = {"Collectors", "Cards (where Prometheus itself scrapes dcgm-exporter)"}
"""Rows about programs that the test does not run."""


class Scene(NamedTuple):
    """A cluster, and the ports of its brokers' metrics."""

    cluster: ClusterProcesses
    http_ports: list[int]


class Load:
    """Transactions, a group that reads them, and reports of a streaming query."""

    def __init__(self, bootstrap: str) -> None:
        self._stopping = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "load"})
        self._reports = Producer({"bootstrap.servers": bootstrap})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1000,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        self._consumer.close()

    def _run(self) -> None:
        self._producer.init_transactions()
        self._consumer.subscribe(["orders", "gpu-telemetry"])
        while not self._stopping.is_set():
            self._producer.begin_transaction()
            for topic in ("orders", "gpu-telemetry"):
                for _ in range(20):
                    self._producer.produce(topic, bytes(100))
            self._producer.commit_transaction()
            self._consumer.consume(100, 0.1)
            key, value = report().to_record()
            self._reports.produce(TOPIC, value, key)
            self._reports.poll(0)
            self._stopping.wait(0.05)


def report() -> StreamProgress:
    return StreamProgress(
        name="silver",
        query_id="q",
        run_id="r",
        state="running",
        since_ms=1,
        rows_per_s=2.0,
        input_per_s=2.0,
        lag=3,
        batch_ms=10,
        state_bytes=5,
        state_rows=2,
        updated_ms=time.time_ns() // 1_000_000,
    )


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    found_prometheus()
    ports = {number: free_port() for number in (1, 2, 3)}
    environments = {
        number: {
            "BARNABAS_OBSERVABILITY_HTTP_LISTEN": f"127.0.0.1:{port}",
            "BARNABAS_OBSERVABILITY_CLIENT_METRICS": "true",
        }
        for number, port in ports.items()
    }
    folder = tmp_path_factory.mktemp("cluster")
    with ClusterProcesses(folder, environments=environments) as started:
        topics = [NewTopic("orders", 3, 3), NewTopic("gpu-telemetry", 6, 3)]
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        for made in admin.create_topics(topics).values():
            made.result()
        wanted = ("client-metrics", "all", "metrics=*", "interval.ms=1000")
        command = (sys.executable, "-m", "barnabas.cli", "config", "set", *wanted)
        subprocess.run([*command, "--bootstrap", started.bootstrap], check=True)
        yield Scene(started, list(ports.values()))


@pytest.fixture(scope="module")
def prometheus(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    load = Load(scene.cluster.bootstrap)
    folder = tmp_path_factory.mktemp("prometheus")
    brokers = [f"127.0.0.1:{port}" for port in scene.http_ports]
    probe = ("--probe-topic", "probe")
    with scraping(folder, scene.cluster.bootstrap, brokers, exporter=probe) as server:
        yield server
        load.stop()


def filled_in(board: Board, expr: str) -> str:
    text = expr.replace("@", board.matchers)
    text = text.replace("$__rate_interval", "30s").replace("$cluster", "prod")
    return re.sub(r"\$\w+", ".*", text)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_queries_of_a_dashboard_have_data(prometheus: Prometheus, board: Board) -> None:
    for row in board.rows:
        for panel in row.panels:
            for query in panel.queries:
                expr = filled_in(board, query.expr)
                if row.title in NOT_HERE or panel.title in WITHOUT_DATA:
                    prometheus.ask(expr)
                else:
                    eventually(partial(prometheus.ask, expr), PATIENCE_S)


def test_a_cluster_that_is_well_has_no_alert(prometheus: Prometheus) -> None:
    eventually(lambda: prometheus.ask('up{job="barnabas"} == 1'), PATIENCE_S)
    rules = yaml.safe_load((Path(files.__file__).parent / "alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            prometheus.ask(rule["expr"])
    assert prometheus.alerts("firing") <= OF_A_BUSY_MACHINE


def test_a_broker_that_is_killed_makes_its_alert_fire_and_no_other(
    scene: Scene, prometheus: Prometheus
) -> None:
    broker = scene.cluster.nodes[3]
    broker.kill()
    eventually(lambda: "BrokerDown" in prometheus.alerts("firing"), PATIENCE_S)
    assert prometheus.alerts("firing") - OF_A_BUSY_MACHINE == {"BrokerDown"}
    broker.spawn()
    eventually(lambda: prometheus.alerts("firing") <= OF_A_BUSY_MACHINE, PATIENCE_S)
