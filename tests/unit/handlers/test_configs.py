"""Tests DescribeConfigs, AlterConfigs and IncrementalAlterConfigs; changes apply at once."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ErrorCode
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.records import parse_header
from tests.support.talk.dialogue import Dialogue
from tests.support.talk.requests import batch, create_topic, error_codes, fetch, produce

TOPIC, BROKER, BROKER_LOGGER, ROLE = 2, 4, 8, 100
SET, DELETE, APPEND, SUBTRACT = range(4)
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, OF_SETTINGS, BY_DEFAULT = 1, 2, 3, 4, 5


def describe(
    talk: Dialogue, kind: int, name: str, keys: list[str] | None = None, *, full: bool = False
) -> dict[str, Any]:
    wanted = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(
        resources=[wanted], include_synonyms=full, include_documentation=full
    )
    (result,) = talk.ask(request).results
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


def alter(
    talk: Dialogue,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    dry: bool = False,
) -> Any:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=what, value=value)
        for key, what, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=dry
    )
    (result,) = talk.ask(request).responses
    return result


def replace(talk: Dialogue, kind: int, name: str, **config: str | None) -> Any:
    entries = [alter_configs.AlterableConfig(name=k, value=v) for k, v in config.items()]
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=entries
    )
    (result,) = talk.ask(alter_configs.AlterConfigsRequest(resources=[resource])).responses
    return result


def test_values_say_where_they_come_from(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"storage.segment_size": "5MB"})
    create_topic(talk, "a", config={"retention.ms": "5"})
    found = describe(talk, TOPIC, "a")
    sources = {name: found[name].config_source for name in ("retention.ms", "segment.bytes")}
    assert sources == {"retention.ms": OF_TOPIC, "segment.bytes": OF_SETTINGS}
    assert found["cleanup.policy"].config_source == BY_DEFAULT
    assert found["segment.bytes"].value == str(5 << 20)
    assert all(entry.synonyms == [] for entry in found.values())
    assert all(entry.documentation is None for entry in found.values())
    assert not any(entry.is_sensitive for entry in found.values())


def test_synonyms_lead_from_the_topic_to_the_default(tmp_path: Path) -> None:
    talk = Dialogue(tmp_path, {"storage.retention_time": "2h"})
    create_topic(talk, "a", config={"retention.ms": "5"})
    alter(talk, BROKER, "", ("log.retention.ms", SET, "6"))
    alter(talk, BROKER, "1", ("log.retention.ms", SET, "7"))
    entry = describe(talk, TOPIC, "a", full=True)["retention.ms"]
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        ("retention.ms", "5", OF_TOPIC),
        ("log.retention.ms", "7", OF_BROKER),
        ("log.retention.ms", "6", OF_ALL_BROKERS),
        ("log.retention.ms", "7200000", OF_SETTINGS),
        ("log.retention.ms", "604800000", BY_DEFAULT),
    ]
    assert entry.config_type == 5
    assert len(entry.documentation) > 10


def test_only_the_keys_asked_for(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert set(describe(talk, TOPIC, "a", ["retention.ms", "none"])) == {"retention.ms"}
    everything = describe(talk, TOPIC, "a")
    assert len(everything) > 20
    assert describe(talk, TOPIC, "a", []).keys() == everything.keys()


def test_brokers_are_described(talk: Dialogue) -> None:
    alter(talk, BROKER, "", ("log.segment.bytes", SET, "2000000"))
    found = describe(talk, BROKER, "1", full=True)
    assert (found["node.id"].value, found["node.id"].read_only) == ("1", True)
    segment = found["log.segment.bytes"]
    assert (segment.value, segment.read_only) == ("2000000", False)
    assert segment.config_source == OF_ALL_BROKERS
    assert set(describe(talk, BROKER, "")) == {"log.segment.bytes"}


def test_roles_are_refused_without_an_authorizer(talk: Dialogue) -> None:
    wanted = DescribeConfigsResource(resource_type=ROLE, resource_name="1")
    (result,) = talk.ask(DescribeConfigsRequest(resources=[wanted])).results
    assert result.error_code == ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_configs(talk: Dialogue, kind: int, name: str, code: int) -> None:
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=name)
    described = talk.ask(DescribeConfigsRequest(resources=[wanted])).results
    altered = alter(talk, kind, name, ("retention.ms", SET, "1"))
    replaced = replace(talk, kind, name)
    for result in (*described, altered, replaced):
        assert (result.error_code, bool(result.error_message)) == (code, True)


@pytest.mark.parametrize(("name", "described", "altered"), [("", 17, 42), ("a b", 17, 17)])
def test_names_that_no_topic_can_have(
    talk: Dialogue, name: str, described: int, altered: int
) -> None:
    wanted = DescribeConfigsResource(resource_type=TOPIC, resource_name=name)
    (result,) = talk.ask(DescribeConfigsRequest(resources=[wanted])).results
    assert result.error_code == described
    assert alter(talk, TOPIC, name, ("retention.ms", SET, "1")).error_code == altered
    assert replace(talk, TOPIC, name).error_code == altered


def test_configs_are_set_added_to_and_deleted(talk: Dialogue) -> None:
    create_topic(talk, "a")
    steps: list[tuple[str, int, str | None, str]] = [
        ("cleanup.policy", APPEND, "compact", "delete,compact"),
        ("cleanup.policy", APPEND, "compact", "delete,compact"),
        ("cleanup.policy", SUBTRACT, "delete", "compact"),
        ("cleanup.policy", DELETE, None, "delete"),
        ("retention.ms", SET, "7", "7"),
        ("retention.ms", DELETE, "", "604800000"),
    ]
    for name, operation, value, wanted in steps:
        assert alter(talk, TOPIC, "a", (name, operation, value)).error_code == 0
        assert describe(talk, TOPIC, "a")[name].value == wanted


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("cleanup.policy", APPEND, "")], ErrorCode.INVALID_CONFIG),
        ([("no.such.config", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("no.such.config", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (
            [("min.compaction.lag.ms", SET, "5"), ("max.compaction.lag.ms", SET, "4")],
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_bad_changes_change_nothing(
    talk: Dialogue, changes: list[tuple[str, int, str | None]], code: int
) -> None:
    create_topic(talk, "a")
    result = alter(talk, TOPIC, "a", ("segment.bytes", SET, "2000000"), *changes)
    assert (result.error_code, bool(result.error_message)) == (code, True)
    assert describe(talk, TOPIC, "a")["segment.bytes"].config_source == BY_DEFAULT


def test_nothing_changes_when_only_asked_whether(talk: Dialogue) -> None:
    create_topic(talk, "a")
    assert alter(talk, TOPIC, "a", ("retention.ms", SET, "7"), dry=True).error_code == 0
    assert describe(talk, TOPIC, "a")["retention.ms"].config_source == BY_DEFAULT


def test_alter_configs_replaces_everything(talk: Dialogue) -> None:
    create_topic(talk, "a", config={"retention.ms": "5"})
    assert replace(talk, TOPIC, "a", **{"segment.bytes": "2000000"}).error_code == 0
    found = describe(talk, TOPIC, "a")
    assert found["segment.bytes"].config_source == OF_TOPIC
    assert found["retention.ms"].config_source == BY_DEFAULT
    assert (
        replace(talk, TOPIC, "a", **{"retention.ms": None}).error_code == ErrorCode.INVALID_REQUEST
    )


def test_one_bad_resource_spares_the_others(talk: Dialogue) -> None:
    create_topic(talk, "a")
    entry = incremental_alter_configs.AlterableConfig(name="retention.ms", value="7")
    resources = [
        incremental_alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=[entry]
        )
        for name in ("none", "a")
    ]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
    assert error_codes(talk.ask(request).responses) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert describe(talk, TOPIC, "a")["retention.ms"].value == "7"


def test_a_smaller_limit_holds_at_once(talk: Dialogue) -> None:
    create_topic(talk, "a")
    large = batch(value=bytes(5000))
    assert produce(talk, "a", large).error_code == 0
    alter(talk, TOPIC, "a", ("max.message.bytes", SET, "1000"))
    assert produce(talk, "a", large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    alter(talk, TOPIC, "a", ("max.message.bytes", DELETE, None))
    assert produce(talk, "a", large).error_code == 0


def test_another_codec_holds_at_once(talk: Dialogue) -> None:
    create_topic(talk, "a")
    alter(talk, TOPIC, "a", ("compression.type", SET, "zstd"))
    produce(talk, "a")
    assert parse_header(fetch(talk, "a").records).codec == Codec.ZSTD


def test_brokers_pass_their_configs_on_to_topics(talk: Dialogue) -> None:
    create_topic(talk, "a")
    create_topic(talk, "own", config={"max.message.bytes": "90000"})
    assert alter(talk, BROKER, "", ("message.max.bytes", SET, "1000")).error_code == 0
    large = batch(value=bytes(5000))
    assert (produce(talk, "a", large).error_code, produce(talk, "own", large).error_code) == (
        ErrorCode.MESSAGE_TOO_LARGE,
        0,
    )
    assert alter(talk, BROKER, "1", ("message.max.bytes", SET, "9000")).error_code == 0
    assert produce(talk, "a", large).error_code == 0


@pytest.mark.parametrize(
    ("name", "code"),
    [("node.id", ErrorCode.INVALID_REQUEST), ("no.such.config", ErrorCode.INVALID_CONFIG)],
)
def test_what_is_fixed_on_a_broker(talk: Dialogue, name: str, code: int) -> None:
    altered = alter(talk, BROKER, "1", (name, SET, "2"))
    replaced = replace(talk, BROKER, "1", **{name: "2"})
    for result in (altered, replaced):
        assert result.error_code == code
        assert name in result.error_message


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "a"), (BROKER, "1"), (BROKER, "")])
@pytest.mark.parametrize("key", ["no.such.config", "node.id"])
def test_what_is_not_there_can_be_deleted(talk: Dialogue, kind: int, name: str, key: str) -> None:
    create_topic(talk, "a")
    assert alter(talk, kind, name, (key, DELETE, None)).error_code == 0


def test_what_has_no_effect_is_kept_and_says_so(talk: Dialogue) -> None:
    before = describe(talk, BROKER, "1")
    assert "log.cleaner.threads" not in before
    assert alter(talk, BROKER, "", ("log.cleaner.threads", SET, "3")).error_code == 0
    assert alter(talk, BROKER, "1", ("log.cleaner.threads", SET, "4")).error_code == 0
    entry = describe(talk, BROKER, "1", full=True)["log.cleaner.threads"]
    assert (entry.value, entry.config_source, entry.config_type) == ("4", OF_BROKER, 3)
    assert (entry.read_only, entry.is_sensitive) == (False, False)
    assert [(s.value, s.source) for s in entry.synonyms] == [
        ("4", OF_BROKER),
        ("3", OF_ALL_BROKERS),
    ]
    assert entry.documentation == "Accepted for compatibility; has no effect in Barnabas."
    assert {n: e.value for n, e in describe(talk, BROKER, "").items()} == {
        "log.cleaner.threads": "3"
    }
    assert alter(talk, BROKER, "1", ("log.cleaner.threads", DELETE, None)).error_code == 0
    assert replace(talk, BROKER, "").error_code == 0
    assert describe(talk, BROKER, "1").keys() == before.keys()


def test_replication_is_throttled_as_the_followers_rate_says(tmp_path: Path) -> None:
    name = "follower.replication.throttled.rate"
    talk = Dialogue(tmp_path, {"replication.catch_up_rate": "5KB"})
    throttle = talk.node.replicas.throttle
    rates = [throttle.bytes_per_second]
    for broker, operation, value in [
        ("", SET, "1000"),
        ("1", SET, "0"),
        ("1", DELETE, None),
        ("", DELETE, None),
    ]:
        assert alter(talk, BROKER, broker, (name, operation, value)).error_code == 0
        rates.append(throttle.bytes_per_second)
    assert rates == [5 << 10, 1000, 1, 1000, 5 << 10]


def test_a_password_is_not_stored(talk: Dialogue) -> None:
    """It would be in the metadata log of every broker."""
    name = "listener.name.internal.plain.sasl.jaas.config"
    refused = alter(talk, BROKER, "1", (name, SET, "secret"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "barnabas user create" in (refused.error_message or "")
    assert "secret" not in (refused.error_message or "").replace("a secret", "")
    assert name not in describe(talk, BROKER, "1", full=True)


def test_lists_of_brokers_are_added_to(talk: Dialogue) -> None:
    for name, value, wanted in [
        ("log.cleanup.policy", "compact", "delete,compact"),
        ("metric.reporters", "a.B", "a.B"),
        ("metric.reporters", "c.D", "a.B,c.D"),
    ]:
        assert alter(talk, BROKER, "", (name, APPEND, value)).error_code == 0
        assert describe(talk, BROKER, "")[name].value == wanted
    assert (
        alter(talk, BROKER, "", ("log.cleaner.threads", APPEND, "1")).error_code
        == ErrorCode.INVALID_CONFIG
    )


def test_tools_find_the_configs_that_they_read(tmp_path: Path) -> None:
    settings = {
        "groups.offsets_retention": "90m",
        "groups.offsets_partitions": 7,
        "transactions.max_timeout": "1m",
        "storage.retention_time": "36h",
    }
    found = describe(Dialogue(tmp_path, settings), BROKER, "1")
    wanted = {
        "offsets.topic.num.partitions": "7",
        "offsets.topic.replication.factor": "3",
        "offsets.retention.minutes": "90",
        "group.min.session.timeout.ms": "6000",
        "group.max.session.timeout.ms": "1800000",
        "group.consumer.session.timeout.ms": "45000",
        "transaction.max.timeout.ms": "60000",
        "transaction.state.log.num.partitions": "50",
        "log.retention.hours": "36",
        "log.retention.minutes": "2160",
        "process.roles": "broker,controller",
    }
    assert {name: found[name].value for name in wanted} == wanted
    assert all(found[name].read_only for name in wanted)
    assert found["log.retention.hours"].config_source == OF_SETTINGS
    assert len(found) > 90


def test_a_resource_that_is_named_twice(talk: Dialogue) -> None:
    create_topic(talk, "a")
    create_topic(talk, "b")
    for module, request in (
        (alter_configs, alter_configs.AlterConfigsRequest),
        (incremental_alter_configs, incremental_alter_configs.IncrementalAlterConfigsRequest),
    ):
        resources = [
            module.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[module.AlterableConfig(name="retention.ms", value=value)],
            )
            for name, value in (("a", "7"), ("b", "7"), ("a", "8"))
        ]
        assert error_codes(talk.ask(request(resources=resources)).responses) == [
            ErrorCode.INVALID_REQUEST,
            0,
            ErrorCode.INVALID_REQUEST,
        ]
    assert describe(talk, TOPIC, "a")["retention.ms"].config_source == BY_DEFAULT
    assert describe(talk, TOPIC, "b")["retention.ms"].value == "7"


def test_a_config_that_is_named_twice(talk: Dialogue) -> None:
    create_topic(talk, "a")
    entries = [alter_configs.AlterableConfig(name="retention.ms", value=v) for v in ("7", "8")]
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name="a", configs=entries
    )
    answer = talk.ask(alter_configs.AlterConfigsRequest(resources=[resource]))
    assert error_codes(answer.responses) == [ErrorCode.INVALID_REQUEST]
    assert describe(talk, TOPIC, "a")["retention.ms"].config_source == BY_DEFAULT
