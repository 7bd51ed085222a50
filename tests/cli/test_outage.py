"""Tests outages as an operator sees them, and their remains, on real processes."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import Producer
from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PATIENCE_S = 120.0
OFFSETS = "__consumer_offsets"
SETTINGS = {"groups.offsets_partitions": 60}
"""More topics than the controller grows at the same time."""


class Operator:
    """Runs commands."""

    def __init__(self, cluster: ClusterProcesses) -> None:
        self.cluster = cluster

    def run(self, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas.cli", *words, "--bootstrap", self.cluster.bootstrap],
            capture_output=True,
            check=False,
            text=True,
            timeout=PATIENCE_S,
        )
        assert code is None or done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def json(self, *words: str, code: int | None = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code).stdout)

    def send(self, topic: str, *values: str) -> None:
        with Producer(self.cluster.bootstrap) as producer:
            for value in values:
                producer.send(topic, value)
            producer.flush()

    def read_in_group(self, topic: str) -> list[str]:
        done = self.run("consume", topic, "--group", "billing", "--until", "end")
        return sorted(done.stdout.splitlines())

    def lose(self, number: int) -> None:
        self.cluster.nodes[number].kill()
        self.cluster.wait_replaced(number)

    def health(self, code: int | None = 1) -> str:
        return " ".join(self.json("cluster", "health", code=code)["reasons"])

    def replicas(self, topic: str) -> set[tuple[int, ...]]:
        seen = self.cluster.view().partitions
        return {tuple(sorted(each.replicas)) for (name, _), each in seen.items() if name == topic}


def test_what_is_first_used_in_an_outage_stands_the_next_one(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, settings=SETTINGS) as cluster:
        operator = Operator(cluster)
        operator.run("topic", "create", "orders", "--partitions", "3")
        operator.send("orders", "a", "b")
        operator.lose(3)

        assert operator.read_in_group("orders") == ["a", "b"]
        operator.send("on-demand", "x")
        assert operator.replicas(OFFSETS) == operator.replicas("on-demand") == {(1, 2)}
        refused = operator.run("topic", "create", "explicit", code=1).stderr
        assert "replication factor 3 needs that many brokers" in refused
        listed = operator.json("cluster", "status")["partitions"]
        assert len([each for each in listed["below_replication_factor"] if OFFSETS in each]) == 60
        assert "on-demand-0" in listed["below_replication_factor"]
        assert f"{OFFSETS}-0" in listed["replicas_at_min_isr"]
        assert "below the replication factor" in operator.run("cluster", "health", code=1).stdout
        blocked = operator.run("partition", "repair", "--yes", code=1).stderr
        assert "2 brokers are up; start broker 3" in blocked

        cluster.nodes[3].start()
        operator.run("cluster", "health", "--exit-when-healthy", "--timeout", "90s")
        assert operator.replicas(OFFSETS) == operator.replicas("on-demand") == {(1, 2, 3)}
        assert "Nothing to repair" in operator.run("partition", "repair").stdout

        operator.lose(1)
        operator.send("orders", "c", "d")
        operator.send("on-demand", "y")
        assert operator.read_in_group("orders") == ["c", "d"]


def test_repair_fixes_topics_that_were_left_with_too_few_replicas(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, settings=SETTINGS) as cluster:
        operator = Operator(cluster)
        operator.run("topic", "create", "orders", "--partitions", "3")
        operator.run("topic", "create", "single", "--replication-factor", "1")
        operator.send("orders", "a")
        assert operator.read_in_group("orders") == ["a"]
        for topic in (OFFSETS, "orders"):
            words = ("--topic", topic, "--to", "1,2", "--replication-factor", "2")
            operator.run("partition", "reassign", *words, "--execute")
        assert operator.json("cluster", "health", code=1)["verdict"] == "degraded"
        listed = operator.json("cluster", "status")["partitions"]["replicas_at_min_isr"]
        assert (len(listed), "orders-0" in listed) == (63, True)

        plan = operator.json("partition", "repair", "--yes", "--no-wait")
        assert (len(plan["partitions"]), plan["moves"], plan["blocked"]) == (63, 63, [])
        operator.run("cluster", "health", "--exit-when-healthy", "--timeout", "90s")
        assert operator.replicas(OFFSETS) == operator.replicas("orders") == {(1, 2, 3)}
        assert {len(each) for each in operator.replicas("single")} == {1}

        operator.run("partition", "repair", "single", "--replication-factor", "2", "--yes")
        assert {len(each) for each in operator.replicas("single")} == {2}
        assert eventually(lambda: not cluster.problems(("orders", OFFSETS)))


def test_a_voter_that_comes_back_with_an_empty_disk_is_named_until_it_votes_again(
    tmp_path: Path,
) -> None:
    with ClusterProcesses(tmp_path) as cluster:
        operator = Operator(cluster)
        lost = next(number for number in cluster.nodes if number != cluster.controller())
        node = cluster.nodes[lost]
        node.kill()
        shutil.rmtree(node.data)
        node.start()
        assert node.log_lines("this broker does not vote: it came back with an empty disk")
        named = f"broker {lost} came back with an empty disk and does not vote"
        # The controller knows it once the broker has fetched metadata from it.
        eventually(lambda: named in operator.health(code=None), PATIENCE_S)
        assert "if one more is lost, no controller can be elected" in operator.health()
        votes = operator.json("cluster", "status")["quorum"]["votes"]
        assert (votes["returned"], votes["losses_left"]) == ([lost], 0)

        commands = re.findall("`barnabas ([^`]+)`", operator.health())
        assert [each.split()[1] for each in commands] == ["demote", "promote"]
        for command in commands:
            operator.run(*command.split())
        operator.run("cluster", "health", "--exit-when-healthy", "--timeout", "90s")
        assert operator.json("cluster", "status")["quorum"]["votes"]["losses_left"] == 1
