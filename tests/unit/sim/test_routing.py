"""Tests how a simulated client finds brokers, and when it looks them up again."""

from collections.abc import Generator
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    metadata,
    produce,
)
from barnabas.sim.clients.client_requests import fetch_from, produce_to
from barnabas.sim.clients.routing import Routes, codes_in
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import World

PLACE = TopicPartition("t", 1)


class Dialogue:
    """A client's routes, and the brokers that it sends requests to."""

    def __init__(self, *, leader: int = 2, coordinator: int = 3) -> None:
        self.cluster = Cluster.of(World(1), 3)
        self.routes = Routes(self.cluster)
        self.leader = leader
        self.coordinator = coordinator
        self.asked: list[str] = []

    def find(self, request: Message) -> Host | None:
        """Return the broker for a request."""
        finding = self.routes.find(self._answer, request)
        try:
            next(finding)
        except StopIteration as stop:
            found: Host | None = stop.value
            return found
        raise AssertionError("there is no response to wait for")

    def _answer(self, host: Host, request: Message) -> Generator[Any, Any, Any]:
        self.asked.append(type(request).__name__)
        yield from ()  # a generator that never waits
        if isinstance(request, metadata.MetadataRequest):
            part = metadata.MetadataResponsePartition(
                partition_index=1, leader_id=self.leader, leader_epoch=7, replica_nodes=[2, 3]
            )
            topic = metadata.MetadataResponseTopic(name="t", partitions=[part])
            return metadata.MetadataResponse(topics=[topic])
        assert isinstance(request, find_coordinator.FindCoordinatorRequest)
        found = find_coordinator.Coordinator(
            key=request.coordinator_keys[0], node_id=self.coordinator
        )
        return find_coordinator.FindCoordinatorResponse(coordinators=[found])


def produced(code: ErrorCode) -> produce.ProduceResponse:
    part = produce.PartitionProduceResponse(index=1, error_code=code)
    return produce.ProduceResponse(
        responses=[produce.TopicProduceResponse(name="t", partition_responses=[part])]
    )


def test_a_leader_is_looked_up_once() -> None:
    client = Dialogue()
    request = produce_to(PLACE, b"")
    assert client.find(request) is client.cluster.by_id[2]
    client.routes.learn(request, produced(ErrorCode.NONE))
    assert client.find(request) is client.cluster.by_id[2]
    assert client.asked == ["MetadataRequest"]


@pytest.mark.parametrize("answer", [None, produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)])
def test_a_previous_leader_is_forgotten(answer: Message | None) -> None:
    client = Dialogue()
    request = produce_to(PLACE, b"")
    client.find(request)
    client.routes.learn(request, answer)
    client.leader = 1
    assert client.find(request) is client.cluster.by_id[1]
    assert client.asked == ["MetadataRequest"] * 2


def test_no_request_is_sent_for_a_partition_without_a_leader() -> None:
    client = Dialogue(leader=-1)
    assert client.find(produce_to(PLACE, b"")) is None


def test_a_fetch_carries_the_leaders_epoch() -> None:
    client = Dialogue()
    request = fetch_from(PLACE, 0, committed=False)
    client.find(request)
    assert request.topics[0].partitions[0].current_leader_epoch == 7


def test_a_client_that_reads_from_followers_stays_with_a_replica_until_it_fails() -> None:
    client = Dialogue()
    client.routes.reads_from_followers = True
    request = fetch_from(PLACE, 0, committed=False)
    found = {client.find(request) for _ in range(10)}
    assert len(found) == 1
    for _ in range(20):
        client.routes.learn(request, None)
        found.add(client.find(request))
    assert found == {client.cluster.by_id[2], client.cluster.by_id[3]}


def test_a_coordinator_is_found_by_its_key() -> None:
    client = Dialogue()
    request = heartbeat.HeartbeatRequest(group_id="g")
    assert client.find(request) is client.cluster.by_id[3]
    assert client.find(heartbeat.HeartbeatRequest(group_id="g")) is client.cluster.by_id[3]
    assert client.asked == ["FindCoordinatorRequest"]
    moved = heartbeat.HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    client.routes.learn(request, moved)
    client.coordinator = 1
    assert client.find(request) is client.cluster.by_id[1]


def test_a_plain_producer_asks_any_broker() -> None:
    client = Dialogue()
    request = init_producer_id.InitProducerIdRequest(transactional_id=None)
    assert client.find(request) in client.cluster.hosts
    assert client.asked == []


def test_one_broker_is_asked_everything() -> None:
    cluster = Cluster.lone(World(1))
    finding = Routes(cluster).find(Dialogue()._answer, produce_to(PLACE, b""))
    with pytest.raises(StopIteration) as stop:
        next(finding)
    assert stop.value.value is cluster.hosts[0]


def test_codes_are_found_at_any_depth() -> None:
    part = fetch.PartitionData(error_code=ErrorCode.OFFSET_NOT_AVAILABLE)
    answer = fetch.FetchResponse(
        responses=[fetch.FetchableTopicResponse(topic="t", partitions=[part])]
    )
    assert ErrorCode.OFFSET_NOT_AVAILABLE in codes_in(answer)
