"""Tests topics that are created while a broker is down: whole nodes on simulated hosts.

The cluster is upgraded to the feature level at which topics record their replication factor.
"""

from collections.abc import Callable

import pytest

from barnabas.handlers.admin import create_topics, describe_configs
from barnabas.handlers.context import RequestContext
from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.metadata.image import GROUPS_TOPIC, TopicImage
from barnabas.metadata.metadata_records import FeatureLevelChanged
from barnabas.metadata.topic_config import WANTED_FACTOR
from barnabas.model.callers import unauthenticated
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from barnabas.sim.host import Host
from tests.support.simulated_brokers import SimulatedBrokers, node_of

CONTEXT = RequestContext(version=7, client_id="test", caller=unauthenticated("here"), now_ms=0)


class Outage(SimulatedBrokers):
    """Three brokers, one of which is down and is not the controller."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.start_hosts()
        self.until(lambda: self._up() == [3, 3, 3], "all brokers are unfenced")
        self._raise_to(level)
        self.victim, self.other = (h for h in self.cluster.hosts if h is not self.controller)
        self.victim.kill(power_cut=True)
        self.until(lambda: self._up() == [2, 2], "it is missed")

    def _raise_to(self, level: int) -> None:
        """Finalize a feature level; a cluster that forms at the newest level does not need it."""
        self.do(self.controller, lambda node: node.commit([FeatureLevelChanged(level=level)], 0))
        self.until(
            lambda: all(node.image.feature_level == level for node in self.cluster.nodes), "level"
        )

    def _up(self) -> list[int]:
        return [len(node.brokers) for node in self.cluster.nodes]

    def until(self, done: Callable[[], bool], what: str) -> None:
        self.run_until(done, what)

    def do(self, host: Host, action: Callable[[Node], object]) -> None:
        host.run_event(host.life, lambda: action(node_of(host)))

    def topic(self, name: str) -> TopicImage:
        return node_of(self.controller).image.topics[name]

    def make(self, host: Host, name: str, action: Callable[[Node], object]) -> TopicImage:
        self.do(host, action)
        self.until(lambda: all(name in n.image.topics for n in self.cluster.nodes), "it is known")
        return self.topic(name)

    def bring_back(self, name: str) -> None:
        """Start the broker that was down; wait until the topic has three replicas in sync."""
        self.victim.start()
        self.until(
            lambda: all(
                sorted(each.isr) == sorted(each.replicas) == [1, 2, 3] and not each.adding
                for each in self.topic(name).partitions
            ),
            "the topic has grown",
        )
        self.until(lambda: self.topic(name).replication_factor == 0, "nothing is left to be done")


@pytest.fixture
def outage() -> Outage:
    return Outage(WANTED_FACTOR_LEVEL)


@pytest.mark.parametrize("asked", ["controller", "other"])
def test_a_topic_made_on_demand_grows_when_the_broker_is_back(outage: Outage, asked: str) -> None:
    host: Host = getattr(outage, asked)
    made = outage.make(host, "orders", lambda node: node.auto_create("orders", 0))
    assert {len(each.replicas) for each in made.partitions} == {2}
    assert made.replication_factor == 3
    assert made.config["min.insync.replicas"] == "2"
    outage.bring_back("orders")


@pytest.mark.parametrize("asked", ["controller", "other"])
def test_the_offsets_topic_grows_when_the_broker_is_back(outage: Outage, asked: str) -> None:
    host: Host = getattr(outage, asked)
    made = outage.make(host, GROUPS_TOPIC, lambda node: node.coordinators.groups.ensure(0))
    assert {len(each.replicas) for each in made.partitions} == {2}
    assert made.replication_factor == 3
    assert made.config["min.insync.replicas"] == "2", (
        "the leader of three replicas, as there will be"
    )
    outage.bring_back(GROUPS_TOPIC)


def test_another_controller_continues_with_it(outage: Outage) -> None:
    outage.make(outage.controller, "orders", lambda node: node.auto_create("orders", 0))
    old = outage.controller
    outage.victim.start()
    outage.until(lambda: len(outage.cluster.nodes) == 3, "it is up")
    old.kill(power_cut=True)
    outage.until(lambda: outage.cluster.controller not in (None, old), "another controls")
    old.start()
    outage.until(lambda: outage.topic("orders").replication_factor == 0, "it has grown")
    assert {len(each.replicas) for each in outage.topic("orders").partitions} == {3}


@pytest.mark.parametrize("asked", ["controller", "other"])
def test_at_the_first_level_nothing_is_written_that_the_old_release_cannot_read(asked: str) -> None:
    outage = Outage(1)
    host: Host = getattr(outage, asked)
    made = outage.make(host, "orders", lambda node: node.auto_create("orders", 0))
    assert ({len(each.replicas) for each in made.partitions}, made.replication_factor) == ({2}, 0)


def create(node: Node, topic: CreatableTopic) -> ErrorCode:
    """Return the error, or None if the topic is being created."""
    answers: list[CreateTopicsResponse] = []
    request = CreateTopicsRequest(topics=[topic])
    create_topics.handle(node, request, CONTEXT).when_done(answers.append)
    if not answers:
        return ErrorCode.NONE
    return ErrorCode(answers[0].topics[0].error_code)


def test_what_a_client_asks_for_is_refused_while_brokers_are_missing(outage: Outage) -> None:
    node = node_of(outage.controller)
    for factor in (3, -1):
        topic = CreatableTopic(name="explicit", num_partitions=1, replication_factor=factor)
        assert create(node, topic) is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("value", ["2", "x", ""])
def test_a_factor_that_is_not_that_of_the_request_is_refused(outage: Outage, value: str) -> None:
    topic = CreatableTopic(
        name="odd",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=WANTED_FACTOR, value=value)],
    )
    assert create(node_of(outage.controller), topic) is ErrorCode.INVALID_CONFIG


def described(node: Node, name: str, *keys: str) -> list[DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = describe_configs.handle(node, request, CONTEXT)
    assert not isinstance(answer, Pending)
    return answer.results[0].configs


def test_the_factor_can_be_seen_until_it_is_reached(outage: Outage) -> None:
    outage.make(outage.controller, "orders", lambda node: node.auto_create("orders", 0))
    node = node_of(outage.other)
    (shown,) = described(node, "orders", WANTED_FACTOR)
    assert (shown.name, shown.value, shown.read_only) == (WANTED_FACTOR, "3", True)
    assert WANTED_FACTOR in [each.name for each in described(node, "orders")]
    outage.bring_back("orders")
    assert described(node_of(outage.controller), "orders", WANTED_FACTOR) == []
