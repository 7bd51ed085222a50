"""Read the intended replication factor and min.insync.replicas of topics.

The intended replication factor of a topic that still lacks replicas is a read-only config of the
topic. Topics created by an earlier release do not have it; for internal topics the configured
factor is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.metadata.image import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from barnabas.metadata.topic_config import WANTED_FACTOR
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.metadata import MetadataResponseTopic
from barnabas.wire.cluster_wire import Wire

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
MIN_IN_SYNC = "min.insync.replicas"
DEFAULT_FACTOR = "default.replication.factor"
CONFIGURED = {
    GROUPS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.replication.factor",
}
ASKED_AT_ONCE = 200
"""Topics per request: a broker serves nothing else while it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """The replication configs of a cluster."""

    min_in_sync: Mapping[str, int] = field(default_factory=dict)
    """By topic, for topics with more than one replica."""
    recorded: Mapping[str, int] = field(default_factory=dict)
    """By topic, for topics that still lack replicas."""
    configured: Mapping[str, int] = field(default_factory=dict)
    """By broker config name; empty if no broker answered."""

    def wanted(self, topic: str) -> int:
        """Return the intended replication factor of a topic; 0 if unknown."""
        own = self.configured.get(CONFIGURED.get(topic, ""), 0)
        return max(self.recorded.get(topic, 0), own)

    def default(self, topic: str) -> int:
        """Return the replication factor that an automatic creation of the topic would use now."""
        return self.wanted(topic) or self.configured.get(DEFAULT_FACTOR, 0)


def ask_factors(wire: Wire, topics: Iterable[MetadataResponseTopic]) -> Factors:
    """Request the replication configs of these topics."""
    names = replicated(topics)
    found: dict[str, dict[str, int]] = {MIN_IN_SYNC: {}, WANTED_FACTOR: {}}
    for first in range(0, len(names), ASKED_AT_ONCE):
        for topic, name, value in _describe(wire, names[first : first + ASKED_AT_ONCE]):
            found[name][topic] = value
    return Factors(
        min_in_sync=found[MIN_IN_SYNC],
        recorded=found[WANTED_FACTOR],
        configured=_configured(wire) if names else {},
    )


def replicated(topics: Iterable[MetadataResponseTopic]) -> list[str]:
    """Return the topics to ask for: all except user topics with one replica."""
    return [
        topic.name
        for topic in topics
        if topic.name
        and (topic.name in CONFIGURED or any(len(p.replica_nodes) > 1 for p in topic.partitions))
    ]


def _describe(wire: Wire, topics: Sequence[str]) -> list[tuple[str, str, int]]:
    keys = [MIN_IN_SYNC, WANTED_FACTOR]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=keys
            )
            for name in topics
        ]
    )
    answer = wire.ask_any(request, DescribeConfigsResponse)
    return [
        (each.resource_name, config.name, int(config.value))
        for each in answer.results
        for config in each.configs
        if config.name in keys and config.value
    ]


def _configured(wire: Wire) -> dict[str, int]:
    """Return the replication factors in the configuration of the answering broker.

    A broker answers only for itself, and it is unknown which one answers, so all are named.
    """
    keys = [DEFAULT_FACTOR, *CONFIGURED.values()]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=BROKER_RESOURCE, resource_name=str(node.id), configuration_keys=keys
            )
            for node in wire.nodes()
        ]
    )
    answer = wire.ask_any(request, DescribeConfigsResponse)
    configs = [config for each in answer.results for config in each.configs]
    return {config.name: int(config.value) for config in configs if config.value}
