"""Broker connections that a Python worker keeps open between tasks and between batches.

Spark reuses its Python workers, so a task mostly finds a connection and the leader of its partition
in the cache. A connection is either in use by one read or idle here. Only connections without a
request in flight return here, so an abandoned read (a LIMIT, a killed task) cannot affect the next.
"""

import contextlib
from collections.abc import Mapping

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.spark.client_properties import BOOTSTRAP, request_timeout_s, security_of
from barnabas.wire.addresses import split_address
from barnabas.wire.cluster_wire import Node
from barnabas.wire.link import ANSWER_TIMEOUT_S
from barnabas.wire.link_security import LinkSecurity
from barnabas.wire.pipeline import ReadingPipeline
from barnabas.wire.wire_failures import LinkError

CEILINGS: dict[type[Message], int] = {FetchRequest: 12}
"""The last version that names topics; later versions use their ids."""


class NoLeaderError(LinkError):
    """The partition has no leader at present."""


class NoPartitionError(LinkError):
    """The cluster does not know the partition."""


class Connections:
    """Idle connections to the brokers of one cluster, and the leaders of its partitions."""

    def __init__(
        self,
        bootstrap: str,
        client_id: str,
        answer_timeout_s: float,
        security: LinkSecurity | None = None,
    ) -> None:
        self._security = security
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._answer_timeout_s = answer_timeout_s
        self._idle: dict[tuple[str, int], list[ReadingPipeline]] = {}
        self._leaders: dict[TopicPartition, Node] = {}

    def to_leader(self, place: TopicPartition) -> ReadingPipeline:
        """Lend a connection to the broker that leads a partition."""
        if place not in self._leaders:
            self._leaders[place] = self._look_up(place)
        leader = self._leaders[place]
        try:
            return self._take(leader.host, leader.port)
        except OSError as error:
            raise LinkError(
                f"Broker {leader.id} says it is at {leader.host}:{leader.port}, where no broker "
                f"answers ({error.strerror or error}); check its advertised address"
            ) from error

    def give_back(self, link: ReadingPipeline) -> None:
        """Keep a connection for the next read, unless a request is still in flight."""
        if link.in_flight:
            link.close()
        else:
            self._idle.setdefault(link.place, []).append(link)

    def forget(self, place: TopicPartition) -> None:
        """Drop the known leader of a partition and all idle connections."""
        self._leaders.pop(place, None)
        for links in self._idle.values():
            for link in links:
                link.close()
        self._idle.clear()

    def _take(self, host: str, port: int) -> ReadingPipeline:
        idle = self._idle.get((host, port))
        if idle:
            return idle.pop()
        return ReadingPipeline(
            host, port, self._client_id, CEILINGS, self._answer_timeout_s, self._security
        )

    def _look_up(self, place: TopicPartition) -> Node:
        link = self._any()
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=place.topic)], allow_auto_topic_creation=False
        )
        try:
            answer = link.ask(request, MetadataResponse)
        except LinkError:
            link.close()
            raise
        self.give_back(link)
        return _leader(answer, place)

    def _any(self) -> ReadingPipeline:
        for address in self._bootstrap.split(","):
            with contextlib.suppress(OSError):
                return self._take(*split_address(address))
        raise LinkError(f"No broker answered at {self._bootstrap}")


def _leader(answer: MetadataResponse, place: TopicPartition) -> Node:
    brokers = {each.node_id: Node(each.node_id, each.host, each.port) for each in answer.brokers}
    for topic in answer.topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoPartitionError(f"there is no topic {place.topic}")
        for partition in topic.partitions:
            if partition.partition_index != place.partition:
                continue
            if partition.leader_id not in brokers:
                raise NoLeaderError(f"{place} has no leader")
            return brokers[partition.leader_id]
    raise NoPartitionError(f"there is no partition {place}")


_clusters: dict[tuple[object, ...], Connections] = {}


def connections(client: Mapping[str, str]) -> Connections:
    """Return this process's connections to a cluster."""
    timeout_s = request_timeout_s(client, ANSWER_TIMEOUT_S)
    place = client[BOOTSTRAP], client.get("client.id", "barnabas-spark"), timeout_s
    security = security_of(client)
    key = (*place, security)
    if key not in _clusters:
        _clusters[key] = Connections(*place, security)
    return _clusters[key]
