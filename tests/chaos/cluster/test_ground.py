"""Tests that the faults are real: cut links drop, slow links delay, failing syncs fail."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_ground import DISKS, NETWORK, SHIM, Ground
from tests.support.clusters.cluster_places import OUTSIDE

pytestmark = pytest.mark.chaos

NODES = (1, 2, 3)
SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    client, _ = server.accept()
    client.sendall(client.recv(100))
    client.close()
"""
CLIENT = """
import socket, sys
client = socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.7)
client.sendall(b"hello")
sys.exit(client.recv(100) != b"hello")
"""
STEP = """
import os, sys, time
sys.stdin.readline()
print(time.time() - time.monotonic(), flush=True)
sys.stdin.readline()
print(time.time() - time.monotonic(), flush=True)
try:
    os.fdatasync(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))
except OSError as error:
    print(error.errno, flush=True)
"""
DELAY_MS = 100


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(tmp_path_factory.mktemp("ground"), NODES, 32 << 20) as made:
        yield made


@pytest.fixture
def network(ground: Ground) -> Iterator[Ground]:
    if reason := ground.missing.get(NETWORK):
        pytest.skip(reason)
    assert ground.network is not None
    servers = []
    for node in NODES:
        host, port = ground.network.peer_address(node)
        command = [*ground.network.prefix(node), sys.executable, "-c", SERVER, host, str(port)]
        servers.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
    yield ground
    for server in servers:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def reaches(ground: Ground, source: int, target: int) -> bool:
    assert ground.network is not None
    host, port = ground.network.peer_address(target)
    prefix = [] if source == OUTSIDE else ground.network.prefix(source)
    command = [*prefix, sys.executable, "-S", "-c", CLIENT, host, str(port)]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def test_every_node_reaches_every_other(network: Ground) -> None:
    assert all(reaches(network, a, b) for a, b in ((1, 2), (2, 3), (3, 1), (OUTSIDE, 1)))


def test_a_cut_is_between_some_and_can_be_healed(network: Ground) -> None:
    assert network.network is not None
    network.network.cut(1, (2,))
    assert not reaches(network, 1, 2)
    assert not reaches(network, 2, 1)
    assert reaches(network, 1, 3)
    assert reaches(network, OUTSIDE, 1)
    network.network.heal(1)
    assert reaches(network, 1, 2)


@pytest.mark.parametrize("inbound", [True, False])
def test_a_cut_of_one_way(network: Ground, inbound: bool) -> None:
    assert network.network is not None
    network.network.cut(1, (2,), inbound=inbound, outbound=not inbound)
    assert not reaches(network, 1, 2)
    network.network.heal(1)
    assert reaches(network, 1, 2)


def test_a_slow_link_is_late_for_peers_alone(network: Ground) -> None:
    assert network.network is not None
    network.network.slow_down(1, DELAY_MS, 20)
    eventually(lambda: reaches(network, 2, 1))
    begun = time.monotonic()
    assert reaches(network, 2, 1)
    assert time.monotonic() - begun > 3 * DELAY_MS / 1000  # SYN, its answer, the data
    network.network.cut(1, (2, 3))
    assert reaches(network, OUTSIDE, 1)
    network.network.heal(1)
    network.network.speed_up(1)
    eventually(lambda: reaches(network, 2, 1))


def test_a_full_disk_takes_nothing_and_then_something(ground: Ground) -> None:
    if reason := ground.missing.get(DISKS):
        pytest.skip(reason)
    ground.fill_disk(1)
    path = ground.disks[1].folder / "more"
    with pytest.raises(OSError, match="No space left"):
        path.write_bytes(bytes(8192))
    ground.empty_disk(1)
    assert path.write_bytes(bytes(8192)) == 8192


def test_clocks_jump_and_syncs_fail(ground: Ground, tmp_path: Path) -> None:
    if reason := ground.missing.get(SHIM):
        pytest.skip(reason)
    control = ground.controls[1]
    with subprocess.Popen(
        [sys.executable, "-c", STEP, str(tmp_path / "file")],
        env={**os.environ, **control.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        before = float(process.stdout.readline())
        control.set_clock(-3_600_000)
        control.fail_syncs(failing=True)
        process.stdin.write("\n")
        process.stdin.flush()
        after = float(process.stdout.readline())
        assert round((after - before) / 3600) == -1
        assert process.stdout.readline() == "5\n"  # EIO
    assert control.failed_syncs == 1
    control.fail_syncs(failing=False)
    control.set_clock(0)
