"""Asks any broker about the whole cluster: brokers, topics, configs, the quorum.

The connection stays for the next collection. If it breaks, the bootstrap addresses and the brokers
of the last collection are tried in turn, so that the loss of the first address does no harm.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from barnabas.admin.inspection import (
    ask_quorum,
    describe_cluster,
    feature_level,
    list_reassignments,
    voter_addresses,
)
from barnabas.admin.replication_factors import Factors, ask_factors, replicated
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_quorum import DescribeQuorumResponsePartitionData
from barnabas.protocol.messages.list_partition_reassignments import OngoingTopicReassignment
from barnabas.protocol.messages.metadata import MetadataResponseTopic
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.wire_failures import LinkError, RefusedError

BOOTSTRAP = "bootstrap.servers"
FACTORS_EVERY_S = 60.0
"""Configs of topics change rarely and cost a broker more than offsets."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The cluster as one broker knows it."""

    cluster: DescribeClusterResponse
    topics: Sequence[MetadataResponseTopic]
    factors: Factors
    feature_level: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What only the controller knows; `silence` says why it did not answer, if it did not."""

    quorum: DescribeQuorumResponsePartitionData | None = None
    addresses: Mapping[int, str]
    reassignments: Sequence[OngoingTopicReassignment] = ()
    silence: str | None = None
    refusal: str | None = None
    """Why this client may not know, if it may not."""


class ClusterAsker:
    """The connection to one broker that answers."""

    def __init__(
        self, properties: Mapping[str, object], client_id: str, answer_timeout_s: float
    ) -> None:
        self._properties = dict(properties)
        self._client_id = client_id
        self._answer_timeout_s = answer_timeout_s
        self._wire: Wire | None = None
        self._known: list[str] = []
        """The addresses of brokers in the last collection."""
        self._factors = Factors()
        self._factors_of: set[str] = set()
        self._factors_s = float("-inf")

    def close(self) -> None:
        """Close the connections."""
        if self._wire is not None:
            self._wire.__exit__(None, None, None)
            self._wire = None

    def head(self) -> Head:
        """Return the cluster; raise `LinkError` if no broker answers."""
        if self._wire is not None:
            try:
                return self._head(self._wire)
            except LinkError:
                self.close()
        self._wire = self._open()
        try:
            return self._head(self._wire)
        except LinkError:
            self.close()
            raise

    def control(self, cluster: DescribeClusterResponse) -> Control:
        """Return what the controller knows. A broker without a controller may never answer."""
        wire = self._wire or self._open()
        self._wire = wire
        try:
            asked = ask_quorum(wire)
            return Control(
                quorum=asked.topics[0].partitions[0],
                addresses=voter_addresses(asked),
                reassignments=list_reassignments(wire),
            )
        except RefusedError as error:
            if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                return _unseen(cluster)
            return Control(addresses={}, silence=str(error))
        except LinkError as error:
            self.close()
            return Control(addresses={}, silence=str(error))

    def _open(self) -> Wire:
        given = str(self._properties[BOOTSTRAP])
        addresses = ",".join(dict.fromkeys([*given.split(","), *self._known]))
        properties = {**self._properties, BOOTSTRAP: addresses}
        return Wire(properties, self._client_id, self._answer_timeout_s)

    def _head(self, wire: Wire) -> Head:
        cluster = describe_cluster(wire)
        topics = wire.metadata().topics
        self._known = [f"{each.host}:{each.port}" for each in cluster.brokers if not each.is_fenced]
        return Head(
            cluster=cluster,
            topics=topics,
            factors=self._all_factors(wire, topics),
            feature_level=_level(wire),
        )

    def _all_factors(self, wire: Wire, topics: Sequence[MetadataResponseTopic]) -> Factors:
        """Return the replication configs of topics: of all now and then, of new ones at once."""
        names = set(replicated(topics))
        is_due = time.monotonic() - self._factors_s >= FACTORS_EVERY_S
        missing = names if is_due else names - self._factors_of
        if missing:
            asked = ask_factors(wire, [each for each in topics if each.name in missing])
            self._factors = asked if is_due else _joined(self._factors, asked)
        if is_due:
            self._factors_s = time.monotonic()
        self._factors_of = names
        return self._factors


def _level(wire: Wire) -> int | None:
    try:
        return feature_level(wire)
    except LinkError:
        return None


def _joined(before: Factors, more: Factors) -> Factors:
    return replace(
        before,
        min_in_sync={**before.min_in_sync, **more.min_in_sync},
        recorded={**before.recorded, **more.recorded},
        configured=more.configured or before.configured,
    )


def _unseen(cluster: DescribeClusterResponse) -> Control:
    """Return the quorum for a client that may not describe it: it has a leader, as brokers say."""
    return Control(
        quorum=DescribeQuorumResponsePartitionData(leader_id=cluster.controller_id),
        addresses={},
        refusal="the quorum cannot be described: CLUSTER_AUTHORIZATION_FAILED; "
        "allow this user Describe on the cluster",
    )
