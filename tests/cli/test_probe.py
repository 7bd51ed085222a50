"""Tests health pages and `barnabas probe` on three real brokers, while some of them are away."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.cluster_processes import ClusterNode, ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.http_client import ask, scrape

pytestmark = pytest.mark.compat
TOPIC = "orders"
PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    settings = {"observability.http_listen": "127.0.0.1:0"}
    folder = tmp_path_factory.mktemp("probed")
    with ClusterProcesses(folder, settings=settings) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(PATIENCE_S)
        running.wait_healthy([TOPIC])
        yield running


def probe(check: str, http: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", "probe", check, "--http", http, "--json", *words],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def http(node: ClusterNode) -> str:
    assert node.http_address is not None
    return f"{node.http_address[0]}:{node.http_address[1]}"


def pages(node: ClusterNode) -> dict[str, tuple[int, str]]:
    """Return status and verdict of each health page."""
    found = {}
    for name in ("live", "ready", "cluster", "cluster?strict", "restart-safe"):
        page = ask(node.http_address, f"/health/{name}")
        found[name] = page.status, page.json["verdict"]
    return found


WELL = {
    "live": (200, "live"),
    "ready": (200, "ready"),
    "cluster": (200, "healthy"),
    "cluster?strict": (200, "healthy"),
    "restart-safe": (200, "safe"),
}
ONE_AWAY = {
    **WELL,
    "cluster": (200, "degraded"),
    "cluster?strict": (503, "degraded"),
    "restart-safe": (503, "unsafe"),
}


def test_health_while_brokers_go_and_come(cluster: ClusterProcesses) -> None:
    nodes = cluster.nodes
    for node in nodes.values():
        assert eventually(lambda node=node: pages(node) == WELL, PATIENCE_S)  # type: ignore[misc]
    for check in ("live", "ready", "cluster", "restart-safe"):
        assert probe(check, http(nodes[1]))[0] == 0

    gone = next(number for number in nodes if number != cluster.controller())
    left = [node for number, node in nodes.items() if number != gone]
    address = http(nodes[gone])
    nodes[gone].kill()
    for node in left:
        assert eventually(lambda node=node: pages(node) == ONE_AWAY, PATIENCE_S)  # type: ignore[misc]
    code, said = probe("cluster", http(left[0]))
    assert (code, said["verdict"]) == (1, "degraded")
    assert any("fenced" in reason for reason in said["reasons"])
    code, said = probe("restart-safe", http(left[0]))
    assert code == 1
    assert any("acks=all" in reason for reason in said["reasons"])

    def lacks_voters() -> bool:
        reasons = ask(left[0].http_address, "/health/restart-safe").json["reasons"]
        return any("metadata quorum needs 2" in reason for reason in reasons)

    assert eventually(lacks_voters, PATIENCE_S)
    for check, expected in (("live", 1), ("ready", 1), ("cluster", 2), ("restart-safe", 1)):
        code, said = probe(check, address, "--timeout", "2")
        assert (code, said["verdict"]) == (expected, "no answer")

    def of_left(name: str) -> float:
        return sum(scrape(node.http_address).value(name) for node in left)

    assert of_left("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert of_left("kafka_controller_kafkacontroller_fencedbrokercount") == 1
    assert of_left("kafka_server_replicamanager_underreplicatedpartitions") >= 3
    expands = of_left("kafka_server_replicamanager_isrexpands_total")

    nodes[gone].start()
    cluster.wait_healthy([TOPIC])
    for node in nodes.values():
        assert eventually(lambda node=node: pages(node) == WELL, PATIENCE_S)  # type: ignore[misc]
    assert of_left("kafka_server_replicamanager_isrexpands_total") > expands


def test_a_broker_without_a_majority_is_not_ready(cluster: ClusterProcesses) -> None:
    last = cluster.nodes[3]
    for number in (1, 2):
        cluster.nodes[number].kill()
    try:
        assert eventually(lambda: ask(last.http_address, "/health/ready").status == 503, PATIENCE_S)
        page = ask(last.http_address, "/health/ready")
        assert page.json["verdict"] == "fenced"
        assert ask(last.http_address, "/health/live").status == 200
        code, said = probe("cluster", http(last))
        assert (code, said["verdict"]) == (2, "unavailable")
        assert "no controller" in said["reasons"][0]
    finally:
        for number in (1, 2):
            cluster.nodes[number].spawn()
        for number in (1, 2):
            cluster.nodes[number].wait_ready()
        cluster.wait_healthy([TOPIC])


def test_metrics_of_replication_and_of_the_quorum(cluster: ClusterProcesses) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(300):
        producer.produce(TOPIC, b"v" * 1000, partition=number % 3)
    producer.flush(PATIENCE_S)

    def totals(name: str) -> float:
        return sum(scrape(node.http_address).value(name) for node in cluster.nodes.values())

    traffic = "kafka_server_brokertopicmetrics_"
    assert totals(f"{traffic}messagesin_total") >= 300
    size = totals(f"{traffic}bytesin_total")
    assert eventually(lambda: totals(f"{traffic}replicationbytesin_total") >= 2 * 300_000)
    assert totals(f"{traffic}replicationbytesout_total") >= 2 * 300_000
    assert size >= 300_000
    leaders = [
        scrape(node.http_address).value("kafka_server_raftmetrics_current_leader")
        for node in cluster.nodes.values()
    ]
    assert len(set(leaders)) == 1
    states = {
        number: scrape(node.http_address).series("kafka_server_raftmetrics_current_state")
        for number, node in cluster.nodes.items()
    }
    assert states[int(leaders[0])] == [{"current_state": "leader"}]
    follower = next(number for number in cluster.nodes if number != leaders[0])
    found = scrape(cluster.nodes[follower].http_address)
    assert found.value("kafka_server_raftchannelmetrics_request_total") > 0
    assert found.value("kafka_server_raftchannelmetrics_incoming_byte_total") > 0
    fetches = [
        scrape(node.http_address).get("barnabas_request_seconds_count", request="FetchFollower")
        for node in cluster.nodes.values()
    ]
    assert sum(fetches) > 0


def test_log_lines_of_a_broker_name_it(cluster: ClusterProcesses) -> None:
    lines = cluster.nodes[2].log_lines()
    assert {line["node"] for line in lines} == {2}
    assert len({line["cluster"] for line in lines if "cluster" in line}) == 1


def test_wrong_use() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", "probe", "live", "--http", "9644"],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert b"is not HOST:PORT" in done.stderr


def test_a_stranger_on_the_port(tmp_path: Path) -> None:
    import http.server
    import threading

    del tmp_path
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        code, said = probe("ready", f"127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert code == 1
    assert "is not of a broker" in said["reasons"][0]
