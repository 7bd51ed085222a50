"""Tests the logs of a node in a cluster: many logs are opened in steps."""

from collections import Counter
from itertools import pairwise

import pytest

from barnabas.metadata.metadata_records import TopicCreated, TopicDeleted
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.ports import Disk
from barnabas.node.cluster import local_topics
from barnabas.node.cluster.local_topics import DISCARDED_AT_ONCE
from barnabas.node.node import Node
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import World
from barnabas.storage.ownership import Owned, own_folder
from tests.support.disks.memory_disk import MemoryDisk
from tests.support.talk.batches import make_batch
from tests.support.talk.edge import Edge

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
        "all brokers are unfenced",
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
    host.run_event(host.life, lambda: make(node))
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
    assert max(steps) <= local_topics.OPENED_IN_A_CLUSTER
    # Once when it is queued, and once or twice when it is its turn.
    assert looks.total() <= 3 * TOPICS


MANY = 2 * DISCARDED_AT_ONCE + 10


def with_many() -> tuple[Edge, list[TopicCreated]]:
    edge = Edge(MemoryDisk()).start()
    return edge, [edge.create(f"orders-{number}", number=number + 1) for number in range(MANY)]


def delete_all(edge: Edge, topics: list[TopicCreated]) -> None:
    edge.node.commit([TopicDeleted(topic_id=topic.topic_id) for topic in topics], edge.now_ms)
    edge.settle()


def folders(edge: Edge) -> list[str]:
    return edge.disk.list("data/topics")


def test_of_many_topics_some_folders_are_renamed_an_event() -> None:
    edge, topics = with_many()
    delete_all(edge, topics)
    left = [len(folders(edge))]
    assert edge.node.partitions == {}
    while left[-1]:
        edge.pass_time(1)
        left.append(len(folders(edge)))
    assert left == [MANY - DISCARDED_AT_ONCE, MANY - 2 * DISCARDED_AT_ONCE, 0]
    assert edge.disk.list("data/deleted") == []


def test_a_topic_that_is_recreated_at_once_has_a_folder_of_its_own() -> None:
    edge, topics = with_many()
    for name in ("orders-0", topics[-1].name):
        partition = edge.node.partitions[TopicPartition(name, 0)]
        partition.leader.append(make_batch([(b"key", b"old")]), 1_000)
    delete_all(edge, topics)
    assert topics[-1].name in folders(edge)
    edge.create(topics[-1].name, number=1_000)
    again = edge.node.partitions[TopicPartition(topics[-1].name, 0)]
    assert again.log.end_offset == 0
    edge.pass_time(1)
    edge.pass_time(1)
    assert folders(edge) == [topics[-1].name]
    assert edge.disk.exists(again.log.folder)
    assert not edge.disk.exists("data/strangers")


def test_a_node_that_stops_leaves_no_folder_of_a_deleted_topic() -> None:
    edge, topics = with_many()
    delete_all(edge, topics)
    edge.stop()
    assert folders(edge) == []
    again = Edge(edge.disk).start()
    assert again.disk.list("data/deleted") == []
    assert not again.notices_of("a folder belongs to no topic")
