"""Tests names that try to leave the data folder, through every API that takes one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.handlers.registry import SERVED
from barnabas.model.errors import ErrorCode
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS, response_class
from barnabas.protocol.message import Message
from barnabas.protocol.messages import (
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    incremental_alter_configs,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
    write_txn_markers,
)
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient
from tests.support.talk.share_group_requests import (
    alter_request,
    delete_request,
    heartbeat_request,
    offsets_request,
)

pytestmark = pytest.mark.chaos

NAMES = [
    "",
    ".",
    "..",
    "../escaped",
    "../../escaped",
    "/tmp/escaped",
    "a/../../escaped",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "a b",
    "\N{LATIN SMALL LETTER U WITH DIAERESIS}",
    "%2e%2e%2fescaped",
    "x" * 250,
    "x" * 30_000,
]
LEAVE_OUT = {"DescribeLogDirs", "ListPartitionReassignments", "DescribeShareGroupOffsets"}
"""APIs that report no error for unknown names."""

NAMELESS = {
    "DescribeQuorum",
    "UnregisterBroker",
    "UpdateFeatures",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "InitProducerId",
    "DescribeCluster",
    "FindCoordinator",
    "ConsumerGroupDescribe",
    "ShareGroupDescribe",
    "ShareFetch",
    "ShareAcknowledge",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "DescribeGroups",
    "ListGroups",
    "DeleteGroups",
    "EndTxn",
    "AddOffsetsToTxn",
    "DescribeTransactions",
    "ListTransactions",
    "ListConfigResources",
    "DescribeClientQuotas",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "CreateDelegationToken",
    "DescribeDelegationToken",
    "ExpireDelegationToken",
    "RenewDelegationToken",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}
"""Served now or in future, without the name of a topic in the request."""
TOPIC = 2
Build = Callable[[str], Message]

REQUESTS: dict[str, tuple[int, int, Build]] = {
    "AddPartitionsToTxn": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        lambda name: add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
            ],
        ),
    ),
    "Metadata": (
        ApiKey.METADATA,
        9,
        lambda name: metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)]),
    ),
    "CreateTopics": (
        ApiKey.CREATE_TOPICS,
        5,
        lambda name: create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            ],
            timeout_ms=1000,
        ),
    ),
    "DescribeAcls": (
        ApiKey.DESCRIBE_ACLS,
        3,
        lambda name: describe_acls.DescribeAclsRequest(
            resource_type_filter=TOPIC,
            resource_name_filter=name,
            pattern_type_filter=3,
            operation=1,
            permission_type=1,
        ),
    ),
    "CreateAcls": (
        ApiKey.CREATE_ACLS,
        3,
        lambda name: create_acls.CreateAclsRequest(
            creations=[
                create_acls.AclCreation(
                    resource_type=TOPIC,
                    resource_name=name,
                    resource_pattern_type=3,
                    principal="User:alice",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
    ),
    "DeleteAcls": (
        ApiKey.DELETE_ACLS,
        3,
        lambda name: delete_acls.DeleteAclsRequest(
            filters=[
                delete_acls.DeleteAclsFilter(
                    resource_type_filter=TOPIC,
                    resource_name_filter=name,
                    pattern_type_filter=3,
                    operation=1,
                    permission_type=1,
                )
            ]
        ),
    ),
    "DeleteTopics": (
        ApiKey.DELETE_TOPICS,
        5,
        lambda name: delete_topics.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000),
    ),
    "CreatePartitions": (
        ApiKey.CREATE_PARTITIONS,
        3,
        lambda name: create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name=name, count=3, assignments=None)],
            timeout_ms=1000,
        ),
    ),
    "DeleteRecords": (
        ApiKey.DELETE_RECORDS,
        2,
        lambda name: delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=name,
                    partitions=[delete_records.DeleteRecordsPartition(offset=-1)],
                )
            ]
        ),
    ),
    "Produce": (
        ApiKey.PRODUCE,
        9,
        lambda name: produce.ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                produce.TopicProduceData(
                    name=name, partition_data=[produce.PartitionProduceData(records=bytes(80))]
                )
            ],
        ),
    ),
    "Fetch": (
        ApiKey.FETCH,
        12,
        lambda name: fetch.FetchRequest(
            topics=[fetch.FetchTopic(topic=name, partitions=[fetch.FetchPartition()])]
        ),
    ),
    "ListOffsets": (
        ApiKey.LIST_OFFSETS,
        6,
        lambda name: list_offsets.ListOffsetsRequest(
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=name, partitions=[list_offsets.ListOffsetsPartition(timestamp=-1)]
                )
            ]
        ),
    ),
    "OffsetForLeaderEpoch": (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda name: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=name, partitions=[offset_for_leader_epoch.OffsetForLeaderPartition()]
                )
            ]
        ),
    ),
    "OffsetCommit": (
        ApiKey.OFFSET_COMMIT,
        9,
        lambda name: offset_commit.OffsetCommitRequest(
            group_id="g",
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=name, partitions=[offset_commit.OffsetCommitRequestPartition()]
                )
            ],
        ),
    ),
    "OffsetFetch": (
        ApiKey.OFFSET_FETCH,
        7,
        lambda name: offset_fetch.OffsetFetchRequest(
            group_id="g",
            topics=[offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=[0])],
        ),
    ),
    "OffsetDelete": (
        ApiKey.OFFSET_DELETE,
        0,
        lambda name: offset_delete.OffsetDeleteRequest(
            group_id="g",
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=name, partitions=[offset_delete.OffsetDeleteRequestPartition()]
                )
            ],
        ),
    ),
    "TxnOffsetCommit": (
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        lambda name: txn_offset_commit.TxnOffsetCommitRequest(
            group_id="g",
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=name, partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition()]
                )
            ],
        ),
    ),
    "DescribeConfigs": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda name: describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(resource_type=TOPIC, resource_name=name)
            ]
        ),
    ),
    "AlterConfigs": (
        ApiKey.ALTER_CONFIGS,
        2,
        lambda name: alter_configs.AlterConfigsRequest(
            resources=[alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=name)]
        ),
    ),
    "IncrementalAlterConfigs": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda name: incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=TOPIC, resource_name=name
                )
            ]
        ),
    ),
    "DescribeTopicPartitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        lambda name: describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name)]
        ),
    ),
    "ConsumerGroupHeartbeat": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        lambda name: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id="names",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[name],
            topic_partitions=[],
        ),
    ),
    "ShareGroupHeartbeat": (
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        lambda name: heartbeat_request("shares", [name]),
    ),
    "DescribeShareGroupOffsets": (
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        lambda name: offsets_request("shares", [name]),
    ),
    "AlterShareGroupOffsets": (
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        lambda name: alter_request("shares", {(name, 0): 1}),
    ),
    "DeleteShareGroupOffsets": (
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        lambda name: delete_request("shares", [name]),
    ),
    "WriteTxnMarkers": (
        ApiKey.WRITE_TXN_MARKERS,
        2,
        lambda name: write_txn_markers.WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    topics=[
                        write_txn_markers.WritableTxnMarkerTopic(name=name, partition_indexes=[0])
                    ]
                )
            ]
        ),
    ),
    "DescribeProducers": (
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        lambda name: describe_producers.DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name=name, partition_indexes=[0])]
        ),
    ),
    "ElectLeaders": (
        ApiKey.ELECT_LEADERS,
        2,
        lambda name: elect_leaders.ElectLeadersRequest(
            topic_partitions=[elect_leaders.TopicPartitions(topic=name, partitions=[0])]
        ),
    ),
    "AlterPartitionReassignments": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        lambda name: alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    name=name,
                    partitions=[
                        alter_partition_reassignments.ReassignablePartition(
                            partition_index=0, replicas=[1]
                        )
                    ],
                )
            ]
        ),
    ),
    "ListPartitionReassignments": (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        lambda name: list_partition_reassignments.ListPartitionReassignmentsRequest(
            topics=[
                list_partition_reassignments.ListPartitionReassignmentsTopics(
                    name=name, partition_indexes=[0]
                )
            ]
        ),
    ),
    "AlterReplicaLogDirs": (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        lambda name: alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                alter_replica_log_dirs.AlterReplicaLogDir(
                    path="..",
                    topics=[
                        alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=[0])
                    ],
                )
            ]
        ),
    ),
    "DescribeLogDirs": (
        ApiKey.DESCRIBE_LOG_DIRS,
        4,
        lambda name: describe_log_dirs.DescribeLogDirsRequest(
            topics=[describe_log_dirs.DescribableLogDirTopic(topic=name, partitions=[0])]
        ),
    ),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerSubprocess]:
    data: Path = tmp_path_factory.mktemp("names") / "inner" / "data"
    with BrokerSubprocess(data) as broker:
        yield broker


def files(broker: BrokerSubprocess) -> set[Path]:
    return {path for path in broker.data.parents[1].rglob("*") if "cluster" not in str(path)}


def error_codes(answer: Any) -> set[int]:
    """Return every error code in a message and its parts."""
    found = set()
    for name in getattr(answer, "__slots__", ()):
        value = getattr(answer, name)
        if name.endswith("error_code"):
            found.add(value)
        for part in value if isinstance(value, list) else ():
            found |= error_codes(part)
    return found


@pytest.mark.parametrize("api", REQUESTS)
def test_no_name_leaves_the_folder(broker: BrokerSubprocess, api: str) -> None:
    key, version, build = REQUESTS[api]
    before = files(broker)
    with RawClient(broker.address) as client:
        for name in NAMES:
            answer = client.ask(build(name), version, response_class(key))
            if api not in LEAVE_OUT:
                assert error_codes(answer) - {ErrorCode.NONE}, (name[:50], answer)
    assert files(broker) == before
    assert not Path("/tmp/escaped").exists()
    assert broker.log_lines("a request failed") == []


def test_every_api_that_takes_a_name_is_here() -> None:
    unlisted = {APIS[key].name for key in SERVED} - NAMELESS - set(REQUESTS)
    assert not unlisted, "list them here, with a request if they take the name of a topic"
