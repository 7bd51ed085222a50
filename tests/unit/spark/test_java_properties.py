"""Tests settings under their Java names, which jobs for Spark's own connector use.

`java_names.txt` has every name of the consumer (c), producer (p) and admin client (a) of Kafka 3.9
and 4.3, and a value; `tests/compat/test_java_names.py` compares it with Java's own lists.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.spark import client_properties as properties
from barnabas.spark.client_properties import (
    Side,
    client_properties,
    is_direct,
    request_timeout_s,
    security_of,
)
from barnabas.spark.query_errors import OptionError
from barnabas.spark.settings import java_properties as java
from barnabas.spark.sink import sink_options
from barnabas.spark.sink.sink_options import parse_options
from barnabas.spark.source import lookups
from barnabas.spark.source.source_options import parse_batch

BROKERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
REFUSED = java.REFUSED.keys() | {"ssl.truststore.location", "ssl.truststore.password"}
SCRAM = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required\n"
    ' username="ada" password="s3\\"cret; x";'
)
KERBEROS = (
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
    "keyTab='/etc/ada.keytab' principal=\"ada@EXAMPLE\";"
)


class JavaName(NamedTuple):
    """A setting of the Java clients."""

    name: str
    clients: str
    value: str


NAMES = [
    JavaName(*line.split(" ", 2))
    for line in (Path(__file__).parent / "java_names.txt").read_text().splitlines()
]


def read(**settings: str) -> dict[str, str]:
    return client_properties({**BROKERS, **{f"kafka.{k}": v for k, v in settings.items()}})


def write(**settings: str) -> dict[str, str]:
    named = {f"kafka.{name}": value for name, value in settings.items()}
    return client_properties({**BROKERS, **named}, Side.WRITE)


def refusal(check: Callable[[], object]) -> str:
    """Return the error of a check, or nothing if it passes."""
    try:
        check()
    except OptionError as error:
        return str(error)
    return ""


def with_setting(setting: JavaName) -> dict[str, str]:
    """Return options with a setting, and with a setting that it requires."""
    password = {"kafka.ssl.keystore.password": "x"} if "keystore.location" in setting.name else {}
    return {**BROKERS, **password, f"kafka.{setting.name}": setting.value}


def remedy_is_named(message: str) -> bool:
    return any(word in message for word in ("leave it out", "use ", "name ", "set ", "write "))


@pytest.mark.parametrize("setting", NAMES, ids=lambda setting: setting.name)
def test_a_read_takes_every_name_or_says_what_to_write(setting: JavaName) -> None:
    options = {**with_setting(setting), "subscribe": "t"}
    said = refusal(lambda: lookups.check_properties(parse_batch(options).client))
    is_refused = setting.name in REFUSED - java.PRODUCER
    assert (bool(said), remedy_is_named(said)) == (is_refused, is_refused), said


@pytest.mark.parametrize("setting", NAMES, ids=lambda setting: setting.name)
def test_a_write_takes_every_name_or_says_what_to_write(setting: JavaName) -> None:
    options = {**with_setting(setting), "topic": "t"}
    said = refusal(lambda: sink_options.check_properties(parse_options(options)))
    is_refused = setting.name in REFUSED - java.CONSUMER
    assert (bool(said), remedy_is_named(said)) == (is_refused, is_refused), said


def test_every_name_is_in_one_table() -> None:
    tables = [java.SAME, java.RENAMED, java.TRANSLATED, java.NO_EFFECT, java.REFUSED]
    for setting in NAMES:
        assert sum(setting.name in table for table in tables) == 1, setting.name
    assert set().union(*tables) == {setting.name for setting in NAMES}
    assert {each.name for each in NAMES if each.clients in {"c", "ac"}} == java.CONSUMER
    assert {each.name for each in NAMES if each.clients in {"p", "ap"}} == java.PRODUCER


def test_a_setting_without_effect_is_reported_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(properties, "_warned", set())
    with caplog.at_level(logging.WARNING, logger="barnabas.spark"):
        for _ in range(2):
            assert "metrics.num.samples" not in read(**{"metrics.num.samples": "3"})
    assert [each.getMessage() for each in caplog.records if "num.samples" in each.getMessage()] == [
        "Option kafka.metrics.num.samples has no effect: set kafka.statistics.interval.ms for "
        "librdkafka's statistics"
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"fetch.max.wait.ms": "100"}, {"fetch.wait.max.ms": "100"}),
        ({"receive.buffer.bytes": "-1"}, {"socket.receive.buffer.bytes": "0"}),
        ({"connections.max.idle.ms": "-1"}, {"connections.max.idle.ms": "0"}),
        ({"request.timeout.ms": "5000"}, {"socket.timeout.ms": "5000"}),
        ({"request.timeout.ms": "600000"}, {"socket.timeout.ms": "300000"}),
        (
            {"request.timeout.ms": "5000", "socket.timeout.ms": "7000"},
            {"socket.timeout.ms": "7000"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"},
            {"ssl.ca.location": "ca.pem"},
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "me.pem"},
            {"ssl.certificate.location": "me.pem", "ssl.key.location": "me.pem"},
        ),
        (
            {"ssl.keystore.location": "me.p12", "ssl.keystore.type": "pkcs12"},
            {"ssl.keystore.location": "me.p12"},
        ),
        (
            {"sasl.jaas.config": SCRAM, "sasl.mechanism": "SCRAM-SHA-256"},
            {
                "sasl.username": "ada",
                "sasl.password": 's3"cret; x',
                "sasl.mechanism": "SCRAM-SHA-256",
            },
        ),
        (
            {"sasl.jaas.config": KERBEROS},
            {"sasl.kerberos.keytab": "/etc/ada.keytab", "sasl.kerberos.principal": "ada@EXAMPLE"},
        ),
    ],
)
def test_what_a_setting_becomes(given: dict[str, str], expected: dict[str, str]) -> None:
    assert read(**given) == {"bootstrap.servers": "127.0.0.1:9092", **expected}


def test_what_a_setting_of_a_write_becomes() -> None:
    found = write(
        **{
            "buffer.memory": "33554432",
            "max.request.size": "2000000",
            "request.timeout.ms": "5000",
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "compression.gzip.level": "9",
        }
    )
    del found["bootstrap.servers"]
    assert found == {
        "queue.buffering.max.kbytes": "32768",
        "message.max.bytes": "2000000",
        "request.timeout.ms": "5000",
        "socket.timeout.ms": "5000",
        "compression.type": "zstd",
        "compression.level": "7",
    }


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"ssl.truststore.location": "ca.jks"}, "keytool -list -rfc"),
        ({"ssl.truststore.password": "x"}, "kafka.ssl.ca.location"),
        ({"ssl.keystore.location": "me.jks", "ssl.keystore.type": "JKS"}, "deststoretype PKCS12"),
        ({"sasl.jaas.config": "com.example.OwnLoginModule required a=b;"}, "OwnLoginModule"),
        ({"sasl.jaas.config": "x.PlainLoginModule required username=u;"}, "lacks username or"),
        ({"sasl.jaas.config": SCRAM[:-1] + ' tokenauth="true";'}, "delegation token"),
        ({"request.timeout.ms": "soon"}, "whole number from 1 on"),
    ],
)
def test_what_cannot_be_translated_is_refused(given: dict[str, str], remedy: str) -> None:
    with pytest.raises(OptionError, match=remedy):
        read(**given)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(OptionError) as refusal:
        read(**{"sasl.jaas.config": 'PlainLoginModule username="ada" password="hunter2"'})
    assert "hunter2" not in str(refusal.value)


def test_one_dict_serves_read_and_write() -> None:
    both = {
        **BROKERS,
        "subscribe": "in",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "100",
        "kafkaConsumer.pollTimeoutMs": "5000",
        "fetchOffset.numRetries": "1",
        "failOnDataLoss": "false",
        "includeHeaders": "true",
        "topic": "out",
        "exactlyOnce": "true",
        "txnAppId": "job",
        "txnVersion": "1",
        "checkpointLocation": "there",
        "kafka.group.id": "g",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "500",
        "kafka.acks": "all",
        "kafka.compression.type": "lz4",
        "kafka.linger.ms": "5",
        "kafka.buffer.memory": "33554432",
        "kafka.transaction.timeout.ms": "60000",
    }
    settings, sink = parse_batch(both), parse_options(both)
    lookups.check_properties(settings.client)
    sink_options.check_properties(sink)
    assert (settings.is_read_committed, settings.group_id) == (True, "g")
    assert (sink.topic, sink.transaction_timeout_ms) == ("out", 60_000)
    assert "linger.ms" not in settings.client
    assert "group.id" not in sink.properties


def test_a_login_of_java_is_one_of_our_own_connections() -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
    found = read(**given, **{"sasl.jaas.config": SCRAM})
    security = security_of(found)
    assert is_direct(found)
    assert security is not None
    assert security.login is not None
    assert security_of(read()) is None


def test_kerberos_is_left_to_librdkafka() -> None:
    found = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    assert not is_direct(found)


def test_how_long_an_answer_may_take() -> None:
    assert request_timeout_s(read(), 15.0) == 15.0
    assert request_timeout_s(read(**{"request.timeout.ms": "2500"}), 15.0) == 2.5
