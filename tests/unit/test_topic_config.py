"""Tests topic and broker configs: accepted and refused values, and the messages."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata import broker_config, broker_config_table
from barnabas.metadata.config_definition import ConfigType
from barnabas.metadata.kafka_broker_configs import DYNAMIC_TYPES, READ_ONLY
from barnabas.metadata.topic_config import (
    DEFINITIONS,
    TopicConfig,
    defaults_from,
    definition,
    resolve,
    validate,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.security_settings import ListenerSettings
from barnabas.model.settings import (
    BrokerSettings,
    ReplicationSettings,
    Settings,
    StorageSettings,
)


def refusal(name: str, value: str) -> str:
    with pytest.raises(ApiError) as caught:
        validate(name, value)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message


def test_every_field_has_a_definition_and_every_definition_a_field() -> None:
    fields = {field.name for field in dataclasses.fields(TopicConfig)}
    assert fields == {name.replace(".", "_") for name in DEFINITIONS}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_defaults_pass_their_own_rule(name: str) -> None:
    validate(name, DEFINITIONS[name].default)
    assert DEFINITIONS[name].documentation.endswith(".")


def test_the_settings_default_to_the_table() -> None:
    for name, value in defaults_from(Settings()).items():
        assert value == DEFINITIONS[name].default, name


def test_defaults_are_those_of_kafka() -> None:
    config = resolve()
    assert config.retention_ms == 604_800_000
    assert config.retention_bytes == -1
    assert config.segment_bytes == 1_073_741_824
    assert config.max_message_bytes == 1_048_588
    assert config.message_timestamp_after_max_ms == 3_600_000
    assert config.message_timestamp_before_max_ms == 2**63 - 1
    assert config.min_insync_replicas == 1
    assert config.compression_type == "producer"
    assert config.leader_replication_throttled_replicas == ()
    assert not config.unclean_leader_election_enable


def test_a_topic_wins_over_the_broker_and_the_broker_over_the_table() -> None:
    defaults = {"retention.ms": "1000", "segment.bytes": "2048"}
    config = resolve({"retention.ms": "5"}, defaults)
    assert (config.retention_ms, config.segment_bytes, config.index_interval_bytes) == (
        5,
        2048,
        4096,
    )


@pytest.mark.parametrize(
    ("policy", "compacts", "deletes"),
    [
        ("delete", False, True),
        ("compact", True, False),
        ("compact, delete", True, True),
        ("", False, False),
    ],
)
def test_cleanup_policy(policy: str, compacts: bool, deletes: bool) -> None:
    config = resolve({"cleanup.policy": policy})
    assert (config.compacts, config.deletes) == (compacts, deletes)


@pytest.mark.parametrize(
    ("overrides", "on_ack"),
    [
        ({}, True),
        ({"flush": "interval"}, False),
        ({"flush": "interval", "flush.messages": "1"}, True),
        ({"flush": "interval", "flush.messages": "2"}, False),
    ],
)
def test_flush_on_ack(overrides: dict[str, str], on_ack: bool) -> None:
    assert resolve(overrides).flush_on_ack is on_ack


def test_stamps_on_append() -> None:
    assert not resolve().stamps_on_append
    assert resolve({"message.timestamp.type": "LogAppendTime"}).stamps_on_append


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("preallocate", "TRUE", True),
        ("retention.ms", " 12 ", 12),
        ("retention.ms", "-1", -1),
        ("compression.gzip.level", "-1", -1),
        ("compression.zstd.level", "-131072", -131072),
        ("segment.bytes", "1024", 1024),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,12:3", ("0:1", "12:3")),
        ("remote.storage.enable", "false", False),
        ("local.retention.ms", "-2", -2),
        ("min.cleanable.dirty.ratio", "0.01", 0.01),
    ],
)
def test_accepted_values(name: str, value: str, parsed: object) -> None:
    validate(name, value)
    assert getattr(resolve({name: value}), name.replace(".", "_")) == parsed


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("retention.ms", "-2", "a whole number of at least -1"),
        ("retention.ms", "7d", "a whole number of at least -1"),
        ("retention.ms", "1_000", "a whole number of at least -1"),
        ("retention.ms", "", "a whole number of at least -1"),
        ("retention.ms", str(2**63), "a whole number of at least -1"),
        ("segment.bytes", str(2**31), "a whole number of at least 1024"),
        ("segment.bytes", "1023", "a whole number of at least 1024"),
        ("cleanup.policy", "shred", "a list of compact, delete, each at most once"),
        ("cleanup.policy", "delete,delete", "a list of compact, delete, each at most once"),
        ("cleanup.policy", "delete,", "a list of compact, delete, each at most once"),
        ("compression.type", "none", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "-1 or a whole number from 1 to 9"),
        ("compression.lz4.level", "18", "a whole number from 1 to 17"),
        ("min.cleanable.dirty.ratio", "1.1", "a number between 0 and 1"),
        ("min.cleanable.dirty.ratio", "nan", "a number between 0 and 1"),
        ("preallocate", "yes", "true or false"),
        ("remote.storage.enable", "true", "false (this broker has no tiered storage)"),
        ("flush", "never", "one of ack, interval"),
        ("follower.replication.throttled.replicas", "0-1", "*, or a list such as"),
    ],
)
def test_refused_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    assert f"Invalid value {value!r} for {name}: it must be {allowed}" in refusal(name, value)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    message = refusal("retention.mss", "1")
    assert message == "Unknown topic config 'retention.mss'. Did you mean retention.ms?"
    assert refusal("zzz", "1") == "Unknown topic config 'zzz'."
    with pytest.raises(ApiError, match=r"Did you mean segment\.bytes"):
        resolve({"segments.bytes": "1"})


def test_a_very_long_value_is_not_echoed_whole() -> None:
    assert len(refusal("retention.ms", "x" * 100_000)) < 400
    assert len(refusal("x" * 100_000, "1")) < 400


def test_compaction_lags_must_fit_together() -> None:
    with pytest.raises(ApiError, match=r"min.compaction.lag.ms \(10\) must not be above"):
        resolve({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})


def test_types_and_synonyms_are_those_that_clients_know() -> None:
    assert definition("retention.ms").type is ConfigType.LONG
    assert definition("segment.bytes").type is ConfigType.INT
    assert definition("cleanup.policy").type is ConfigType.LIST
    assert definition("min.cleanable.dirty.ratio").type is ConfigType.DOUBLE
    assert definition("retention.ms").synonyms == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )


@given(st.sampled_from(sorted(DEFINITIONS)), st.text(max_size=30))
def test_any_text_is_taken_or_refused_but_never_breaks(name: str, value: str) -> None:
    try:
        validate(name, value)
    except ApiError as error:
        assert error.code is ErrorCode.INVALID_CONFIG  # noqa: PT017 - most texts are refused
    else:
        resolve({name: value})


def described(settings: Settings) -> dict[str, broker_config.BrokerConfigEntry]:
    return {entry.name: entry for entry in broker_config.describe(settings)}


def test_a_broker_describes_its_settings_by_kafkas_names() -> None:
    entries = described(
        Settings(
            broker=BrokerSettings(port=19092, advertised_host="kafka.example", rack="east"),
            storage=StorageSettings(retention_ms=1000),
            replication=ReplicationSettings(unclean_leader_election=True),
        )
    )
    assert entries["listeners"].value == "PLAINTEXT://127.0.0.1:19092"
    assert entries["advertised.listeners"].value == "PLAINTEXT://kafka.example:19092"
    assert entries["broker.rack"].value == "east"
    assert entries["auto.create.topics.enable"].value == "true"
    assert entries["unclean.leader.election.enable"].value == "true"
    assert entries["socket.send.buffer.bytes"].value == "-1"
    assert entries["node.id"].type is ConfigType.INT
    assert not entries["log.retention.ms"].is_default
    assert not entries["log.retention.ms"].read_only
    assert entries["num.partitions"].is_default
    assert entries["num.partitions"].read_only


def test_a_broker_describes_each_config_once_and_in_order() -> None:
    names = [entry.name for entry in broker_config.describe(Settings())]
    assert names == sorted(set(names))
    assert all(entry.is_default for entry in broker_config.describe(Settings()))


def test_an_ipv6_listener_is_bracketed() -> None:
    assert broker_config_table.listener("INSIDE", "::1", 9092) == "INSIDE://[::1]:9092"


def test_a_broker_describes_all_its_listeners() -> None:
    listeners = (
        ListenerSettings(name="A", host="10.0.0.1", port=1),
        ListenerSettings(name="B", host="0.0.0.0", port=2, advertised_host="b", advertised_port=3),
    )
    entries = described(Settings(listeners=listeners))
    assert entries["listeners"].value == "A://10.0.0.1:1,B://0.0.0.0:2"
    assert entries["advertised.listeners"].value == "A://10.0.0.1:1,B://b:3"


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        (
            "num.partitions",
            "3",
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            "log.cleaner.enable",
            "true",
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically",
        ),
        (
            "quota.window.num",
            "3",
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically",
        ),
        (
            "max.connections",
            "3",
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically",
        ),
        (
            "log.retention.ms",
            "x",
            ErrorCode.INVALID_REQUEST,
            "Invalid value 'x' for log.retention.ms",
        ),
        ("sasl.kerberos.min.time.before.relogin", "x", ErrorCode.INVALID_REQUEST, "a whole number"),
        ("log.cleaner.threads", "3000000000", ErrorCode.INVALID_REQUEST, "a whole number"),
        ("log.cleaner.io.buffer.load.factor", "much", ErrorCode.INVALID_REQUEST, "a number"),
        ("leader.replication.throttled.rate", "-1", ErrorCode.INVALID_REQUEST, "at least 0"),
        ("follower.replication.throttled.rate", "-1", ErrorCode.INVALID_REQUEST, "at least 0"),
        (
            "ssl.keystore.type",
            "JKS",
            ErrorCode.INVALID_REQUEST,
            "listener.name.NAME.ssl.keystore.type",
        ),
        ("log.retention.m", "1", ErrorCode.INVALID_CONFIG, "Did you mean log.retention.ms?"),
        ("listener.name.internal.nonsense", "1", ErrorCode.INVALID_CONFIG, "Unknown broker config"),
    ],
)
def test_a_broker_refuses(name: str, value: str, code: int, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        broker_config.validate_broker(name, value, of_all=False)
    assert caught.value.code == code
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("name", "value", "of_all"),
    [
        ("log.cleaner.threads", "2", True),
        ("sasl.kerberos.min.time.before.relogin", "1000", False),
        ("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", True),
        ("metric.reporters", "", True),
        ("listener.name.internal.ssl.keystore.type", "JKS", False),
        ("listener.name.internal.max.connections", "5", True),
        ("leader.replication.throttled.rate", "1000", True),
    ],
)
def test_a_broker_keeps_what_has_no_effect(name: str, value: str, of_all: bool) -> None:
    known = broker_config.validate_broker(name, value, of_all=of_all)
    assert (known.name, known.documentation) == (name, broker_config.NO_EFFECT)


@pytest.mark.parametrize(
    "name",
    ["sasl.kerberos.min.time.before.relogin", "listener.name.internal.ssl.keystore.type"],
)
def test_what_is_of_one_broker_is_not_of_all(name: str) -> None:
    broker_config.validate_broker(name, "5", of_all=False)
    with pytest.raises(ApiError, match="all brokers at once") as caught:
        broker_config.validate_broker(name, "5", of_all=True)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_every_name_of_kafka_is_of_one_kind() -> None:
    kinds = [broker_config.INHERITED, broker_config.OWN, broker_config.KEPT]
    names = [name for kind in kinds for name in kind]
    assert len(names) == len(set(names))
    assert not set(names) & broker_config.STATIC_NAMES
    assert not set(names) & READ_ONLY
    assert set(names) | broker_config.STATIC_NAMES >= DYNAMIC_TYPES.keys()


def test_altered_broker_configs_become_defaults_of_topics() -> None:
    broker_config.validate_broker("message.max.bytes", "2000000", of_all=True)
    altered = {"message.max.bytes": "2000000", "log.retention.ms": "5", "num.partitions": "3"}
    topic_defaults = broker_config.inherited(altered)
    assert topic_defaults == {"max.message.bytes": "2000000", "retention.ms": "5"}
    assert resolve({}, {**defaults_from(Settings()), **topic_defaults}).retention_ms == 5


def test_a_deadline_for_compaction_seals_segments_of_compacted_topics_only() -> None:
    lag = {"max.compaction.lag.ms": "5000", "segment.ms": "9000"}
    assert resolve(lag).seal_after_ms == 9000
    assert resolve({**lag, "cleanup.policy": "compact"}).seal_after_ms == 5000
    assert resolve({**lag, "cleanup.policy": "compact,delete"}).seal_after_ms == 5000
    longer = {**lag, "cleanup.policy": "compact", "segment.ms": "4000"}
    assert resolve(longer).seal_after_ms == 4000
