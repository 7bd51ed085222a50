"""Tests `barnabas cluster` and `barnabas partition`, as an operator types them.

The brokers are real processes.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import pytest

from barnabas.handlers.registry import SERVED
from barnabas.protocol.api_keys import ApiKey
from barnabas.testing.waiting import eventually

PATIENCE_S = 120.0
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "BARNABAS_BROKERS"}
"""The number of brokers for other tests is not a broker setting, and a broker would refuse it."""

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(
        ApiKey.DESCRIBE_QUORUM not in SERVED,
        reason="brokers do not form clusters yet (DescribeQuorum)",
    ),
]


def barnabas(*words: str, stdin: bytes = b"", code: int = 0) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", *words],
        env=ENVIRONMENT,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code, (done.stdout + done.stderr).decode()
    assert b"Traceback" not in done.stderr
    return done.stdout


class Foreground:
    """A command that prints one line of JSON when it is ready, and runs until it is stopped."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", *words, "--json"],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self._stdout: IO[bytes] = self.process.stdout
        line = self._stdout.readline()
        if not line:
            _, said = self.process.communicate(timeout=PATIENCE_S)
            raise AssertionError(said.decode())
        self.said: dict[str, Any] = json.loads(line)

    def stop(self) -> tuple[int, str]:
        """Stop it; return the exit code and its errors."""
        self.process.send_signal(signal.SIGTERM)
        rest, said = self.process.communicate(timeout=PATIENCE_S)
        assert rest == b"", "one line was expected"
        return self.process.returncode, said.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        else:
            self.process.communicate()


class Cluster(Foreground):
    """`barnabas cluster up`, and commands for that cluster."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        super().__init__("cluster", "up", "--data", str(folder), *words)
        self.bootstrap: str = self.said["bootstrap"]
        self.pids = {each["node_id"]: each["pid"] for each in self.said["brokers"]}

    def run(self, *words: str, stdin: bytes = b"", code: int = 0) -> bytes:
        return barnabas(*words, "--bootstrap", self.bootstrap, stdin=stdin, code=code)

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code))

    def replicas(self, topic: str) -> list[list[int]]:
        (described,) = self.json("topic", "describe", topic)
        return [each["replicas"] for each in described["partitions"]]

    def send(self, topic: str, count: int) -> list[bytes]:
        lines = [f"record {number}".encode() for number in range(count)]
        self.run("produce", topic, stdin=b"\n".join(lines))
        return sorted(lines)

    def read(self, topic: str) -> list[bytes]:
        return sorted(self.run("consume", topic, "--until", "end").splitlines())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster", "--brokers", "3") as made:
        yield made


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_one_line_says_where_a_healthy_cluster_is(cluster: Cluster) -> None:
    assert set(cluster.said) == {"bootstrap", "brokers"}
    assert [each["node_id"] for each in cluster.said["brokers"]] == [1, 2, 3]
    listens = [each["listen"] for each in cluster.said["brokers"]]
    assert ",".join(listens) == cluster.bootstrap
    assert cluster.run("cluster", "health").split()[0] == b"healthy"

    status = cluster.json("cluster", "status")
    assert status["health"] == {"verdict": "healthy", "reasons": [], "warnings": []}
    assert [each["state"] for each in status["brokers"]] == ["up"] * 3
    assert [each["id"] for each in status["quorum"]["voters"]] == [1, 2, 3]
    assert status["controller"] == status["quorum"]["leader"]

    cluster.run("topic", "create", "orders", "--partitions", "6")
    assert all(sorted(each) == [1, 2, 3] for each in cluster.replicas("orders"))
    (least,) = cluster.json("config", "get", "topic", "orders", "min.insync.replicas")
    assert least["value"] == "2"
    leaders = [each["leaders"] for each in cluster.json("cluster", "status")["brokers"]]
    assert sum(leaders) >= 6
    assert max(leaders) - min(leaders) <= 1

    pids = list(cluster.pids.values())
    code, said = cluster.stop()
    assert (code, said.count("has stopped")) == (0, 3)
    assert all(map(is_gone, pids))


def test_a_new_cluster_needs_no_upgrade(cluster: Cluster) -> None:
    found = json.loads(cluster.run("cluster", "upgrade", "--check", "--json"))
    assert (found["level"], found["goal"], found["ready"]) == (2, 2, True)
    assert [each["highest_level"] for each in found["brokers"]] == [2, 2, 2]
    said = cluster.run("cluster", "upgrade").decode()
    assert "there is nothing to finalize" in said
    assert json.loads(cluster.run("cluster", "status", "--json"))["feature_level"] == 2
    assert "Feature level  2" in cluster.run("cluster", "status").decode()


@pytest.mark.slow
def test_a_dead_broker_is_reported_and_the_next_start_continues(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with Cluster(folder, "--brokers", "3") as cluster:
        cluster.run("topic", "create", "orders", "--partitions", "3")
        before = cluster.send("orders", 100)
        os.kill(cluster.pids[2], signal.SIGKILL)

        def states() -> list[str]:
            looked = cluster.json("cluster", "status")["brokers"]
            return [each["state"] for each in looked]

        assert eventually(lambda: states() == ["up", "fenced", "up"], PATIENCE_S)
        assert b"degraded" in cluster.run("cluster", "health", code=1)
        assert b"fenced" in cluster.run("cluster", "health", "--json", code=1)
        both = sorted(before + cluster.send("orders", 50))
        assert cluster.read("orders") == both
        code, said = cluster.stop()
        assert code == 1
        assert "Broker 2 ended by signal SIGKILL" in said

    with Cluster(folder) as again:
        assert again.bootstrap == cluster.bootstrap
        assert again.read("orders") == both
        assert again.run("cluster", "health").split()[0] == b"healthy"


@pytest.mark.slow
def test_a_broker_comes_takes_its_share_and_leaves(cluster: Cluster) -> None:
    cluster.run("topic", "create", "orders", "--partitions", "8")
    sent = cluster.send("orders", 500)
    with Foreground("cluster", "add", "--id", "4", "--data", str(cluster.folder)) as fourth:
        assert (fourth.said["node_id"], fourth.said["voter"]) == (4, False)

        plan = cluster.json("partition", "balance")
        assert plan["moves"] > 0
        assert all(4 not in each for each in cluster.replicas("orders"))
        cluster.run("partition", "balance", "--execute")
        held = [each["replicas"] for each in cluster.json("cluster", "status")["brokers"]]
        assert len(held) == 4
        assert max(held) - min(held) <= 1
        assert cluster.json("partition", "balance")["partitions"] == []
        assert cluster.read("orders") == sent

        words = ("--yes", "--stop", "--data", str(cluster.folder))
        done = cluster.json("cluster", "remove", "4", *words)
        assert done["unregistered"]
        assert fourth.process.wait(PATIENCE_S) == 0
    status = cluster.json("cluster", "status")
    assert [each["id"] for each in status["brokers"]] == [1, 2, 3]
    assert status["health"]["verdict"] == "healthy"
    assert cluster.read("orders") == sent


@pytest.mark.slow
def test_a_broker_that_joins_can_vote_and_a_voter_can_leave(cluster: Cluster) -> None:
    cluster.run("topic", "create", "orders", "--partitions", "4")
    sent = cluster.send("orders", 100)
    with Foreground("cluster", "add", "--voter", "--data", str(cluster.folder)) as fourth:
        assert fourth.said["voter"]

        def voters() -> list[int]:
            found = cluster.json("cluster", "status")["quorum"]["voters"]
            return [each["id"] for each in found]

        assert voters() == [1, 2, 3, 4]
        leader = cluster.json("cluster", "status")["quorum"]["leader"]
        words = ("--yes", "--stop", "--data", str(cluster.folder))
        cluster.run("cluster", "remove", str(leader), *words)
        assert eventually(lambda: voters() == [each for each in (1, 2, 3, 4) if each != leader])
        assert cluster.read("orders") == sent


@pytest.mark.slow
def test_topics_go_where_the_caller_says(cluster: Cluster, tmp_path: Path) -> None:
    words = ("topic", "create", "orders", "--partitions", "3", "--replication-factor", "1")
    cluster.run(*words)
    sent = cluster.send("orders", 300)
    move = ("partition", "reassign", "--topic", "orders")

    cluster.run(*move, "--to", "2", "--execute")
    assert cluster.replicas("orders") == [[2]] * 3
    cluster.run(*move, "--to", "1,3", "--replication-factor", "2", "--execute")
    assert [sorted(each) for each in cluster.replicas("orders")] == [[1, 3]] * 3

    plan = {"partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1, 3]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    cluster.run("partition", "reassign", "--plan", str(tmp_path / "plan.json"), "--execute")
    assert cluster.replicas("orders")[0] == [2, 1, 3]
    (first, *_) = cluster.json("topic", "describe", "orders")[0]["partitions"]
    assert first["leader"] == 2
    assert cluster.read("orders") == sent

    assert b"No reassignment is in progress" in cluster.run("partition", "reassign", "--cancel")
    cluster.run("partition", "elect")


def test_what_cannot_be_moved_is_reported(cluster: Cluster) -> None:
    cluster.run("topic", "create", "orders", "--partitions", "1")

    def complaint(*words: str) -> str:
        command = [sys.executable, "-m", "barnabas.cli", *words, "--bootstrap", cluster.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        return done.stderr

    move = ("partition", "reassign", "--topic", "orders")
    assert "There is no broker 9; the cluster has 1, 2, 3" in complaint(*move, "--to", "9")
    assert "is not a list of brokers" in complaint(*move, "--to", "all")
    assert "orders-0 has 3 replicas, and there are only 2 brokers" in complaint(
        *move, "--to", "1,2"
    )
    assert "There is no topic nope" in complaint("partition", "balance", "--topic", "nope")
    assert "There is no broker 7" in complaint("cluster", "remove", "7", "--yes")
    assert "only 2 brokers to hold them" in complaint("cluster", "remove", "3", "--yes")
