"""Request the state of a cluster from its brokers; each inspection opens new connections.

Brokers may start and stop during an inspection. If a broker does not answer, the reason is
recorded in `troubles`, and the responses of the others are still used.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.cluster_overview import Answers, Overview, overview
from barnabas.admin.connecting import settings
from barnabas.admin.replication_factors import ask_factors
from barnabas.metadata.features import FEATURE, FIRST_LEVEL
from barnabas.model.version import __version__
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingTopicReassignment,
)
from barnabas.wire.cluster_wire import Wire, require
from barnabas.wire.link import Link
from barnabas.wire.link_security import LinkSecurity
from barnabas.wire.wire_failures import LinkError

METADATA_TOPIC = "__cluster_metadata"
LOOK_TIMEOUT_S = 5.0
CLIENT_ID = "barnabas-cli"
KAFKA_FEATURE = "metadata.version"
"""A feature that every cluster of Apache Kafka has, and no cluster of Barnabas."""


def open_wire(bootstrap: str, properties: list[str] | None, patience_s: float = 30.0) -> Wire:
    """Return a connection to the brokers of a cluster."""
    return Wire(settings(bootstrap, properties), CLIENT_ID, patience_s)


def look(bootstrap: str, properties: list[str] | None) -> Overview:
    """Return the current state of a cluster."""
    with open_wire(bootstrap, properties, LOOK_TIMEOUT_S) as wire:
        answers = gather(wire)
    return overview(answers, now_ms())


def gather(wire: Wire) -> Answers:
    """Request everything that an overview needs."""
    cluster, level = describe_cluster(wire), feature_level(wire)
    disks = probe(cluster.brokers, security=wire.security)
    topics = wire.metadata().topics
    factors = ask_factors(wire, topics)
    # Last, because a broker without a controller may never answer this or later requests.
    troubles: list[str] = []
    quorum: DescribeQuorumResponsePartitionData | None = None
    addresses: dict[int, str] = {}
    reassignments: Sequence[OngoingTopicReassignment] = ()
    try:
        asked = ask_quorum(wire)
        quorum, addresses = asked.topics[0].partitions[0], voter_addresses(asked)
        reassignments = list_reassignments(wire)
    except LinkError as error:
        troubles.append(f"the controller does not answer: {error}")
    return Answers(
        cluster=cluster,
        topics=topics,
        quorum=quorum,
        reassignments=reassignments,
        factors=factors,
        disks=disks,
        troubles=troubles,
        feature_level=level,
        voter_addresses=addresses,
    )


def feature_level(wire: Wire) -> int | None:
    """Return the feature level of the cluster, as the answering broker knows it.

    Apache Kafka has none. Release 0.1.0 of Barnabas does not name its own.
    """
    answer = wire.ask_any(versions_request(), ApiVersionsResponse)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    return levels.get(FEATURE, None if KAFKA_FEATURE in levels else FIRST_LEVEL)


def versions_request() -> ApiVersionsRequest:
    """Return the request for a broker's versions and features."""
    return ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=__version__)


def describe_cluster(wire: Wire) -> DescribeClusterResponse:
    """Return all registered brokers, including fenced ones if the cluster tells."""
    try:
        request = DescribeClusterRequest(include_fenced_brokers=True)
        answer = wire.ask_any(request, DescribeClusterResponse)
    except ValueError:  # Apache Kafka before 4.0 has no field for it
        answer = wire.ask_any(DescribeClusterRequest(), DescribeClusterResponse)
    require(answer.error_code, "The cluster cannot be described")
    return answer


def describe_quorum(wire: Wire) -> DescribeQuorumResponsePartitionData:
    """Return the voters and observers of the metadata quorum, with their log end offsets."""
    return ask_quorum(wire).topics[0].partitions[0]


def ask_quorum(wire: Wire) -> DescribeQuorumResponse:
    """Return the same with the inter-broker addresses of voters."""
    partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
    topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=partitions)
    answer = wire.ask_any(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
    require(answer.error_code, "The quorum cannot be described")
    require(answer.topics[0].partitions[0].error_code, "The quorum cannot be described")
    return answer


def voter_addresses(answer: DescribeQuorumResponse) -> dict[int, str]:
    """Return the inter-broker address of each voter."""
    return {
        node.node_id: f"{node.listeners[0].host}:{node.listeners[0].port}"
        for node in answer.nodes
        if node.listeners
    }


def list_reassignments(wire: Wire) -> list[OngoingTopicReassignment]:
    """Return the partitions that are being reassigned."""
    request = ListPartitionReassignmentsRequest(topics=None)
    answer = wire.ask_any(request, ListPartitionReassignmentsResponse)
    require(answer.error_code, "Reassignments cannot be listed")
    return answer.topics


def probe(
    brokers: Iterable[DescribeClusterBroker],
    topics: Mapping[str, Sequence[int]] | None = None,
    security: LinkSecurity | None = None,
) -> dict[int, list[DescribeLogDirsResult] | str]:
    """Ask brokers for their disks and sizes of partitions; a text is the reason of a failure."""
    asked = [each for each in brokers if not each.is_fenced]
    described = [
        DescribableLogDirTopic(topic=name, partitions=list(numbers))
        for name, numbers in (topics or {}).items()
    ]
    request = DescribeLogDirsRequest(topics=described)

    def ask(broker: DescribeClusterBroker) -> list[DescribeLogDirsResult] | str:
        try:
            link = Link(broker.host, broker.port, CLIENT_ID, LOOK_TIMEOUT_S, security)
        except (OSError, LinkError) as error:
            return str(error)
        try:
            return link.ask(request, DescribeLogDirsResponse).results
        except LinkError as error:
            return str(error)
        finally:
            link.close()

    if not asked:
        return {}
    with ThreadPoolExecutor(len(asked)) as threads:
        return dict(zip((each.broker_id for each in asked), threads.map(ask, asked), strict=True))


def known_broker(cluster: DescribeClusterResponse, number: int) -> DescribeClusterBroker:
    """Return a broker by its node id, or raise an error that lists all brokers."""
    for each in cluster.brokers:
        if each.broker_id == number:
            return each
    there = ", ".join(map(str, sorted(each.broker_id for each in cluster.brokers)))
    raise AdminError(f"There is no broker {number}; the cluster has {there}")


def now_ms() -> int:
    """Return the current time."""
    return time.time_ns() // 1_000_000
