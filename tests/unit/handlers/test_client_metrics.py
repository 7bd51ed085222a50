"""Tests metrics that clients push: subscriptions, their configs, the order of pushes, the topic."""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.client_metrics_config import TOPIC
from barnabas.model.errors import ErrorCode
from barnabas.node.client_telemetry import BYTES_MAX, ClientTelemetry, Push
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest
from barnabas.protocol.records import records
from tests.support.talk.batches import read_all
from tests.support.talk.dialogue import Dialogue

CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = range(4)
INTERVAL_MS = 1_000
ON = {"observability.client_metrics": True}
ONE = bytes(15) + b"\x01"
ZSTD, UNHEARD_OF = 4, 9
WHO = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16")


@pytest.fixture
def talk(tmp_path: Path) -> Dialogue:
    talk = Dialogue(tmp_path, ON)
    talk.ask(WHO)
    return talk


def alter(talk: Dialogue, name: str, *changes: tuple[str, int, str | None]) -> ErrorCode:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=what, value=value)
        for key, what, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=name, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = talk.ask(request).responses
    return ErrorCode(answer.error_code)


def subscribe(talk: Dialogue, name: str = "all", metrics: str = "*", match: str = "") -> None:
    changes = [("metrics", SET, metrics), ("interval.ms", SET, str(INTERVAL_MS))]
    assert alter(talk, name, *changes, ("match", SET, match)) == ErrorCode.NONE


def described(talk: Dialogue, name: str) -> dict[str, tuple[str, int]]:
    wanted = DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name=name)
    (result,) = talk.ask(DescribeConfigsRequest(resources=[wanted])).results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {each.name: (each.value, each.config_source) for each in result.configs}


def listed(talk: Dialogue, version: int) -> list[str]:
    types = [CLIENT_METRICS] if version else []
    answer = talk.ask(ListConfigResourcesRequest(resource_types=types), version)
    return [each.resource_name for each in answer.config_resources]


def ask(talk: Dialogue, instance_id: bytes = ONE) -> Any:
    return talk.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id))


def push(
    talk: Dialogue,
    subscription_id: int,
    metrics: bytes = b"metrics",
    *,
    codec: int = ZSTD,
    is_last: bool = False,
    instance_id: bytes = ONE,
) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription_id,
        terminating=is_last,
        compression_type=codec,
        metrics=metrics,
    )
    return ErrorCode(talk.ask(request).error_code)


def written(talk: Dialogue) -> list[tuple[dict[str, Any], bytes]]:
    """Return the records of the topic."""
    found = []
    for number in range(len(talk.node.image.topics[TOPIC].partitions)):
        for header, batch in read_all(talk.node.find(TOPIC, number).log):
            for each in records(batch, header):
                assert each.key is not None
                assert each.value is not None
                found.append((json.loads(each.key), each.value))
    return found


def test_the_apis_are_advertised_only_where_they_are_on(tmp_path: Path) -> None:
    for settings, expected in (
        ({}, set()),
        (ON, {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}),
    ):
        talk = Dialogue(tmp_path / str(len(settings)), settings)
        keys = {each.api_key for each in talk.ask(WHO).api_keys}
        assert keys & {71, 72} == expected


def test_without_the_setting_nothing_is_taken(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path)
    assert ask(talk).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert push(talk, 1) == ErrorCode.UNSUPPORTED_VERSION


def test_subscriptions_are_configs(talk: Dialogue) -> None:
    subscribe(
        talk, "java", "org.apache.kafka.consumer.,org.apache.kafka.producer.", "client_id=app.*"
    )
    assert described(talk, "java") == {
        "metrics": ("org.apache.kafka.consumer.,org.apache.kafka.producer.", 7),
        "interval.ms": ("1000", 7),
        "match": ("client_id=app.*", 7),
    }
    subscribe(talk)
    assert listed(talk, 0) == listed(talk, 1) == ["java", "all"]
    everything = [(name, DELETE, None) for name in ("metrics", "interval.ms", "match")]
    assert alter(talk, "java", *everything) == ErrorCode.NONE
    assert listed(talk, 1) == ["all"]
    assert described(talk, "java")["interval.ms"] == ("300000", 5)


def test_a_subscription_has_a_name(talk: Dialogue) -> None:
    wanted = DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name="")
    (result,) = talk.ask(DescribeConfigsRequest(resources=[wanted])).results
    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_alter_configs_replaces_a_subscription(talk: Dialogue) -> None:
    subscribe(talk)
    resource = alter_configs.AlterConfigsResource(
        resource_type=CLIENT_METRICS,
        resource_name="all",
        configs=[alter_configs.AlterableConfig(name="metrics", value="x.")],
    )
    (answer,) = talk.ask(alter_configs.AlterConfigsRequest(resources=[resource])).responses
    assert answer.error_code == ErrorCode.NONE
    assert described(talk, "all") == {
        "metrics": ("x.", 7),
        "interval.ms": ("300000", 5),
        "match": ("", 5),
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("interval.ms", SET, "99"), ErrorCode.INVALID_REQUEST),
        (("interval.ms", SET, "3600001"), ErrorCode.INVALID_REQUEST),
        (("interval.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "client_id"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "host=a"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "client_id=("), ErrorCode.INVALID_CONFIG),
        (("colour", SET, "green"), ErrorCode.INVALID_REQUEST),
        (("match", SET, "client_id="), ErrorCode.INVALID_CONFIG),
        (("match", SET, "client_id=a=b"), ErrorCode.INVALID_CONFIG),
        (("interval.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (("metrics", APPEND, "b."), ErrorCode.INVALID_CONFIG),
        (("metrics", SUBTRACT, "b."), ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_configs_are_refused(
    talk: Dialogue, change: tuple[str, int, str], code: ErrorCode
) -> None:
    assert alter(talk, "all", change) == code
    assert alter(talk, "", ("metrics", SET, "*")) == ErrorCode.INVALID_REQUEST
    assert alter(talk, "x" * 250, ("metrics", SET, "*")) == ErrorCode.INVALID_REQUEST
    assert listed(talk, 1) == []


def test_subscriptions_survive_a_restart(tmp_path: Path) -> None:
    subscribe(Dialogue(tmp_path, ON), "all", "x.")
    talk = Dialogue(tmp_path, ON)
    assert described(talk, "all")["metrics"] == ("x.", 7)
    assert ask(talk).requested_metrics == ["x."]


def test_a_client_gets_an_id_and_the_union_of_what_matches(talk: Dialogue) -> None:
    subscribe(talk, "one", "b.,a.", "client_software_name=lib.*,client_software_version=2\\.1.")
    subscribe(talk, "two", "c.", "client_software_name=apache-kafka-java")
    assert (
        alter(talk, "three", ("metrics", SET, "c."), ("interval.ms", SET, "500")) == ErrorCode.NONE
    )
    told = ask(talk, bytes(16))
    assert told.error_code == ErrorCode.NONE
    assert told.client_instance_id not in (bytes(16), ask(talk, bytes(16)).client_instance_id)
    assert told.requested_metrics == ["a.", "b.", "c."]
    assert (told.push_interval_ms, told.telemetry_max_bytes) == (500, BYTES_MAX)
    assert told.accepted_compression_types == [4, 3, 1, 2]
    assert told.delta_temporality


def test_a_star_stands_for_all_metrics_and_without_a_match_there_are_none(talk: Dialogue) -> None:
    assert ask(talk).requested_metrics == []
    assert ask(talk, bytes(16)).push_interval_ms == 300_000
    subscribe(talk, "one", "a.,*")
    assert ask(talk).requested_metrics == ["*"]


def test_a_push_goes_to_the_topic_as_it_is(talk: Dialogue) -> None:
    subscribe(talk)
    told = ask(talk)
    assert push(talk, told.subscription_id, b"first") == ErrorCode.NONE
    assert push(talk, told.subscription_id, b"last", is_last=True) == ErrorCode.NONE
    found = written(talk)
    assert sorted(value for _, value in found) == [b"first", b"last"]
    key = next(key for key, value in found if value == b"last")
    assert key == {
        "client_instance_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "client_id": "dialogue",
        "client_software_name": "librdkafka",
        "client_software_version": "2.16",
        "client_source_address": "test",
        "broker": 1,
        "codec": ZSTD,
        "interval_ms": INTERVAL_MS,
        "is_last": True,
    }
    assert talk.node.is_internal(talk.node.image.topics[TOPIC])
    config = talk.node.image.topics[TOPIC].config
    assert (config["retention.ms"], config["flush"]) == ("3600000", "interval")


def test_pushes_are_refused_as_kafka_refuses_them(talk: Dialogue) -> None:
    subscribe(talk)
    told = ask(talk)
    subscription = told.subscription_id
    assert push(talk, subscription, instance_id=bytes(16)) == ErrorCode.INVALID_REQUEST
    assert push(talk, subscription) == ErrorCode.NONE
    assert push(talk, subscription) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    talk.pass_time(INTERVAL_MS)
    assert push(talk, subscription + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert ask(talk).error_code == ErrorCode.NONE  # at once, after such an error
    talk.pass_time(INTERVAL_MS)
    assert push(talk, subscription, codec=UNHEARD_OF) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    talk.pass_time(INTERVAL_MS)
    assert push(talk, subscription, bytes(BYTES_MAX + 1)) == ErrorCode.TELEMETRY_TOO_LARGE
    assert push(talk, subscription, is_last=True) == ErrorCode.NONE
    talk.pass_time(INTERVAL_MS)
    assert push(talk, subscription) == ErrorCode.INVALID_REQUEST


def test_a_client_that_asks_too_early_is_refused(talk: Dialogue) -> None:
    subscribe(talk)
    assert ask(talk).error_code == ErrorCode.NONE
    assert ask(talk).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    talk.pass_time(INTERVAL_MS)
    assert ask(talk).error_code == ErrorCode.NONE


def test_a_change_of_subscriptions_reaches_clients_with_their_next_push(talk: Dialogue) -> None:
    subscribe(talk, "all", "a.")
    told = ask(talk)
    assert push(talk, told.subscription_id) == ErrorCode.NONE
    subscribe(talk, "all", "b.")
    talk.pass_time(INTERVAL_MS)
    assert push(talk, told.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = ask(talk)
    assert again.requested_metrics == ["b."]
    assert push(talk, again.subscription_id) == ErrorCode.NONE


def test_the_same_subscription_has_the_same_id_on_every_broker() -> None:
    configs = {"all": {"metrics": "*"}}
    brokers = [ClientTelemetry(lambda: configs, bytes) for _ in range(2)]
    told = brokers[0].ask(ONE, {}, 0)
    pushed = Push(told.subscription_id, ZSTD, 1, is_last=False)
    assert brokers[1].push(ONE, {}, pushed, 0).subscription_id == told.subscription_id


def test_a_broker_forgets_the_client_that_it_has_not_heard_from_for_longest() -> None:
    broker = ClientTelemetry(dict, bytes, clients_max=2)
    ids = [bytes(15) + bytes([n]) for n in (1, 2, 3)]
    for each in ids:
        broker.ask(each, {}, 0)
    broker.ask(ids[0], {}, 0)  # forgotten: it is new, and not too early
