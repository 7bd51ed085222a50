"""Tests a full disk at a leader: another in-sync replica accepts the writes within seconds."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually
from tests.support.disks.mounts import CannotMountError, small_disk
from tests.support.loads.load import Load, consume_all, create_topic

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

DISK_BYTES = 64 << 20
TOPIC = "full"
PARTITIONS = 3


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[dict[int, Path]]:
    """A small disk for each of three nodes."""
    with contextlib.ExitStack() as mounted:
        try:
            yield {
                number: mounted.enter_context(small_disk(tmp_path / f"disk-{number}", DISK_BYTES))
                for number in (1, 2, 3)
            }
        except CannotMountError as reason:
            pytest.skip(str(reason))


def fill(disk: Path) -> Path:
    """Fill a disk to the last byte, and keep it full."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def leader_that(
    cluster: ClusterProcesses, fits: Callable[[int], bool]
) -> tuple[int, tuple[int, ...]]:
    """Return a node that leads partitions, and those partitions."""
    leaders = {number: cluster.leader_of(TOPIC, number) for number in range(PARTITIONS)}
    node = next(node for node in leaders.values() if fits(node))
    return node, tuple(number for number, leader in leaders.items() if leader == node)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("controls", [False, True], ids=["another", "the controller"])
def test_writes_continue_within_seconds(
    tmp_path: Path,
    disks: dict[int, Path],
    controls: bool,
    record_property: Callable[[str, object], None],
) -> None:
    data = {number: disk / "data" for number, disk in disks.items()}
    with ClusterProcesses(tmp_path, data=data) as cluster:
        create_topic(cluster.bootstrap, TOPIC, PARTITIONS)
        cluster.wait_healthy((TOPIC,))
        controller = cluster.controller()
        full, led = leader_that(cluster, lambda node: (node == controller) == controls)
        with Load(cluster.bootstrap, TOPIC, PARTITIONS, producers=2, size=500) as load:
            load.wait_for(300)
            filler = fill(disks[full])
            began_s = time.monotonic()
            eventually(lambda: not {cluster.leader_of(TOPIC, n) for n in led} & {full}, 60)
            load.wait_for(1_000)
            record_property("seconds", round(time.monotonic() - began_s, 1))
            assert filler.exists()
            filler.unlink()
            cluster.wait_healthy((TOPIC,))
            load.finish()
        assert load.failures == []
        assert load.ledger.violations(consume_all(cluster.bootstrap, TOPIC, PARTITIONS)) == []
