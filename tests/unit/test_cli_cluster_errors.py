"""Tests that errors are one sentence with a fix, and need no broker."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.cluster.local_cluster import LocalCluster, load, new_cluster
from barnabas.cli.cluster.up_command import up
from barnabas.cli.common.failure import CommandError

NOBODY = ("--bootstrap", "127.0.0.1:1")


def barnabas(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "code", "remedy"),
    [
        (("cluster", "status", *NOBODY), 1, "No broker answered at 127.0.0.1:1; start one"),
        (("cluster", "health", "--timeout", "soon", *NOBODY), 1, "write 90s, 30m"),
        (("cluster", "remove", "4", *NOBODY), 1, "No broker answered"),
        (("cluster", "remove", "4", "--stop", *NOBODY), 1, "--stop needs --data DIR"),
        (("cluster", "add", "--data", "/nowhere"), 1, "/nowhere has no cluster"),
        (("partition", "balance", *NOBODY), 1, "No broker answered"),
        (("partition", "reassign", *NOBODY), 1, "--topic with --to"),
        (("partition", "reassign", "--to", "1", *NOBODY), 1, "--topic with --to"),
        (
            ("partition", "reassign", "--topic", "t", "--to", "1", "--plan", "p", *NOBODY),
            1,
            "or --plan",
        ),
        (("partition", "elect", "--unclean", *NOBODY), 1, "name the partitions with --topic"),
    ],
)
def test_errors_say_what_to_change(words: tuple[str, ...], code: int, remedy: str) -> None:
    done = barnabas(*words)
    assert done.returncode == code
    assert remedy in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreachable_broker_is_unavailable() -> None:
    done = barnabas("cluster", "health", "--json", *NOBODY)
    assert done.returncode == 2
    assert '"verdict": "unavailable"' in done.stdout


def test_health_is_awaited_until_the_timeout() -> None:
    done = barnabas("cluster", "health", "--exit-when-healthy", "--timeout", "1s", *NOBODY)
    assert done.returncode == 2
    assert done.stdout.count("unavailable") == 1


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    made = new_cluster(tmp_path, 3, None)
    made.save()
    return made


def test_a_cluster_that_is_there_is_not_made_another(cluster: LocalCluster) -> None:
    with pytest.raises(CommandError, match="has a cluster of 3 brokers; omit --brokers"):
        up(brokers=5, data=cluster.folder)
    with pytest.raises(CommandError, match="omit --port"):
        up(port=9092, data=cluster.folder)
    assert load(cluster.folder) == cluster


def test_more_replicas_than_brokers_are_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--replication-factor 4 needs as many brokers"):
        up(brokers=3, data=tmp_path / "new", replication_factor=4)
    assert not (tmp_path / "new").exists()
