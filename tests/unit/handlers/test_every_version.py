"""Tests that every API answers a plain request in every version that is served.

A handler that sets a field which an old version lacks would fail to encode here.
"""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.handlers.registry import SERVED
from barnabas.metadata.security_image import entity_of
from barnabas.model.errors import ErrorCode, WireError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, response_class
from barnabas.protocol.codec import decode_exact, encoder
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
)
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
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
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
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
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
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
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.offset_requests import (
    commit_request,
    delete_request,
    fetch_group,
    fetch_request,
    transactional_request,
)
from tests.support.talk.requests import batch, create_topic, fetch, produce
from tests.support.talk.share_fetch_requests import FETCH_REQUESTS, member_request
from tests.support.talk.share_group_requests import GROUP_REQUESTS
from tests.support.talk.share_state_requests import STATE_REQUESTS, state_request

ACROSS = [
    pytest.param(key, version, id=f"{APIS[key].name}-{version}")
    for key, api in SERVED.items()
    if key > 1
    for version in range(api.low, api.high + 1)
]


def list_offsets(version: int) -> Message:
    times = [-1, -2] if version < 8 else [-1, -2, -3, -4]
    asked = [ListOffsetsPartition(partition_index=0, timestamp=time) for time in times]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="old", partitions=asked)])


def metadata(version: int) -> Message:
    names = ["old", "new", ".."]
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    asked.include_topic_authorized_operations = version >= 8
    return asked


def delete_topics(version: int) -> Message:
    if version >= 6:
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=n) for n in ("old", "none")])
    return DeleteTopicsRequest(topic_names=["old", "none"])


def offset_for_leader_epoch(_: int) -> Message:
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic="old", partitions=[wanted])]
    )


def find_coordinator(version: int) -> Message:
    if version >= 4:
        return FindCoordinatorRequest(coordinator_keys=["readers"])
    return FindCoordinatorRequest(key="readers")


def add_partitions(version: int) -> Message:
    topics = [AddPartitionsToTxnTopic(name="old", partitions=[0])]
    if version >= 4:
        asked = AddPartitionsToTxnTransaction(transactional_id="t", topics=topics)
        return AddPartitionsToTxnRequest(transactions=[asked])
    return AddPartitionsToTxnRequest(v3_and_below_transactional_id="t", v3_and_below_topics=topics)


def write_txn_markers(_: int) -> Message:
    topic = WritableTxnMarkerTopic(name="old", partition_indexes=[0, 1])
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(topics=[topic])])


def share_group(api: str) -> Callable[[int], Message]:
    _, make = GROUP_REQUESTS[api]
    return lambda _: make("g", ["old"])


def share_member(api: str) -> Callable[[int], Message]:
    return lambda _: member_request(api, "g", [bytes(16)])


def share_state(api: str) -> Callable[[int], Message]:
    return lambda _: state_request(api, [bytes(16)])


REQUESTS: dict[int, Callable[[int], Message]] = {
    2: list_offsets,
    3: metadata,
    10: find_coordinator,
    8: lambda version: commit_request("g", {(bytes(16) if version >= 10 else "old", 0): 1}),
    9: lambda version: fetch_request(fetch_group("g", []), version),
    16: lambda _: ListGroupsRequest(),
    11: lambda _: JoinGroupRequest(group_id="g", session_timeout_ms=6000),
    12: lambda _: HeartbeatRequest(group_id="g"),
    13: lambda v: LeaveGroupRequest(group_id="g", members=[MemberIdentity()] if v >= 3 else []),
    14: lambda _: SyncGroupRequest(group_id="g"),
    15: lambda _: DescribeGroupsRequest(groups=["g"]),
    17: lambda _: SaslHandshakeRequest(mechanism="PLAIN"),
    18: lambda _: ApiVersionsRequest(client_software_name="a", client_software_version="1"),
    19: lambda _: CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in ("new", "old")
        ]
    ),
    20: delete_topics,
    21: lambda _: DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="old", partitions=[DeleteRecordsPartition(offset=-1)])]
    ),
    22: lambda _: InitProducerIdRequest(transactional_id=None),
    23: offset_for_leader_epoch,
    28: lambda _: transactional_request("g", {("none", 0): 1}, (1, 0)),
    24: add_partitions,
    25: lambda _: AddOffsetsToTxnRequest(transactional_id="t", group_id="g"),
    26: lambda _: EndTxnRequest(transactional_id="t", committed=True),
    27: write_txn_markers,
    29: lambda _: DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=3, operation=1, permission_type=1
    ),
    30: lambda _: CreateAclsRequest(creations=[AclCreation()]),
    31: lambda _: DeleteAclsRequest(filters=[DeleteAclsFilter()]),
    32: lambda _: DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in ((2, "old"), (4, "1"), (2, "none"))
        ],
        include_synonyms=True,
    ),
    33: lambda _: AlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=2, resource_name="old")]
    ),
    34: lambda _: AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path="elsewhere",
                topics=[AlterReplicaLogDirTopic(name="old", partitions=[0])],
            )
        ]
    ),
    35: lambda _: DescribeLogDirsRequest(topics=None),
    36: lambda _: SaslAuthenticateRequest(auth_bytes=b""),
    37: lambda _: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="old", count=2, assignments=None)]
    ),
    42: lambda _: DeleteGroupsRequest(groups_names=["g"]),
    44: lambda _: IncrementalAlterConfigsRequest(),
    47: lambda _: delete_request("g", [("old", 0)]),
    60: lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True),
    68: lambda _: ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
    69: lambda _: ConsumerGroupDescribeRequest(group_ids=["g"]),
    65: lambda _: DescribeTransactionsRequest(transactional_ids=["t"]),
    66: lambda _: ListTransactionsRequest(state_filters=["Ongoing"]),
    61: lambda _: DescribeProducersRequest(
        topics=[TopicRequest(name="old", partition_indexes=[0, 1])]
    ),
    48: lambda _: DescribeClientQuotasRequest(),
    49: lambda _: AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData()]),
    74: lambda _: ListConfigResourcesRequest(),
    75: lambda _: DescribeTopicPartitionsRequest(),
    43: lambda _: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="old", partitions=[0])]
    ),
    45: lambda _: AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name="old", partitions=[ReassignablePartition(partition_index=0, replicas=[1])]
            )
        ]
    ),
    46: lambda _: ListPartitionReassignmentsRequest(topics=None),
    50: lambda _: DescribeUserScramCredentialsRequest(users=None),
    51: lambda _: AlterUserScramCredentialsRequest(),
    38: lambda _: CreateDelegationTokenRequest(),
    39: lambda _: RenewDelegationTokenRequest(),
    40: lambda _: ExpireDelegationTokenRequest(),
    41: lambda _: DescribeDelegationTokenRequest(),
    55: lambda _: DescribeQuorumRequest(),
    57: lambda _: UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="barnabas.version", max_version_level=2)]
    ),
    64: lambda _: UnregisterBrokerRequest(broker_id=7),
    71: lambda _: GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)),
    72: lambda _: PushTelemetryRequest(
        client_instance_id=bytes(15) + b"1",
        subscription_id=1,
        terminating=False,
        compression_type=0,
        metrics=b"",
    ),
    80: lambda _: AddRaftVoterRequest(voter_id=7),
    81: lambda _: RemoveRaftVoterRequest(voter_id=7),
    **{78 + number: share_member(api) for number, api in enumerate(FETCH_REQUESTS)},
    **{key: share_group(api) for api, (key, _) in GROUP_REQUESTS.items()},
    **{83 + number: share_state(api) for number, api in enumerate(STATE_REQUESTS)},
}


@pytest.mark.parametrize(("key", "version"), ACROSS)
def test_a_plain_request_is_answered(talk: Dialogue, key: int, version: int) -> None:
    create_topic(talk, "old")
    produce(talk, "old")
    exchange = talk.send(REQUESTS[key](version), version)
    assert type(exchange.answer).__name__ == APIS[key].response


@pytest.mark.parametrize(("key", "version"), ACROSS)
def test_a_response_tells_the_pause(talk: Dialogue, key: int, version: int) -> None:
    """Every API with a throttle time reports that a client used the event loop for too long."""
    create_topic(talk, "old")
    produce(talk, "old")
    talk.node.quotas.change(entity_of({"user": None}), "request_percentage", 1.0)
    quota = talk.node.quotas.of("ANONYMOUS", "dialogue")
    quota.charge_time(10_000_000_000, talk.node.timers.now_ms)
    exchange = talk.send(REQUESTS[key](version), version)
    waited_ms = 0
    while exchange.waiting:
        waited_ms += 100
        talk.pass_time(100)
    told = getattr(exchange.answer, "throttle_time_ms", 0)
    assert told == (exchange.throttle_ms if can_tell(key, version) else 0)
    assert exchange.throttle_ms >= 1_000 - waited_ms


def can_tell(key: int, version: int) -> bool:
    response = response_class(key)()
    if not hasattr(response, "throttle_time_ms"):
        return False
    response.throttle_time_ms = 5
    encoded = encoder(type(response), version)(response)
    decoded: Any = decode_exact(type(response), version, encoded)
    told: bool = decoded.throttle_time_ms == 5
    return told


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize("version", range(3, 14))
def test_produce_in_every_version(talk: Dialogue, version: int, fast_path: bool) -> None:
    talk.fast_path = fast_path
    topic_id = create_topic(talk, "old")
    topic: str | bytes = topic_id if version >= 13 else "old"
    result = produce(talk, topic, batch(3), version=version)
    assert (result.error_code, result.base_offset) == (0, 0)
    assert result.log_start_offset == (0 if version >= 5 else -1)
    refused = produce(talk, topic, bytes(80), version=version)
    assert refused.error_code != 0
    assert (refused.error_message is not None) == (version >= 8)


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_in_every_version(talk: Dialogue, version: int) -> None:
    topic_id = create_topic(talk, "old")
    sent = batch(3)
    produce(talk, "old", sent)
    topic: str | bytes = topic_id if version >= 13 else "old"
    result = fetch(talk, topic, version=version)
    assert (result.error_code, result.high_watermark) == (0, 3)
    assert result.records[16:] == sent[16:]
    assert fetch(talk, topic, 9, version=version).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("key", [key for key in SERVED if key != ApiKey.API_VERSIONS])
def test_other_versions_close_the_connection(talk: Dialogue, key: int) -> None:
    frame = b"".join(n.to_bytes(2, "big") for n in (key, SERVED[key].high + 1, 0, 1, 0xFFFF, 0))
    with pytest.raises(WireError, match="is not served"):
        talk.send_frame(frame, key, SERVED[key].high)


def test_apis_that_are_not_served_close_the_connection(talk: Dialogue) -> None:
    frame = b"".join(n.to_bytes(2, "big") for n in (52, 0, 0, 1, 0xFFFF)) + b"\0"
    with pytest.raises(WireError, match="Vote is not served"):
        talk.send_frame(frame, 52, 0)
