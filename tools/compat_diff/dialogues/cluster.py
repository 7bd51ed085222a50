"""Dialogues about the cluster: brokers, quorum, elections, reassignments, log folders, handshakes,
versions.
"""

from struct import pack

from barnabas.handlers.registry import SERVED
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import create, each_version, topic
from tools.compat_diff.steps import Ask, Dialogue, Raw, Scene, Talk

METADATA_TOPIC = "__cluster_metadata"
UNKNOWN_API = 999


def describing(scene: Scene, version: int) -> Talk:
    """Describe the cluster."""
    del scene
    yield Ask(DescribeClusterRequest(), version)
    yield Ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    if version >= 1:
        for kind in (1, 2, 0, 3, -1):
            yield Ask(DescribeClusterRequest(endpoint_type=kind), version)
    if version >= 2:
        yield Ask(DescribeClusterRequest(include_fenced_brokers=True), version)


def quorum(scene: Scene, version: int) -> Talk:
    """Describe the quorum, and a topic that is no quorum."""

    def ask(*places: tuple[str, list[int]]) -> Ask:
        topics = [
            DescribeQuorumRequestTopicData(
                topic_name=name,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=i) for i in indexes],
            )
            for name, indexes in places
        ]
        return Ask(DescribeQuorumRequest(topics=topics), version)

    yield ask((METADATA_TOPIC, [0]))
    yield ask((METADATA_TOPIC, [1]))
    yield ask((METADATA_TOPIC, [0, 1]))
    yield ask((METADATA_TOPIC, []))
    yield ask((scene.name("other"), [0]))
    yield ask((METADATA_TOPIC, [0]), (scene.name("other"), [0]))
    yield ask()


def electing(scene: Scene, version: int) -> Talk:
    """Elect leaders."""
    a = scene.name("a")
    yield create(topic(a, 2))

    def ask(places: list[tuple[str, list[int]]] | None, kind: int = 0) -> Ask:
        named = [TopicPartitions(topic=name, partitions=p) for name, p in places or []]
        request = ElectLeadersRequest(
            topic_partitions=None if places is None else named, timeout_ms=3000
        )
        if version >= 1:
            request.election_type = kind
        return Ask(request, version)

    for kind in (0, 1) if version else (0,):
        yield ask([(a, [0, 1])], kind)
        yield ask([(a, [7]), (scene.name("unknown"), [0])], kind)
        yield ask([(a, [0, 0])], kind)
        yield ask([(a, [])], kind)
        yield ask([("", [0])], kind)
        yield ask([], kind)
    if version >= 1:
        yield ask([(a, [0])], 5)
    yield ask(None)


def reassigning(scene: Scene, version: int) -> Talk:
    """Move partitions: to their own brokers, to missing brokers, and cancel it."""
    a = scene.name("a")
    yield create(topic(a, 2))

    def move(name: str, index: int, replicas: list[int] | None, change: bool = True) -> Ask:
        partition = ReassignablePartition(partition_index=index, replicas=replicas)
        wanted = [ReassignableTopic(name=name, partitions=[partition])]
        request = AlterPartitionReassignmentsRequest(topics=wanted, timeout_ms=3000)
        if version >= 1:
            request.allow_replication_factor_change = change
        return Ask(request, version)

    for replicas in ([1], None, [], [7], [1, 1], [-1], [1, 7]):
        yield move(a, 0, replicas)
    yield move(a, 7, [1])
    yield move(scene.name("unknown"), 0, [1])
    yield move(scene.name("unknown"), 0, None)
    yield move("", 0, [1])
    if version >= 1:
        yield move(a, 0, [1], change=False)
        yield move(a, 0, [1, 7], change=False)
    yield Ask(AlterPartitionReassignmentsRequest(topics=[], timeout_ms=3000), version)
    yield listed(None)
    yield listed([(a, [0, 1]), (scene.name("unknown"), [0])])
    yield listed([(a, [9])])
    yield listed([])


def listed(places: list[tuple[str, list[int]]] | None) -> Ask:
    """List reassignments in progress."""
    named = [ListPartitionReassignmentsTopics(name=n, partition_indexes=p) for n, p in places or []]
    request = ListPartitionReassignmentsRequest(
        topics=None if places is None else named, timeout_ms=3000
    )
    return Ask(request, 0)


def folders(scene: Scene, version: int) -> Talk:
    """Describe log folders."""
    a = scene.name("a")
    yield create(topic(a, 2))
    wanted: list[list[tuple[str, list[int]]]] = [
        [(a, [0, 1])],
        [(a, [7])],
        [(scene.name("unknown"), [0])],
        [(a, [])],
        [],
    ]
    for places in wanted:
        topics = [DescribableLogDirTopic(topic=n, partitions=p) for n, p in places]
        yield Ask(DescribeLogDirsRequest(topics=topics), version)
    yield Ask(DescribeLogDirsRequest(topics=None), version)


def moving_folders(scene: Scene, version: int) -> Talk:
    """Request missing folders."""
    a = scene.name("a")
    yield create(topic(a))
    for path in ("/no/such/folder", "relative", ""):
        for name, index in ((a, 0), (a, 7), (scene.name("unknown"), 0)):
            entry = AlterReplicaLogDirTopic(name=name, partitions=[index])
            wanted = [AlterReplicaLogDir(path=path, topics=[entry])]
            yield Ask(AlterReplicaLogDirsRequest(dirs=wanted), version)
    yield Ask(AlterReplicaLogDirsRequest(dirs=[]), version)


def adding_voters(scene: Scene, version: int) -> Talk:
    """Add voters that cannot be added."""
    del scene
    listeners = [Listener(name="CONTROLLER", host="127.0.0.1", port=1)]
    for cluster, voter, places in (
        ("nonsense", 7, listeners),
        (None, -1, listeners),
        (None, 7, []),
        (None, 1, listeners),
    ):
        request = AddRaftVoterRequest(
            cluster_id=cluster,
            timeout_ms=500,
            voter_id=voter,
            voter_directory_id=UNKNOWN_ID,
            listeners=places,
        )
        yield Ask(request, version)


def removing_voters(scene: Scene) -> Talk:
    """Remove missing voters."""
    del scene
    for cluster, voter in (("nonsense", 7), (None, 7), (None, -1), (None, 1)):
        request = RemoveRaftVoterRequest(
            cluster_id=cluster, voter_id=voter, voter_directory_id=UNKNOWN_ID
        )
        yield Ask(request, 0)


def unregistering(scene: Scene) -> Talk:
    """Unregister missing brokers."""
    del scene
    for broker in (7, -1, 1 << 30):
        yield Ask(UnregisterBrokerRequest(broker_id=broker), 0)


def handshaking(scene: Scene) -> Talk:
    """Begin SASL on a listener without SASL."""
    del scene
    for version in (0, 1):
        for mechanism in ("PLAIN", "", "nonsense"):
            yield Ask(SaslHandshakeRequest(mechanism=mechanism), version)
    for version in (0, 1, 2):
        yield Ask(SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version)


def versions(scene: Scene, version: int) -> Talk:
    """Request API versions, as clients of many kinds do."""
    del scene
    names = [("client", "1.0"), ("", ""), ("a b", "1"), ("x" * 300, "1"), ("-a", "1"), ("a", "1-")]
    for name, number in names if version >= 3 else names[:1]:
        request = ApiVersionsRequest()
        if version >= 3:
            request.client_software_name, request.client_software_version = name, number
        yield Ask(request, version)


def features(scene: Scene, version: int) -> Talk:
    """Raise features that cannot be raised, and leave one unchanged."""
    del scene

    def ask(*updates: tuple[str, int]) -> Ask:
        wanted = [
            FeatureUpdateKey(feature=feature, max_version_level=level) for feature, level in updates
        ]
        return Ask(UpdateFeaturesRequest(feature_updates=wanted), version)

    yield ask()
    yield ask(("no.such.feature", 1))
    yield ask(("", 1))
    yield ask(("transaction.version", 2))
    yield ask(("transaction.version", 99))
    yield ask(("transaction.version", 1))
    yield ask(("transaction.version", -1))
    yield ask(("transaction.version", 2), ("no.such.feature", 1))


def header(key: int, version: int) -> bytes:
    """Return a request header as every version understands it."""
    return pack(">hhih", key, version, 1, 3) + b"raw"


def framed(key: int, version: int, rest: bytes = b"") -> Raw:
    """Return a frame with a header and any bytes after it."""
    return Raw(key, version, header(key, version) + rest)


def unknown_versions(scene: Scene) -> Talk:
    """Send a request of every API in unknown versions."""
    del scene
    yield framed(ApiKey.API_VERSIONS, 99, bytes(1))
    for key, api in sorted(SERVED.items()):
        for version in (api.high + 1, -1, 99):
            is_draft = key == ApiKey.INIT_PRODUCER_ID and version == 6
            if key != ApiKey.API_VERSIONS and not is_draft:
                yield framed(key, version, bytes(8))
    yield framed(ApiKey.API_VERSIONS, 0)


def broken_frames(scene: Scene) -> Talk:
    """Send frames that are cut short, too long, or empty."""
    del scene
    right = Ask(ApiVersionsRequest(), 0).frame
    yield Raw(ApiKey.API_VERSIONS, 0, b"")
    yield Raw(ApiKey.API_VERSIONS, 0, right[:5])
    yield Raw(ApiKey.API_VERSIONS, 0, right[:8])
    yield Raw(ApiKey.API_VERSIONS, 0, right + b"more")
    yield framed(ApiKey.METADATA, 1)
    yield framed(ApiKey.METADATA, 1, pack(">i", 5))
    yield framed(ApiKey.METADATA, 1, pack(">i", 1 << 30))
    yield framed(ApiKey.METADATA, 1, pack(">ih", 1, -1))
    yield framed(ApiKey.METADATA, 1, pack(">ih", 1, 1) + b"\xff")
    yield framed(ApiKey.METADATA, 1, pack(">i", 0) + b"trailing")
    yield framed(ApiKey.METADATA, 9, b"\x00\x01\x01\x00\x00")
    yield framed(ApiKey.METADATA, 9, b"\x00\x01\x01\x00\x00\x05")
    yield framed(ApiKey.CREATE_TOPICS, 2, pack(">iiB", -1, 1000, 0))
    yield framed(UNKNOWN_API, 0)
    yield Raw(ApiKey.API_VERSIONS, 0, pack(">hhih", ApiKey.API_VERSIONS, 0, 1, -1))
    yield Raw(ApiKey.API_VERSIONS, 0, pack(">hhih", ApiKey.API_VERSIONS, 0, 1, -2))


WRITTEN: dict[str, Dialogue] = {
    **each_version("cluster/describe", "DescribeCluster", describing),
    **each_version("cluster/quorum", "DescribeQuorum", quorum),
    **each_version("cluster/elect", "ElectLeaders", electing),
    **each_version("cluster/reassign", "AlterPartitionReassignments", reassigning),
    **each_version("cluster/folders", "DescribeLogDirs", folders),
    **each_version("cluster/move-folders", "AlterReplicaLogDirs", moving_folders),
    **each_version("cluster/add-voter", "AddRaftVoter", adding_voters),
    "cluster/remove-voter": removing_voters,
    "cluster/unregister": unregistering,
    "cluster/sasl": handshaking,
    **each_version("cluster/features", "UpdateFeatures", features),
    **each_version("cluster/versions", "ApiVersions", versions),
    "cluster/unknown-versions": unknown_versions,
    "cluster/broken-frames": broken_frames,
}
