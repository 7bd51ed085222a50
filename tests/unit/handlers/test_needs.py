"""Tests what each API needs of an authorizer, against a separate table."""

import pytest

from barnabas.handlers.registry import FORWARDED, PEER_SERVED, SERVED
from barnabas.handlers.rows.row import Row
from barnabas.model.permissions import Operation, ResourceType
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import APIS
from tests.support.talk.rights_table import RESOURCES
from tests.support.talk.share_state_requests import STATE_REQUESTS

CONFIGS = "{0} topic or {0} group or {0} cluster"

TABLE = {
    "Produce": "WRITE topic, WRITE txn",
    "Fetch": "READ topic or CLUSTER_ACTION cluster",
    "ListOffsets": "DESCRIBE topic",
    "OffsetForLeaderEpoch": "DESCRIBE topic or CLUSTER_ACTION cluster",
    "Metadata": "DESCRIBE topic, CREATE cluster or CREATE topic",
    "DescribeTopicPartitions": "DESCRIBE topic",
    "CreateTopics": "CREATE cluster or CREATE topic, DESCRIBE_CONFIGS topic",
    "DeleteTopics": "DELETE topic or DELETE cluster",
    "DeleteRecords": "DELETE topic",
    "CreatePartitions": "ALTER topic",
    "DescribeConfigs": CONFIGS.format("DESCRIBE_CONFIGS"),
    "AlterConfigs": CONFIGS.format("ALTER_CONFIGS"),
    "IncrementalAlterConfigs": CONFIGS.format("ALTER_CONFIGS"),
    "OffsetCommit": "READ group, READ topic",
    "OffsetFetch": "DESCRIBE group, DESCRIBE topic",
    "OffsetDelete": "DELETE group, READ topic",
    "DeleteGroups": "DELETE group",
    "JoinGroup": "READ group",
    "SyncGroup": "READ group",
    "LeaveGroup": "READ group",
    "Heartbeat": "READ group",
    "ConsumerGroupHeartbeat": "READ group, DESCRIBE topic",
    "ShareFetch": "READ group, READ topic",
    "ShareAcknowledge": "READ group, READ topic",
    "ShareGroupHeartbeat": "READ group, DESCRIBE topic",
    "ShareGroupDescribe": "DESCRIBE group, DESCRIBE topic",
    "DescribeShareGroupOffsets": "DESCRIBE group, DESCRIBE topic",
    "AlterShareGroupOffsets": "READ group, READ topic",
    "DeleteShareGroupOffsets": "DELETE group, READ topic",
    "DescribeGroups": "DESCRIBE group",
    "ConsumerGroupDescribe": "DESCRIBE group, DESCRIBE topic",
    "ListGroups": "DESCRIBE cluster or DESCRIBE group",
    "ListTransactions": "DESCRIBE txn",
    "FindCoordinator": "DESCRIBE group or DESCRIBE txn or CLUSTER_ACTION cluster",
    "InitProducerId": "WRITE txn or IDEMPOTENT_WRITE cluster or WRITE topic",
    "AddPartitionsToTxn": "WRITE txn or CLUSTER_ACTION cluster, "
    "WRITE topic or CLUSTER_ACTION cluster",
    "AddOffsetsToTxn": "WRITE txn, READ group",
    "TxnOffsetCommit": "WRITE txn, READ group, READ topic",
    "EndTxn": "WRITE txn",
    "DescribeTransactions": "DESCRIBE txn, DESCRIBE topic",
    "DescribeProducers": "READ topic",
    "WriteTxnMarkers": "ALTER cluster or CLUSTER_ACTION cluster",
    "DescribeQuorum": "DESCRIBE cluster",
    "DescribeUserScramCredentials": "DESCRIBE cluster",
    "AlterUserScramCredentials": "ALTER cluster",
    "DescribeLogDirs": "DESCRIBE cluster",
    "ListPartitionReassignments": "DESCRIBE cluster",
    "ElectLeaders": "ALTER cluster",
    "AlterPartitionReassignments": "ALTER cluster",
    "AlterReplicaLogDirs": "ALTER cluster",
    "UpdateFeatures": "ALTER cluster",
    "UnregisterBroker": "ALTER cluster",
    "AddRaftVoter": "ALTER cluster",
    "RemoveRaftVoter": "ALTER cluster",
    "DescribeAcls": "DESCRIBE cluster",
    "CreateAcls": "ALTER cluster",
    "DeleteAcls": "ALTER cluster",
    "ListConfigResources": "DESCRIBE_CONFIGS cluster",
    "DescribeClientQuotas": "DESCRIBE_CONFIGS cluster",
    "AlterClientQuotas": "ALTER_CONFIGS cluster",
    "CreateDelegationToken": "CREATE_TOKENS user",
    "RenewDelegationToken": "",
    "ExpireDelegationToken": "",
    "DescribeDelegationToken": "DESCRIBE token or DESCRIBE_TOKENS user",
    **dict.fromkeys(STATE_REQUESTS, "CLUSTER_ACTION cluster"),
    "ApiVersions": "",
    "DescribeCluster": "",
    "GetTelemetrySubscriptions": "",
    "PushTelemetry": "",
    "SaslHandshake": "",
    "SaslAuthenticate": "",
}
"""The needs of each API, with alternatives, from Kafka's table of operations."""

BETWEEN_BROKERS = "CLUSTER_ACTION cluster"


def needs(text: str) -> set[frozenset[tuple[Operation, ResourceType]]]:
    """Parse a cell of the table."""
    return {
        frozenset(permission(words) for words in each.split(" or ")) for each in text.split(", ")
    }


def permission(words: str) -> tuple[Operation, ResourceType]:
    operation, resource = words.split()
    return Operation[operation], RESOURCES[resource]


@pytest.mark.parametrize("row", SERVED.values(), ids=lambda row: row.key.name)
def test_what_an_api_needs(row: Row) -> None:
    text = TABLE[APIS[row.key].name]
    expected = needs(text) if text else set()
    assert {need.permissions for need in row.needs} == expected


@pytest.mark.parametrize("row", PEER_SERVED.values(), ids=lambda row: row.key.name)
def test_what_an_api_between_brokers_needs(row: Row) -> None:
    assert {need.permissions for need in row.needs} == needs(BETWEEN_BROKERS)
    assert "broker" not in APIS[row.key].listeners


def test_every_api_of_the_table_is_served() -> None:
    assert {APIS[key].name for key in SERVED} == set(TABLE)


def test_the_codes_are_those_of_kafka() -> None:
    assert (Operation.READ, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE) == (3, 9, 12)
    assert [resource.value for resource in ResourceType] == list(range(8))


def test_every_row_has_the_key_it_is_found_by() -> None:
    for key, row in [*SERVED.items(), *PEER_SERVED.items()]:
        assert row.key is ApiKey(key)
        assert APIS[key].low <= row.low <= row.high <= APIS[key].high


def test_which_apis_have_a_fast_path() -> None:
    fast = {row.key for row in [*SERVED.values(), *PEER_SERVED.values()] if row.has_fast_path}
    assert fast == {ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT}


def test_only_what_clients_may_send_is_forwarded() -> None:
    assert set(SERVED) >= FORWARDED
    assert not any(row.is_forwarded for row in PEER_SERVED.values())
