"""Several listeners: a client learns the addresses of the one that it came to, and no other."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.handlers.cluster import describe_cluster, describe_topic_partitions, metadata
from barnabas.handlers.context import RequestContext
from barnabas.handlers.groups import find_coordinator
from barnabas.handlers.leadership import endpoints_of
from barnabas.metadata.image import BrokerImage
from barnabas.model.callers import CLIENT_LISTENER, Listener, unauthenticated
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.protocol.current_leader import Leader
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.talk.dialogue import START_MS, Dialogue
from tests.support.talk.requests import batch, create_topic, send_produce

INTERNAL, EXTERNAL = Listener("INTERNAL"), Listener("EXTERNAL", protocol="SSL")
OWN = {"INTERNAL": ("me", 1), "EXTERNAL": ("me.example", 2)}
OTHERS = {"INTERNAL": ("other", 1), "EXTERNAL": ("other.example", 2)}


def context(listener: Listener, version: int) -> RequestContext:
    return RequestContext(version, "client", unauthenticated("10.0.0.9", listener), START_MS)


def broker(node_id: int, endpoints: dict[str, tuple[str, int]]) -> BrokerImage:
    host, port = next(iter(endpoints.values()), ("plain", 9))
    return BrokerImage(
        node_id, 7, "", host, port, "peer", 9, None, fenced=False, endpoints=endpoints
    )


@pytest.fixture
def talk(talk: Dialogue) -> Dialogue:
    """This broker and broker 2 have both listeners, broker 3 has only INTERNAL."""
    talk.node.endpoints = OWN
    brokers = talk.node.image.brokers
    brokers[1] = replace(brokers[1], endpoints=OWN)
    brokers[2] = broker(2, OTHERS)
    brokers[3] = broker(3, {"INTERNAL": ("third", 1)})
    create_topic(talk, "orders", 2)
    first, second = talk.node.image.topics["orders"].partitions
    talk.node.image.topics["orders"].partitions[:] = [
        first,
        replace(second, leader=3, replicas=[3, 1], isr=[3]),
    ]
    return talk


def addresses(brokers: Any) -> list[tuple[str, int]]:
    return sorted((each.host, each.port) for each in brokers)


def described(talk: Dialogue, listener: Listener, version: int = 12) -> Any:
    request = MetadataRequest(topics=None)
    return metadata.handle(talk.node, request, context(listener, version))


def test_metadata_names_the_brokers_that_have_the_listener(talk: Dialogue) -> None:
    assert addresses(described(talk, INTERNAL).brokers) == [("me", 1), ("other", 1), ("third", 1)]
    assert addresses(described(talk, EXTERNAL).brokers) == [("me.example", 2), ("other.example", 2)]
    assert addresses(described(talk, Listener("UNKNOWN")).brokers) == []
    assert addresses(described(talk, CLIENT_LISTENER).brokers) == []


@pytest.mark.parametrize(
    ("version", "code"),
    [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
)
def test_a_leader_without_the_listener_is_none(
    talk: Dialogue, version: int, code: ErrorCode
) -> None:
    first, second = described(talk, EXTERNAL, version).topics[0].partitions
    assert (first.leader_id, first.error_code) == (1, ErrorCode.NONE)
    assert (second.leader_id, second.error_code) == (-1, code)
    assert second.offline_replicas == [3]
    assert second.replica_nodes == [3, 1]
    _, inside = described(talk, INTERNAL, version).topics[0].partitions
    assert (inside.leader_id, inside.error_code, inside.offline_replicas) == (3, 0, [])


def test_topic_partitions_are_described_alike(talk: Dialogue) -> None:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="orders")])
    answer = describe_topic_partitions.handle(talk.node, request, context(EXTERNAL, 0))
    found = [(each.leader_id, each.error_code) for each in answer.topics[0].partitions]
    assert found == [(1, ErrorCode.NONE), (-1, ErrorCode.LISTENER_NOT_FOUND)]


def test_describe_cluster_answers_with_the_listeners_addresses(talk: Dialogue) -> None:
    request = DescribeClusterRequest()
    inside = describe_cluster.handle(talk.node, request, context(INTERNAL, 1))
    outside = describe_cluster.handle(talk.node, request, context(EXTERNAL, 1))
    assert addresses(inside.brokers) == [("me", 1), ("other", 1), ("third", 1)]
    assert addresses(outside.brokers) == [("me.example", 2), ("other.example", 2)]


def test_a_coordinator_is_named_by_the_address_of_the_listener(talk: Dialogue) -> None:
    def ask(listener: Listener) -> Any:
        request = FindCoordinatorRequest(coordinator_keys=["group"])
        answer: Any = find_coordinator.handle(talk.node, request, context(listener, 4))
        if isinstance(answer, Pending):
            found: list[Any] = []
            talk.settle()
            answer.when_done(found.append, lambda error: pytest.fail(str(error)))
            (answer,) = found
        (only,) = answer.coordinators
        return only

    assert (ask(INTERNAL).host, ask(INTERNAL).port) == ("me", 1)
    assert (ask(EXTERNAL).host, ask(EXTERNAL).port) == ("me.example", 2)
    assert ask(Listener("UNKNOWN")).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_leaders_in_errors_have_the_address_of_the_listener(talk: Dialogue) -> None:
    leaders = [Leader(2, 5), Leader(3, 5), None]
    inside = endpoints_of(talk.node, leaders, INTERNAL)
    outside = endpoints_of(talk.node, leaders, EXTERNAL)
    assert [each.host for each in inside] == ["other", "third"]
    assert [each.host for each in outside] == ["other.example"]


def test_a_broker_without_names_has_the_usual_listener(talk: Dialogue) -> None:
    talk.node.image.brokers[3] = broker(3, {})
    assert ("plain", 9) not in addresses(described(talk, EXTERNAL).brokers)
    assert addresses(described(talk, CLIENT_LISTENER).brokers) == [("plain", 9)]


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize(("listener", "host"), [(INTERNAL, "other"), (EXTERNAL, "other.example")])
def test_a_producer_learns_the_new_leaders_address_on_its_listener(
    talk: Dialogue, listener: Listener, host: str, *, fast_path: bool
) -> None:
    talk.caller = unauthenticated("10.0.0.9", listener)
    talk.hold_syncs, talk.fast_path = True, fast_path
    waiting = send_produce(talk, "orders", batch(), version=12)
    assert waiting.waiting
    placed = talk.node.image.topics["orders"].partitions[0]
    moved = replace(placed, leader=2, leader_epoch=placed.leader_epoch + 1)
    talk.node.image.topics["orders"].partitions[0] = moved
    talk.node.find("orders", 0).follow(moved)
    (endpoint,) = waiting.answer.node_endpoints
    assert (endpoint.node_id, endpoint.host) == (2, host)
