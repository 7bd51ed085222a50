"""ACLs for dialogues, and requests of every API that name the same few resources.

Each request names topics `secret` and `open`, groups `secret-group` and `open-group`, and the
transactional id `secret-id`, as far as its API names such things. The token is one of `carol`.
"""

from collections.abc import Callable, Iterable
from itertools import count

from barnabas.metadata.security_records import AclAdded, AclRemoved, RoleChanged
from barnabas.model.callers import CLIENT_LISTENER, Caller, Principal
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.permissions import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    PermissionType,
    ResourceType,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_configs, incremental_alter_configs, produce
from barnabas.protocol.messages import fetch as fetch_messages
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
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
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from barnabas.protocol.messages.describe_topic_partitions import (
    TopicRequest as DescribedTopic,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.protocol.records import TRANSACTIONAL
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.offset_requests import (
    commit_request,
    delete_request,
    fetch_group,
    fetch_request,
    transactional_request,
)
from tests.support.talk.requests import batch
from tests.support.talk.share_fetch_requests import FETCH_REQUESTS, member_request
from tests.support.talk.share_group_requests import GROUP_REQUESTS
from tests.support.talk.share_state_requests import STATE_REQUESTS, state_request

SECRET, OPEN = "secret", "open"
SECRET_GROUP, OPEN_GROUP = "secret-group", "open-group"
SECRET_ID = "secret-id"
SECRET_TOKEN, TOKEN_OWNER = "secret-token-of-carolA", "User:carol"
NAMES = {
    ResourceType.TOPIC: SECRET,
    ResourceType.GROUP: SECRET_GROUP,
    ResourceType.TRANSACTIONAL_ID: SECRET_ID,
    ResourceType.CLUSTER: CLUSTER_NAME,
    ResourceType.DELEGATION_TOKEN: SECRET_TOKEN,
    ResourceType.USER: TOKEN_OWNER,
}
ADMIN = Principal("User", "admin")
ALICE = Principal("User", "alice")
SECURED = {
    "security.authorizer": "acl",
    "security.super_users": ["User:admin"],
    "groups.offsets_partitions": 1,
    "transactions.log_partitions": 1,
}
_numbers = count()


def caller(principal: Principal = ALICE, host: str = "10.0.0.1") -> Caller:
    """Return a client."""
    return Caller(principal, CLIENT_LISTENER, host)


def acl(
    permission: Permission,
    name: str,
    *,
    principal: str = str(ALICE),
    deny: bool = False,
    prefixed: bool = False,
    host: str = "*",
) -> AclAdded:
    """Return an ACL."""
    operation, resource = permission
    return AclAdded(
        acl_id=f"acl-{next(_numbers)}",
        resource_type=resource,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        resource_name=name,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=PermissionType.DENY if deny else PermissionType.ALLOW,
    )


def everything(principal: str = str(ALICE)) -> list[AclAdded]:
    """Return ACLs that allow everything."""
    names = dict.fromkeys(NAMES, "*") | {ResourceType.CLUSTER: CLUSTER_NAME}
    return [
        acl((Operation.ALL, resource), name, principal=principal)
        for resource, name in names.items()
    ]


def set_acls(talk: Dialogue, acls: Iterable[AclAdded]) -> None:
    """Have these ACLs, and no others."""
    gone = [AclRemoved(acl_id=acl_id) for acl_id in talk.node.image.security.acls]
    talk.node.commit([*gone, *acls], talk.now_ms)
    talk.settle()


def set_role(talk: Dialogue, role: str, *members: str) -> None:
    """Have a role with these members."""
    talk.node.commit([RoleChanged(role=role, members=list(members))], talk.now_ms)
    talk.settle()


class Ids:
    """The ids of the topics, and a producer of the transactional id."""

    def __init__(self, secret: bytes, opened: bytes, producer: tuple[int, int]) -> None:
        self.topics = {SECRET: secret, OPEN: opened}
        self.producer = producer


Make = Callable[[int, Ids], Message]


def _produce(version: int, ids: Ids) -> Message:
    def content() -> bytes:
        return bytes(batch(attributes=TRANSACTIONAL, producer=(*ids.producer, 0)))

    topics = [
        produce.TopicProduceData(
            name="" if version >= 13 else name,
            topic_id=topic_id if version >= 13 else NO_TOPIC_ID,
            partition_data=[produce.PartitionProduceData(index=0, records=content())],
        )
        for name, topic_id in ids.topics.items()
    ]
    return produce.ProduceRequest(
        transactional_id=SECRET_ID, acks=-1, timeout_ms=1000, topic_data=topics
    )


def _fetch(version: int, ids: Ids) -> Message:
    by_id = version >= 13
    return fetch_messages.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            fetch_messages.FetchTopic(
                topic="" if by_id else name,
                topic_id=topic_id if by_id else NO_TOPIC_ID,
                partitions=[fetch_messages.FetchPartition(partition_max_bytes=1 << 20)],
            )
            for name, topic_id in ids.topics.items()
        ],
    )


def _list_offsets(_: int, ids: Ids) -> Message:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
    return ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=name, partitions=asked) for name in ids.topics]
    )


def _offset_for_leader_epoch(_: int, ids: Ids) -> Message:
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=name, partitions=[wanted]) for name in ids.topics]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


def _metadata(version: int, ids: Ids) -> Message:
    if version >= 12:
        topics = [MetadataRequestTopic(name=None, topic_id=each) for each in ids.topics.values()]
    else:
        topics = [MetadataRequestTopic(name=name) for name in (*ids.topics, "secret-new")]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=True)


def _delete_topics(version: int, ids: Ids) -> Message:
    if version >= 6:
        topics = [DeleteTopicState(name=None, topic_id=each) for each in ids.topics.values()]
        return DeleteTopicsRequest(topics=topics, timeout_ms=10_000)
    return DeleteTopicsRequest(topic_names=list(ids.topics), timeout_ms=10_000)


def _places(version: int, ids: Ids) -> list[tuple[str | bytes, int]]:
    if version >= 10:
        return [(topic_id, 0) for topic_id in ids.topics.values()]
    return [(name, 0) for name in ids.topics]


def _offset_fetch(version: int, ids: Ids) -> Message:
    return fetch_request(fetch_group(SECRET_GROUP, _places(version, ids)), version)


def _add_partitions(version: int, ids: Ids) -> Message:
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ids.topics]
    producer_id, epoch = ids.producer
    if version >= 4:
        asked = AddPartitionsToTxnTransaction(
            transactional_id=SECRET_ID, producer_id=producer_id, producer_epoch=epoch, topics=topics
        )
        return AddPartitionsToTxnRequest(transactions=[asked])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=SECRET_ID,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
    )


def _describe_configs(_: int, ids: Ids) -> Message:
    kinds = [(2, name) for name in ids.topics] + [(4, "1")]
    return DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=k, resource_name=n) for k, n in kinds]
    )


def _alter_configs(_: int, ids: Ids) -> Message:
    kinds = [(2, name) for name in ids.topics] + [(4, "1")]
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in kinds
        ]
    )


def _incremental(_: int, ids: Ids) -> Message:
    kinds = [(2, name) for name in ids.topics] + [(4, "1")]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in kinds
        ]
    )


def _find_coordinator(version: int, _: Ids) -> Message:
    if version >= 4:
        return FindCoordinatorRequest(coordinator_keys=[SECRET_GROUP, OPEN_GROUP])
    return FindCoordinatorRequest(key=SECRET_GROUP)


def _write_markers(_: int, ids: Ids) -> Message:
    topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[0]) for name in ids.topics]
    producer_id, epoch = ids.producer
    marker = WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=topics)
    return WriteTxnMarkersRequest(markers=[marker])


def _reassign(_: int, ids: Ids) -> Message:
    moved = ReassignablePartition(partition_index=0, replicas=[1])
    topics = [ReassignableTopic(name=name, partitions=[moved]) for name in ids.topics]
    return AlterPartitionReassignmentsRequest(topics=topics)


def _share_group(api: str) -> Make:
    _, make = GROUP_REQUESTS[api]
    return lambda _, ids: make(SECRET_GROUP, list(ids.topics))


def _share_member(api: str) -> Make:
    return lambda _, ids: member_request(api, SECRET_GROUP, ids.topics.values())


def _share_state(api: str) -> Make:
    return lambda _, ids: state_request(api, ids.topics.values())


REQUESTS: dict[str, Make] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "Metadata": _metadata,
    "DescribeTopicPartitions": lambda _, ids: DescribeTopicPartitionsRequest(
        topics=[DescribedTopic(name=name) for name in ids.topics]
    ),
    "CreateTopics": lambda _, ids: CreateTopicsRequest(
        topics=[
            CreatableTopic(name=f"{name}-made", num_partitions=1, replication_factor=1)
            for name in ids.topics
        ],
        validate_only=True,
        timeout_ms=10_000,
    ),
    "DeleteTopics": _delete_topics,
    "DeleteRecords": lambda _, ids: DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(offset=-1)])
            for name in ids.topics
        ]
    ),
    "CreatePartitions": lambda _, ids: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ids.topics],
        timeout_ms=10_000,
    ),
    "DescribeConfigs": _describe_configs,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _incremental,
    "OffsetCommit": lambda v, ids: commit_request(SECRET_GROUP, dict.fromkeys(_places(v, ids), 1)),
    "OffsetFetch": _offset_fetch,
    "OffsetDelete": lambda _, ids: delete_request(SECRET_GROUP, [(name, 0) for name in ids.topics]),
    "DeleteGroups": lambda *_: DeleteGroupsRequest(groups_names=[SECRET_GROUP, OPEN_GROUP]),
    "JoinGroup": lambda *_: JoinGroupRequest(group_id=SECRET_GROUP, session_timeout_ms=6000),
    "SyncGroup": lambda *_: SyncGroupRequest(
        group_id=SECRET_GROUP, protocol_type="consumer", protocol_name="range"
    ),
    "LeaveGroup": lambda v, _: LeaveGroupRequest(
        group_id=SECRET_GROUP, members=[MemberIdentity()] if v >= 3 else []
    ),
    "Heartbeat": lambda *_: HeartbeatRequest(group_id=SECRET_GROUP),
    "ConsumerGroupHeartbeat": lambda _, ids: ConsumerGroupHeartbeatRequest(
        group_id=SECRET_GROUP, member_id="m", subscribed_topic_names=list(ids.topics)
    ),
    "DescribeGroups": lambda *_: DescribeGroupsRequest(groups=[SECRET_GROUP, OPEN_GROUP]),
    "ConsumerGroupDescribe": lambda *_: ConsumerGroupDescribeRequest(
        group_ids=[SECRET_GROUP, "secret-consumers"]
    ),
    "ListGroups": lambda *_: ListGroupsRequest(),
    "ListTransactions": lambda *_: ListTransactionsRequest(),
    "FindCoordinator": _find_coordinator,
    "InitProducerId": lambda *_: InitProducerIdRequest(
        transactional_id=SECRET_ID, transaction_timeout_ms=1000
    ),
    "AddPartitionsToTxn": _add_partitions,
    "AddOffsetsToTxn": lambda _, ids: AddOffsetsToTxnRequest(
        transactional_id=SECRET_ID,
        producer_id=ids.producer[0],
        producer_epoch=ids.producer[1],
        group_id=SECRET_GROUP,
    ),
    "TxnOffsetCommit": lambda _, ids: transactional_request(
        SECRET_GROUP,
        {(name, 0): 1 for name in ids.topics},
        ids.producer,
        transactional_id=SECRET_ID,
    ),
    "EndTxn": lambda _, ids: EndTxnRequest(
        transactional_id=SECRET_ID, producer_id=ids.producer[0], producer_epoch=ids.producer[1]
    ),
    "DescribeTransactions": lambda *_: DescribeTransactionsRequest(transactional_ids=[SECRET_ID]),
    "DescribeProducers": lambda _, ids: DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=[0]) for name in ids.topics]
    ),
    "WriteTxnMarkers": _write_markers,
    "DescribeQuorum": lambda *_: DescribeQuorumRequest(),
    "DescribeLogDirs": lambda *_: DescribeLogDirsRequest(topics=None),
    "ListPartitionReassignments": lambda *_: ListPartitionReassignmentsRequest(topics=None),
    "ElectLeaders": lambda _, ids: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic=name, partitions=[0]) for name in ids.topics]
    ),
    "AlterPartitionReassignments": _reassign,
    "AlterReplicaLogDirs": lambda _, ids: AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path="elsewhere",
                topics=[AlterReplicaLogDirTopic(name=name, partitions=[0]) for name in ids.topics],
            )
        ]
    ),
    "UpdateFeatures": lambda *_: UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="barnabas.version", max_version_level=2)]
    ),
    "UnregisterBroker": lambda *_: UnregisterBrokerRequest(broker_id=7),
    "AddRaftVoter": lambda *_: AddRaftVoterRequest(voter_id=7),
    "RemoveRaftVoter": lambda *_: RemoveRaftVoterRequest(voter_id=7),
    "ListConfigResources": lambda *_: ListConfigResourcesRequest(),
    "CreateDelegationToken": lambda v, _: CreateDelegationTokenRequest(
        owner_principal_type="User" if v >= 3 else "",
        owner_principal_name="carol" if v >= 3 else "",
        max_lifetime_ms=-1,
    ),
    "DescribeDelegationToken": lambda *_: DescribeDelegationTokenRequest(owners=None),
    "DescribeAcls": lambda *_: DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=3, operation=1, permission_type=1
    ),
    "CreateAcls": lambda *_: CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=2,
                resource_name="other",
                resource_pattern_type=3,
                principal="User:carol",
                host="*",
                operation=3,
                permission_type=3,
            )
        ]
        * 2
    ),
    "DeleteAcls": lambda *_: DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=2,
                resource_name_filter="other",
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
        * 2
    ),
    "DescribeUserScramCredentials": lambda *_: DescribeUserScramCredentialsRequest(
        users=[UserName(name="carol")]
    ),
    "AlterUserScramCredentials": lambda *_: AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=1) for name in ("carol", "dave")],
        upsertions=[],
    ),
    "DescribeClientQuotas": lambda *_: DescribeClientQuotasRequest(components=[], strict=False),
    "AlterClientQuotas": lambda *_: AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    AlterClientQuotasRequestEntityData(entity_type="user", entity_name="carol")
                ],
                ops=[OpData(key="producer_byte_rate", value=1e6, remove=False)],
            )
        ],
        validate_only=False,
    ),
    **{api: _share_member(api) for api in FETCH_REQUESTS},
    **{api: _share_group(api) for api in GROUP_REQUESTS},
    **{api: _share_state(api) for api in STATE_REQUESTS},
}
"""By API: a request in a version."""
