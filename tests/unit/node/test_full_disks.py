"""Tests a broker whose disk is full, or came back empty: whole nodes on simulated hosts."""

from collections.abc import Callable

import pytest

from barnabas.handlers.leadership import leader_instead
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.sim.host import Host
from barnabas.sim.memory_disk import MemoryDisk
from barnabas.sim.simulated_cluster import BROKER_SESSION_MS
from tests.support.simulated_brokers import SimulatedBrokers, node_of
from tests.support.talk.batches import make_batch

PLACE = TopicPartition("orders", 0)


class Full(SimulatedBrokers):
    """Three brokers with one topic, and clients that send to the leader that they know."""

    def __init__(self) -> None:
        super().__init__(keep_trace=True)
        self.start_hosts()
        self.until(lambda: all(len(node.brokers) == 3 for node in self.cluster.nodes))
        self.first_controller = controller = self.controller
        controller.run_event(
            controller.life,
            lambda: node_of(controller).create_topic("orders", 3, {}, 0),
        )
        self.until(lambda: all("orders" in node.image.topics for node in self.cluster.nodes))
        self.until(lambda: self.leader_of(0) is not None)

    def until(self, done: Callable[[], bool]) -> int:
        return self.run_until(
            lambda: len(self.cluster.nodes) == 3 and done(), "all are up and the condition holds"
        )

    def leader_of(self, number: int) -> Host | None:
        return self.cluster.leader_of(TopicPartition("orders", number))

    def send_to(self, host: Host, number: int) -> ErrorCode:
        """Append once if this host is the leader."""
        codes: list[ErrorCode] = []

        def append() -> None:
            try:
                node_of(host).partitions[TopicPartition("orders", number)].leader.append(
                    make_batch(), 0
                )
            except ApiError as error:
                codes.append(error.code)
            else:
                codes.append(ErrorCode.NONE)

        host.run_event(host.life, append)
        return codes[0]


@pytest.mark.parametrize("controls", [False, True], ids=["another", "the controller"])
def test_another_broker_takes_the_writes(controls: bool) -> None:
    world = Full()
    number = next(n for n in range(3) if (world.leader_of(n) is world.first_controller) == controls)
    full = world.leader_of(number)
    assert full is not None
    full.disk.room = 0

    def is_moved() -> bool:
        world.send_to(full, number)
        return world.leader_of(number) is not full

    assert world.until(is_moved) <= 3 * BROKER_SESSION_MS
    leader = world.leader_of(number)
    assert leader is not None
    assert world.send_to(leader, number) is ErrorCode.NONE
    safe = node_of(leader).partitions[TopicPartition("orders", number)]
    world.until(lambda: safe.high_watermark == safe.log.end_offset)
    full.disk.room = None
    world.until(lambda: len(safe.isr) == 3)


def test_a_broker_that_resigned_names_the_leader_with_outdated_metadata() -> None:
    world = Full()
    number = next(n for n in range(3) if world.leader_of(n) is not world.first_controller)
    full = world.leader_of(number)
    assert full is not None
    node = node_of(full)
    full.disk.room = 0
    partition = node.partitions[TopicPartition("orders", number)]

    def has_stepped_down() -> bool:
        world.send_to(full, number)
        return not partition.leads

    world.until(has_stepped_down)
    topic = node.image.topics["orders"]
    leader = world.leader_of(number)
    assert leader is not None
    assert topic.partitions[number].leader == node.node_id, "the image is on the full disk"
    assert node.replicas.newest(topic)[number].leader == node_of(leader).node_id
    told = leader_instead(node, "orders", number, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert told is not None
    assert told.node_id == node_of(leader).node_id
    full.disk.room = None
    world.until(lambda: node.image.topics["orders"].partitions[number].leader != node.node_id)
    assert node.replicas.newest(node.image.topics["orders"]) is (
        node.image.topics["orders"].partitions
    )


def test_a_voter_that_comes_back_with_an_empty_disk_says_that_it_does_not_vote() -> None:
    world = Full()
    lost = next(host for host in world.cluster.hosts if host is not world.first_controller)
    lost.kill(power_cut=True)
    lost.disk = MemoryDisk()
    lost.start()
    world.until(lambda: lost.accepts_clients)
    said = [line for line in world.world.trace if "this broker does not vote" in line]
    number = node_of(lost).node_id
    assert len(said) == 1
    assert f"barnabas cluster demote {number} && barnabas cluster promote {number}" in said[0]
