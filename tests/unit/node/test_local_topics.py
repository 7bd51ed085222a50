"""The logs of a node in a cluster: many are opened little by little."""

from collections import Counter
from itertools import pairwise

import pytest

from barnabas.model.ids import TopicId
from barnabas.model.ports import Disk
from barnabas.node import local_topics
from barnabas.node.node import Node
from barnabas.sim.cluster import Cluster
from barnabas.sim.host import Host
from barnabas.sim.world import World
from barnabas.storage.ownership import Owned, own_folder

TOPICS = 40
PARTITIONS = 10
PATIENCE_MS = 60_000


def formed() -> tuple[World, Cluster]:
    world = World(1)
    cluster = Cluster.of(world, 3)
    for host in cluster.hosts:
        host.start()
    world.run_until(
        lambda: len(cluster.nodes) == 3 and all(len(node.brokers) == 3 for node in cluster.nodes),
        PATIENCE_MS,
        "all brokers are let in",
    )
    return world, cluster


def make_topics(world: World, cluster: Cluster) -> None:
    host = cluster.controller
    assert host is not None

    def make(node: Node) -> None:
        for number in range(TOPICS):
            node.creation.create(f"many-{number}", PARTITIONS, 3, {}, 0)

    node = host.node
    assert node is not None
    host.act(host.life, lambda: make(node))
    world.run_until(
        lambda: all(map(holds_everything, cluster.hosts)), world.now_ms + PATIENCE_MS, "made"
    )


def holds_everything(host: Host) -> bool:
    return host.node is not None and len(host.node.partitions) == TOPICS * PARTITIONS


def test_a_topic_that_waits_for_its_turn_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world, cluster = formed()
    make_topics(world, cluster)
    looks: Counter[str] = Counter()

    def counted(disk: Disk, folder: str, topic_id: TopicId, strangers: str) -> Owned:
        looks[folder] += 1
        return own_folder(disk, folder, topic_id, strangers)

    monkeypatch.setattr(local_topics, "own_folder", counted)
    host = next(each for each in cluster.hosts if each is not cluster.controller)
    host.kill(power_cut=False)
    host.start()
    opened: list[int] = []

    def is_back() -> bool:
        opened.append(0 if host.node is None else len(host.node.partitions))
        return holds_everything(host)

    world.run_until(is_back, world.now_ms + PATIENCE_MS, "everything is open")
    steps = [after - before for before, after in pairwise(opened)]
    assert max(steps) <= local_topics.OPENED_AT_ONCE
    # Once when it is put in the queue, and once or twice when it is its turn.
    assert looks.total() <= 3 * TOPICS
