"""Tests a local cluster: the content of its folder, and its processes."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.cluster.ensemble import Ensemble
from barnabas.cli.cluster.local_cluster import (
    LocalCluster,
    free_ports,
    is_locked,
    joining,
    load,
    new_cluster,
)
from barnabas.cli.common.failure import CommandError
from barnabas.testing.waiting import eventually

STAND_IN = """
import fcntl, json, os, pathlib, signal, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if words["--node-id"] == os.environ.get("DIES"):
    print(json.dumps({"event": "the sky fell", "height": 7}), flush=True)
    sys.exit(70)
data = pathlib.Path(words["--data"])
data.mkdir(parents=True, exist_ok=True)
lock = (data / ".lock").open("ab")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready", flush=True)
while True:
    signal.pause()
"""
PROGRAM = (sys.executable, "-c", STAND_IN)
PATIENCE_S = 30.0


def all_locked(cluster: LocalCluster) -> Callable[[], bool]:
    return lambda: all(is_locked(cluster.data(each.node_id)) for each in cluster.brokers)


def test_a_folder_remembers_its_cluster(tmp_path: Path) -> None:
    made = new_cluster(tmp_path, 4, None)
    made.save()
    assert load(tmp_path) == made
    assert load(tmp_path / "other") is None
    ports = {address for each in made.brokers for address in (each.listen, each.peer_listen)}
    assert len(ports) == 8
    assert made.voters == (1, 2, 3)


@pytest.mark.parametrize(
    ("count", "voters"), [(1, (1,)), (2, (1,)), (3, (1, 2, 3)), (5, (1, 2, 3))]
)
def test_voters_are_an_odd_number(tmp_path: Path, count: int, voters: tuple[int, ...]) -> None:
    assert new_cluster(tmp_path, count, 9092).voters == voters


def test_ports_follow_the_first_one(tmp_path: Path) -> None:
    made = new_cluster(tmp_path, 3, 9092)
    assert made.bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"


def test_free_ports_are_free() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        assert port not in free_ports(3)


def test_every_broker_gets_the_voters(tmp_path: Path) -> None:
    made = new_cluster(tmp_path, 4, None)
    voters = ",".join(f"{each.node_id}@{each.peer_listen}" for each in made.brokers[:3])
    for broker in made.brokers:
        words = made.arguments(broker, None)
        assert words[words.index("--voters") + 1] == voters
        assert ("--roles" in words) == (broker.node_id == 4)
    assert made.arguments(made.brokers[0], Path("a.yaml"))[-2:] == ["--config", "a.yaml"]


def test_a_broker_joins_under_a_number_and_ports_of_its_own(tmp_path: Path) -> None:
    made = new_cluster(tmp_path, 3, None)
    fourth = joining(made, None, None)
    assert fourth.node_id == 4
    grown = made.with_broker(fourth).with_voter(4)
    assert grown.voters == (1, 2, 3, 4)
    assert grown.without(4) == made
    with pytest.raises(CommandError, match="already has a broker 2"):
        joining(made, 2, None)
    with pytest.raises(CommandError, match="has no broker 4; it has 1, 2, 3"):
        made.broker(4)


def test_a_memory_that_cannot_be_read_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(CommandError, match="cannot be read"):
        load(tmp_path)


def test_all_run_and_all_stop(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, 3, None)
    ensemble = Ensemble(cluster, cluster.brokers)
    with ensemble.running():
        ensemble.start(None, PROGRAM)
        assert ensemble.wait_until(all_locked(cluster), PATIENCE_S)
        pids = [cluster.running_pid(each.node_id) for each in cluster.brokers]
        assert pids == [each.pid for each in ensemble.processes]
        with pytest.raises(CommandError, match="is already running"):
            Ensemble(cluster, cluster.brokers).start(None, PROGRAM)
    assert [each.exit_code for each in ensemble.processes] == [0, 0, 0]
    assert not ensemble.failed
    assert cluster.running_pid(1) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_watch_and_all_processes(tmp_path: Path, number: signal.Signals) -> None:
    cluster = new_cluster(tmp_path, 2, None)
    ensemble = Ensemble(cluster, cluster.brokers)
    with ensemble.running():
        ensemble.start(None, PROGRAM)
        assert ensemble.wait_until(all_locked(cluster), PATIENCE_S)
        os.kill(os.getpid(), number)
        ensemble.watch()
        assert [each.exit_code for each in ensemble.processes] == [None, None]
    assert [each.exit_code for each in ensemble.processes] == [0, 0]


def test_a_process_that_dies_is_reported_and_the_others_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = new_cluster(tmp_path, 2, None)
    ensemble = Ensemble(cluster, cluster.brokers)
    with ensemble.running():
        ensemble.start(None, PROGRAM)
        assert ensemble.wait_until(all_locked(cluster), PATIENCE_S)
        first, second = ensemble.processes
        os.kill(first.pid, signal.SIGKILL)
        os.kill(second.pid, signal.SIGTERM)
        ensemble.watch()  # returns, because no process is left
    said = capsys.readouterr().err
    assert "Broker 1 ended by signal SIGKILL" in said
    assert "ready" in said
    assert "Broker 2 was stopped" in said
    assert ensemble.failed


def test_a_process_that_dies_at_the_start_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIES", "2")
    cluster = new_cluster(tmp_path, 2, None)
    ensemble = Ensemble(cluster, cluster.brokers)
    with ensemble.running():
        ensemble.start(None, PROGRAM)
        with pytest.raises(CommandError, match=r"Broker 2 ended with exit code 70[^~]*sky fell"):
            ensemble.wait_until(lambda: False, PATIENCE_S)
    assert ensemble.failed
    assert eventually(lambda: not is_locked(cluster.data(1)))
