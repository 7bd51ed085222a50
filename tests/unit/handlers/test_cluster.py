"""Tests ApiVersions, DescribeCluster, DescribeLogDirs, InitProducerId, and unexpected SASL."""

from pathlib import Path

import pytest

from barnabas.handlers.api_versions import TELEMETRY
from barnabas.handlers.registry import SERVED
from barnabas.metadata.metadata_records import FeatureLevelChanged
from barnabas.model.errors import ErrorCode
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
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
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, produce


def named(name: str, version: str = "1.2-b") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_what_is_served_is_listed(talk: Dialogue, version: int) -> None:
    answer = talk.ask(named("barnabas-test"), version)
    listed = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert listed.pop(0) == (0, 13)  # see handlers/produce_fetch/produce.py
    assert listed == {
        key: (api.low, api.high) for key, api in SERVED.items() if key and key not in TELEMETRY
    }
    assert answer.error_code == 0


@pytest.mark.parametrize("version", range(5))
def test_clients_learn_that_transactions_are_of_version_2(talk: Dialogue, version: int) -> None:
    """The Java producer uses the finalized level, and only if the epoch is not negative."""
    answer = talk.ask(named("barnabas-test"), version)
    finalized = {
        f.name: (f.min_version_level, f.max_version_level) for f in answer.finalized_features
    }
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert finalized.get("transaction.version") == ((2, 2) if version >= 3 else None)
    assert supported.get("transaction.version") == ((0, 2) if version >= 4 else None)
    assert (answer.finalized_features_epoch >= 0) == (version >= 3)


def test_share_groups_come_with_the_feature_level(talk: Dialogue) -> None:
    def share_version() -> tuple[int, int, int | None]:
        answer = talk.ask(named("barnabas-test"), 4)
        (known,) = [f for f in answer.supported_features if f.name == "share.version"]
        levels = [f for f in answer.finalized_features if f.name == "share.version"]
        level = levels[0].max_version_level if levels else None
        return known.min_version, known.max_version, level

    assert share_version() == (0, 1, 1)
    talk.node.commit([FeatureLevelChanged(level=1)], talk.now_ms)
    talk.settle()
    assert share_version() == (0, 1, None)


def test_a_version_from_the_future_is_answered_in_the_oldest(talk: Dialogue) -> None:
    exchange = talk.send(named("later"), 99)
    assert exchange.content is not None
    answer = decode_exact(ApiVersionsResponse, 0, exchange.content, 4)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("a", ""), ("-a", "1")])
def test_software_without_a_name_is_refused(talk: Dialogue, name: str, version: str) -> None:
    assert talk.ask(named(name, version), 3).error_code == ErrorCode.INVALID_REQUEST


def test_the_cluster_is_described(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"broker.rack": "r1", "cluster.cluster_id": "my-cluster"})
    answer = talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert (answer.cluster_id, answer.controller_id, answer.error_code) == ("my-cluster", 1, 0)
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.rack, broker.is_fenced) == (1, "r1", False)
    assert answer.cluster_authorized_operations > 0
    plain = talk.ask(DescribeClusterRequest())
    assert plain.cluster_authorized_operations == -(1 << 31)


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controllers_are_not_to_be_found_here(talk: Dialogue, kind: int, code: int) -> None:
    answer = talk.ask(DescribeClusterRequest(endpoint_type=kind))
    assert (answer.error_code, answer.brokers) == (code, [])
    assert answer.endpoint_type == 1  # as in Kafka, for any request


@pytest.mark.parametrize(
    "request_",
    [
        InitProducerIdRequest(transactional_id=""),
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=0),
        InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=-1),
    ],
)
def test_a_producer_that_is_refused_gets_no_epoch(
    talk: Dialogue, request_: InitProducerIdRequest
) -> None:
    answer = talk.ask(request_)
    assert answer.error_code
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_an_election_that_is_refused_names_every_partition(talk: Dialogue) -> None:
    create_topic(talk, "a", 2)
    wanted = [TopicPartitions(topic="a", partitions=[0, 1])]
    answer = talk.ask(ElectLeadersRequest(election_type=5, topic_partitions=wanted))
    (topic,) = answer.replica_election_results
    codes = [(one.partition_id, one.error_code) for one in topic.partition_result]
    assert codes == [(0, answer.error_code), (1, answer.error_code)]
    assert answer.error_code


def test_folders_are_described(talk: Dialogue, tmp_path: Path) -> None:
    create_topic(talk, "a", 2)
    create_topic(talk, "b")
    content = batch(5)
    produce(talk, "a", content, partition=1)
    (everything,) = talk.ask(DescribeLogDirsRequest(topics=None)).results
    sizes = {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in everything.topics
        for partition in topic.partitions
    }
    assert sizes == {("a", 0): 0, ("a", 1): len(content), ("b", 0): 0}
    assert everything.log_dir == str(tmp_path)
    assert everything.total_bytes >= everything.usable_bytes > 0
    one = DescribableLogDirTopic(topic="a", partitions=[1, 9])
    (some,) = talk.ask(DescribeLogDirsRequest(topics=[one])).results
    assert [[p.partition_index for p in topic.partitions] for topic in some.topics] == [[1]]


def test_producer_ids_are_never_given_twice(talk: Dialogue) -> None:
    seen: list[int] = []
    for round_number in range(4):
        for _ in range(600):
            answer = talk.ask(InitProducerIdRequest(transactional_id=None))
            assert (answer.error_code, answer.producer_epoch) == (0, 0)
            seen.append(answer.producer_id)
        talk.restart(crash=round_number % 2 == 0)
    assert len(set(seen)) == len(seen)


def test_ids_asked_for_at_once_differ(talk: Dialogue) -> None:
    talk.hold_syncs = True
    exchanges = [talk.send(InitProducerIdRequest(transactional_id=None)) for _ in range(5)]
    assert all(exchange.waiting for exchange in exchanges), (
        "an id was returned before it was stored"
    )
    talk.release_syncs()
    assert len({exchange.answer.producer_id for exchange in exchanges}) == 5


def test_a_request_with_an_id_gets_another(talk: Dialogue) -> None:
    first = talk.ask(InitProducerIdRequest(transactional_id=None))
    again = talk.ask(
        InitProducerIdRequest(
            transactional_id=None, producer_id=first.producer_id, producer_epoch=0
        )
    )
    assert (again.error_code, again.producer_epoch) == (0, 0)
    assert again.producer_id != first.producer_id


def test_sasl_is_out_of_place(talk: Dialogue) -> None:
    assert (
        talk.ask(SaslHandshakeRequest(mechanism="PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    )
    answer = talk.ask(SaslAuthenticateRequest(auth_bytes=b"x"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert "PLAINTEXT" in answer.error_message


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        ({"__cluster_metadata": [0]}, {"__cluster_metadata": [0]}),
        ({"__cluster_metadata": [1]}, {"__cluster_metadata": [3]}),
        ({"__cluster_metadata": [0, 1]}, {"__cluster_metadata": [3, 3]}),
        ({"__cluster_metadata": [0], "a": [0]}, {"__cluster_metadata": [3], "a": [3]}),
        ({"a": [0]}, {"a": [3]}),
        ({}, {}),
    ],
)
def test_only_the_metadata_log_has_a_quorum(
    talk: Dialogue, version: int, asked: dict[str, list[int]], codes: dict[str, list[int]]
) -> None:
    create_topic(talk, "a")
    topics = [
        DescribeQuorumRequestTopicData(
            topic_name=name,
            partitions=[DescribeQuorumRequestPartitionData(partition_index=n) for n in numbers],
        )
        for name, numbers in asked.items()
    ]
    answer = talk.ask(DescribeQuorumRequest(topics=topics), version)
    assert answer.error_code == 0
    found = {t.topic_name: [p.error_code for p in t.partitions] for t in answer.topics}
    assert found == codes
    voters = [len(p.current_voters) for t in answer.topics for p in t.partitions]
    assert voters == [0 if code else 1 for each in codes.values() for code in each]
