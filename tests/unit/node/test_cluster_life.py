"""Tests nodes of a cluster: registration, fencing, shutdown, and requests to the controller.

Whole nodes run on simulated hosts, on a network without losses.
"""

import gc
import weakref
from collections.abc import Callable

import pytest

from barnabas.metadata.metadata_records import TopicDeleted
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import BROKER_SESSION_MS
from tests.support.simulated_brokers import SimulatedBrokers


class Three(SimulatedBrokers):
    """Three brokers, and helpers that wait for a condition."""

    def __init__(self, count: int = 3) -> None:
        super().__init__(count)
        self.start_hosts()
        self.until(self.is_formed, "all brokers are unfenced")

    def is_formed(self) -> bool:
        nodes = self.cluster.nodes
        count = len(self.cluster.hosts)
        return len(nodes) == count and all(len(node.brokers) == count for node in nodes)

    def until(self, done: Callable[[], bool], what: str) -> int:
        return self.run_until(done, what)

    @property
    def other(self) -> Host:
        """Return a broker that is not the controller."""
        return next(host for host in self.cluster.hosts if host is not self.controller)

    def do(self, host: Host, action: Callable[[Node], Pending[None]]) -> Pending[None]:
        """Run an event on a broker."""
        found: list[Pending[None]] = []
        assert host.node is not None
        node = host.node
        host.run_event(host.life, lambda: found.append(action(node)))
        return found[0]

    def make(self, name: str, partitions: int, *, on: Host | None = None) -> None:
        host = on or self.controller
        self.do(host, lambda node: node.create_topic(name, partitions, {}, 0))
        self.until(lambda: all(is_open(name, node) for node in self.cluster.nodes), "it is open")

    def leaders(self, name: str, seen_by: Host) -> list[int]:
        assert seen_by.node is not None
        return [p.leader for p in seen_by.node.image.topics[name].partitions]


@pytest.fixture
def three() -> Three:
    return Three()


def is_open(name: str, node: Node) -> bool:
    topic = node.image.topics.get(name)
    return topic is not None and node.local.is_open(topic)


def node_of(host: Host) -> Node:
    assert host.node is not None
    return host.node


def test_brokers_find_each_other_and_agree_on_the_controller(three: Three) -> None:
    images = [node.image for node in three.cluster.nodes]
    assert images[0].cluster_id
    assert {image.cluster_id for image in images} == {images[0].cluster_id}
    assert {node.controller_id for node in three.cluster.nodes} == {
        node_of(three.controller).node_id
    }
    assert len({broker.broker_epoch for broker in images[0].brokers.values()}) == 3


def test_a_topic_that_any_broker_is_asked_for_is_spread_and_led(three: Three) -> None:
    three.make("spread", 6, on=three.other)
    assert sorted(three.leaders("spread", three.controller)) == [1, 1, 2, 2, 3, 3]
    for host in three.cluster.hosts:
        copies = node_of(host).by_topic_name["spread"]
        led = [number for number, copy in copies.items() if copy.leads]
        assert (len(copies), len(led)) == (6, 2)


def test_a_new_topic_says_how_many_must_be_in_sync(three: Three) -> None:
    three.make("sure", 1)
    config = node_of(three.other).image.topics["sure"].config
    assert config["min.insync.replicas"] == "2"


def test_a_killed_broker_is_fenced_long_before_its_session_ends(three: Three) -> None:
    three.make("moved", 3)
    victim = three.other
    number = node_of(victim).node_id
    victim.kill(power_cut=True)
    took_ms = three.until(
        lambda: number not in three.leaders("moved", three.controller), "others lead"
    )
    assert took_ms < BROKER_SESSION_MS


def test_a_connected_broker_without_heartbeats_is_fenced_when_its_session_ends(
    three: Three,
) -> None:
    three.make("moved", 3)
    victim, witness = three.other, three.controller
    number = node_of(victim).node_id
    victim.pause()
    took_ms = three.until(lambda: number not in three.leaders("moved", witness), "others lead")
    assert took_ms >= BROKER_SESSION_MS // 2


def test_a_returning_broker_is_unfenced_and_leads_where_it_is_preferred(three: Three) -> None:
    three.make("back", 3)
    victim = three.other
    number = node_of(victim).node_id
    victim.kill(power_cut=True)
    three.until(lambda: number not in three.leaders("back", three.controller), "others lead")
    victim.start()
    three.until(three.is_formed, "it is unfenced")
    topic = node_of(three.controller).image.topics["back"]
    three.until(lambda: all(len(p.isr) == 3 for p in topic.partitions), "it is in sync")
    controller = three.controller
    controller.run_event(controller.life, node_of(controller).controlling.prefer_leaders)
    three.until(lambda: number in three.leaders("back", controller), "it leads again")
    assert [p.leader for p in topic.partitions] == [p.replicas[0] for p in topic.partitions]


def test_another_controls_when_the_controller_is_killed_and_decides_as_it_would_have(
    three: Three,
) -> None:
    three.make("before", 2)
    old = three.controller
    old.kill(power_cut=True)
    took_ms = three.until(lambda: three.cluster.controller is not None, "another controls")
    assert took_ms < 3_000
    assert three.controller is not old
    three.do(three.controller, lambda node: node.create_topic("after", 2, {}, 0))
    three.until(
        lambda: all("after" in node.image.topics for node in three.cluster.nodes), "it is made"
    )
    assert set(node_of(three.controller).image.topics) == {"before", "after"}


def test_a_stopping_broker_leads_nothing_by_then(three: Three) -> None:
    three.make("calm", 3)
    leaver = three.other
    number = node_of(leaver).node_id
    left = three.do(leaver, lambda node: node.membership.leave())
    three.until(lambda: left.done, "it may go")
    assert number not in three.leaders("calm", three.controller)
    assert node_of(three.controller).image.brokers[number].fenced


def test_a_process_does_not_live_through_the_past_again(three: Three) -> None:
    """A recreated topic has the name and folder of the old one: its records must stay."""
    three.make("again", 1)
    old = node_of(three.controller).image.topics["again"].topic_id
    gone = TopicDeleted(topic_id=old.hex())
    three.do(three.controller, lambda node: node.commit([gone], 0))
    three.until(
        lambda: all("again" not in node.image.topics for node in three.cluster.nodes), "it is gone"
    )
    three.make("again", 1)
    host = three.other
    place = TopicPartition("again", 0)
    folder = node_of(host).partitions[place].log.folder
    host.kill(power_cut=False)
    host.start()
    three.until(lambda: place in node_of(host).partitions, "it is back")
    assert node_of(host).partitions[place].log.folder == folder
    assert host.disk.list("data/strangers") == []


def test_every_broker_assigns_unique_producer_ids(three: Three) -> None:
    given: list[int] = []
    for _ in range(3):
        for host in three.cluster.hosts:
            node = node_of(host)
            host.run_event(
                host.life,
                lambda node=node: node.next_producer_id(0).when_done(given.append),  # type: ignore[misc]
            )
    three.until(lambda: len(given) == 9, "ids are given")
    assert len(set(given)) == 9


def test_only_the_controller_decides(three: Three) -> None:
    node = node_of(three.other)
    with pytest.raises(ApiError) as refused:
        node.commit([TopicDeleted(topic_id="00" * 16)], 0)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    with pytest.raises(ApiError):
        _ = node.draft


def test_a_majority_is_needed_to_decide(three: Three) -> None:
    controller = three.controller
    for host in three.cluster.hosts:
        if host is not controller:
            host.kill(power_cut=True)
    three.until(lambda: not node_of(controller).is_controller, "it gives up")
    with pytest.raises(ApiError):
        node_of(controller).commit([TopicDeleted(topic_id="00" * 16)], 0)


MARKER = "data/.clean-shutdown"


def found_alone(three: Three, host: Host) -> None:
    """Start a broker that the controller does not unfence, and stop it again."""
    for other in three.cluster.hosts:
        if other.node is not None:
            other.kill(power_cut=False)
    host.start()
    stopped = list[bool]()
    host.stop(lambda: stopped.append(True))
    three.until(lambda: bool(stopped), "it stops")
    host.kill(power_cut=False)


def test_a_process_that_was_never_unfenced_keeps_the_clean_stop_marker(
    three: Three,
) -> None:
    three.make("kept", 3)
    host = three.other
    stopped = list[bool]()
    host.stop(lambda: stopped.append(True))
    three.until(lambda: bool(stopped), "it stops")
    host.kill(power_cut=False)
    left = host.disk.read_bytes(MARKER)
    found_alone(three, host)
    assert host.disk.read_bytes(MARKER) == left


def test_a_process_that_was_never_unfenced_does_not_report_a_crash_as_clean(three: Three) -> None:
    three.make("torn", 3)
    host = three.other
    host.kill(power_cut=True)
    found_alone(three, host)
    assert not host.disk.exists(MARKER)


def test_requests_that_wait_for_a_moved_replica_are_sent_to_its_leader() -> None:
    four = Three(4)
    four.make("moving", 1)
    place = TopicPartition("moving", 0)
    host = four.cluster.by_id[node_of(four.controller).image.topics["moving"].partitions[0].leader]
    partition = node_of(host).partitions[place]
    told = list[bool]()
    partition.when_safe(1, lambda: None, lambda: told.append(partition.retired))
    others = [number for number in (1, 2, 3, 4) if number != node_of(host).node_id]
    move = ReassignablePartition(partition_index=0, replicas=others)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="moving", partitions=[move])]
    )
    controller = four.controller
    controller.run_event(controller.life, lambda: node_of(controller).controlling.reassign(request))
    four.until(lambda: place not in node_of(host).partitions, "it moved")
    assert told == [False]


def test_no_object_refers_to_a_deleted_partition(three: Three) -> None:
    """The old log keeps files open, so their space on the disk is not free."""
    three.make("gone", 3)
    gc.disable()  # otherwise a reference cycle would keep them until a collection
    try:
        kept = [
            weakref.ref(partition)
            for host in three.cluster.hosts
            for partition in node_of(host).by_topic_name["gone"].values()
        ]
        assert len(kept) == 9
        topic_id = node_of(three.controller).image.topics["gone"].topic_id
        deleted = TopicDeleted(topic_id=topic_id.hex())
        three.do(three.controller, lambda node: node.commit([deleted], 0))
        three.until(lambda: not any(ref() for ref in kept), "all of them are released")
    finally:
        gc.enable()


def test_a_broker_is_unfenced_over_a_link_slower_than_its_heartbeats(three: Three) -> None:
    """A client that closes its connection too early and retries never gets a response."""
    host, controller = three.other, three.controller
    host.kill(power_cut=False)
    interval_ms = host.settings.cluster.broker_heartbeat_interval_ms
    for way in ((host.name, controller.name), (controller.name, host.name)):
        three.cluster.link_faults.slow(*way, interval_ms // 2 + 50)
    host.start()
    three.until(lambda: host.node is not None and host.node.membership.is_active, "it is unfenced")
    assert three.controller is controller
