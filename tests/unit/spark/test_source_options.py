"""Tests the options of a read: their effects, and errors with a fix."""

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import OptionError
from barnabas.spark.source.lookups import check_properties, covers
from barnabas.spark.source.source_options import (
    Assign,
    AtOffsets,
    AtTimes,
    Edge,
    ReadSettings,
    Subscribe,
    SubscribePattern,
    duration_ms,
    parse_batch,
    parse_stream,
)

BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def batch(**options: str) -> ReadSettings:
    return parse_batch({**BASE, **options})


def stream(**options: str) -> ReadSettings:
    return parse_stream({**BASE, **options})


def test_a_batch_reads_all_by_default_and_a_stream_what_is_new() -> None:
    assert (batch().starting, batch().ending) == (Edge(-2), Edge(-1))
    assert stream().starting == Edge(-1)


def test_bootstrap_is_found_under_both_names() -> None:
    plain = parse_batch({"bootstrap.servers": "b:1", "subscribe": "t"})
    assert plain.client == {"bootstrap.servers": "b:1"}
    assert batch().client == {"bootstrap.servers": "127.0.0.1:9092"}


def test_names_are_understood_in_any_case() -> None:
    settings = parse_batch(
        {"KAFKA.Bootstrap.Servers": "b:1", "SubScribe": "t", "FAILONDATALOSS": "FALSE"}
    )
    assert not settings.fail_on_data_loss
    assert settings.subscription == Subscribe(frozenset({"t"}))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("subscribe", "a, b,c ", Subscribe(frozenset("abc"))),
        ("subscribePattern", "gpu-.*", SubscribePattern("gpu-.*")),
        (
            "assign",
            '{"a": [0, 2]}',
            Assign(frozenset({TopicPartition("a", 0), TopicPartition("a", 2)})),
        ),
    ],
)
def test_what_to_read(name: str, text: str, expected: object) -> None:
    settings = parse_batch({"kafka.bootstrap.servers": "b:1", name: text})
    assert settings.subscription == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "Earliest"}, Edge(-2)),
        (
            {"startingOffsets": '{"orders": {"0": 12, "1": -2}}'},
            AtOffsets(
                "startingOffsets",
                {TopicPartition("orders", 0): 12, TopicPartition("orders", 1): -2},
            ),
        ),
        (
            {"startingOffsetsByTimestamp": '{"orders": {"0": 1700}}'},
            AtTimes("startingOffsetsByTimestamp", {TopicPartition("orders", 0): 1700}),
        ),
        (
            {"startingTimestamp": "1700", "startingOffsets": "earliest"},
            AtTimes("startingTimestamp", 1700),
        ),
        (
            {"startingOffsetsByTimestamp": '{"orders": {"0": 1}}', "startingOffsets": "earliest"},
            AtTimes("startingOffsetsByTimestamp", {TopicPartition("orders", 0): 1}),
        ),
    ],
)
def test_starts(options: dict[str, str], expected: object) -> None:
    assert batch(**options).starting == expected


def test_all_limits_and_counts() -> None:
    settings = stream(
        maxOffsetsPerTrigger="100",
        minOffsetsPerTrigger="10",
        maxTriggerDelay="30s",
        minPartitions="4",
        maxRecordsPerPartition="50",
        includeHeaders="true",
        startingOffsetsByTimestampStrategy="latest",
    )
    assert settings.max_offsets_per_trigger == 100
    assert settings.min_offsets_per_trigger == 10
    assert settings.max_trigger_delay_ms == 30_000
    assert settings.min_partitions == 4
    assert settings.max_records_per_partition == 50
    assert settings.include_headers
    assert settings.none_from_time_is_latest


@pytest.mark.parametrize(
    ("options", "group"),
    [
        ({}, "barnabas-spark-orders"),
        ({"groupIdPrefix": "night"}, "night-orders"),
        ({"kafka.group.id": "mine", "groupIdPrefix": "night"}, "mine"),
    ],
)
def test_the_group_that_shows_the_progress(options: dict[str, str], group: str) -> None:
    assert stream(**options).group_id == group


def test_look_ups_need_not_be_tried_again() -> None:
    settings = stream(**{"fetchOffset.numRetries": "0", "fetchOffset.retryIntervalMs": "0"})
    assert (settings.lookup_retries, settings.lookup_pause_ms) == (0, 0)


def test_how_long_a_task_tries() -> None:
    assert stream().patience_ms == 120_000
    assert stream(**{"kafka.default.api.timeout.ms": "9000"}).patience_ms == 9000
    given = {"kafkaConsumer.pollTimeoutMs": "7000", "kafka.default.api.timeout.ms": "9000"}
    assert stream(**given).patience_ms == 7000


def test_transactions_in_progress_are_shown_unless_asked_otherwise() -> None:
    assert not batch().is_read_committed
    assert batch(**{"kafka.isolation.level": "read_committed"}).is_read_committed


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"frobnicate": "1"}, "no option 'frobnicate'"),
        ({"startingOffsets": "latest"}, "cannot be latest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "cannot be latest"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "cannot be earliest"),
        ({"startingOffsets": "yesterday"}, "write it like"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "write -2 or more"),
        ({"startingOffsets": '{"orders": {"0": 1.5}}'}, "not a whole number"),
        ({"startingOffsets": '{"orders": [1]}'}, "write it like"),
        ({"startingTimestamp": "2024-01-01"}, "milliseconds since 1970"),
        ({"failOnDataLoss": "maybe"}, "write true or false"),
        ({"minPartitions": "0"}, "from 1 on"),
        ({"maxPartitions": "0"}, "from 1 on"),
        ({"maxPartitions": "2", "minPartitions": "4"}, "minPartitions raises it; leave one"),
        ({"maxPartitions": "2", "maxRecordsPerPartition": "9"}, "PerPartition raises it; leave"),
        ({"maxRecordsPerPartition": "many"}, "from 1 on"),
        ({"maxTriggerDelay": "soon"}, "write a duration"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "write error or latest"),
        ({"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"}, "lower the one"),
        ({"fetchOffset.numRetries": "-1"}, "from 0 on"),
        ({"subscribePattern": ".*"}, "one of the options assign, subscribe and"),
        ({"kafka.isolation.level": "serializable"}, "read_committed or read_uncommitted"),
        ({"kafka.sasl.jaas.config": "x"}, "kafka.sasl.username"),
        ({"kafka.ssl.truststore.location": "x"}, "kafka.ssl.ca.location"),
        ({"kafka.key.deserializer": "x"}, "cast, from_json"),
        ({"kafka.auto.offset.reset": "latest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(options: dict[str, str], remedy: str) -> None:
    with pytest.raises(OptionError, match=remedy):
        batch(**options)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match="a stream has no end"):
        stream(**{name: "latest"})


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": "b:1"}, "none is given"),
        ({"kafka.bootstrap.servers": "b:1", "topic": "t"}, "topic is for writes"),
        ({"kafka.bootstrap.servers": "b:1", "subscribe": " , "}, "names no topic"),
        ({"kafka.bootstrap.servers": "b:1", "subscribePattern": "("}, "regular expression"),
        ({"kafka.bootstrap.servers": "b:1", "assign": '{"t": ["x"]}'}, "write it like"),
        ({"kafka.bootstrap.servers": "b:1", "assign": "{}"}, "names no partition"),
    ],
)
def test_what_is_missing_is_named(options: dict[str, str], remedy: str) -> None:
    with pytest.raises(OptionError, match=remedy):
        parse_batch(options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 500), ("10s", 10_000), ("15m", 900_000), ("1h", 3_600_000), ("7", 7)],
)
def test_durations_are_written_as_spark_does(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


def test_properties_that_librdkafka_does_not_know_are_refused() -> None:
    check_properties({"bootstrap.servers": "b:1", "client.id": "me"})
    with pytest.raises(OptionError, match=r"no\.such\.thing"):
        check_properties({"no.such.thing": "1"})


def test_a_pattern_does_not_match_internal_topics() -> None:
    names = ("orders", "__orders", "__consumer_offsets", "__transaction_state")
    pattern = SubscribePattern(".*")
    assert [name for name in names if covers(pattern, TopicPartition(name, 0))] == [
        "orders",
        "__orders",
    ]
