"""Tests that invalid options are refused with the fix in the message."""

import pytest

from barnabas.protocol.compression import Codec
from barnabas.spark.query_errors import OptionError
from barnabas.spark.sink.sink_options import check_properties, parse_options

BOOTSTRAP = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def test_defaults_are_exactly_once() -> None:
    options = parse_options(BOOTSTRAP)
    assert options.exactly_once
    assert options.include_headers
    assert options.topic is None
    assert options.delivery.acks == -1
    assert options.delivery.codec is Codec.NONE
    check_properties(options)


def test_names_are_taken_in_any_case() -> None:
    options = parse_options({**BOOTSTRAP, "EXACTLYONCE": "False", "Kafka.Acks": "1"})
    assert not options.exactly_once
    assert options.delivery.acks == 1


def test_properties_reach_the_delivery() -> None:
    options = parse_options(
        {
            **BOOTSTRAP,
            "kafka.compression.type": "zstd",
            "kafka.compression.level": "5",
            "kafka.batch.size": "16384",
            "kafka.delivery.timeout.ms": "5000",
            "kafka.max.in.flight.requests.per.connection": "9",
            "kafka.linger.ms": "50",
            "kafka.transaction.timeout.ms": "60000",
        }
    )
    check_properties(options)
    delivery = options.delivery
    assert (delivery.codec, delivery.level) == (Codec.ZSTD, 5)
    assert (options.batch_bytes, options.transaction_timeout_ms) == (16384, 60000)
    assert (delivery.delivery_timeout_ms, delivery.in_flight_max) == (5000, 5)


def test_an_application_and_its_version() -> None:
    options = parse_options({**BOOTSTRAP, "txnAppId": "nightly", "txnVersion": "12"})
    assert options.application == ("nightly", 12)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"kafka.bootstrap.servers": " "}, "kafka.bootstrap.servers is missing"),
        ({"topics": "t"}, "did you mean topic?"),
        ({"bootstrap.servers": "h:1"}, "kafka.bootstrap.servers"),
        ({"acks.all": "1"}, "begin with kafka."),
        ({"exactlyOnce": "yes"}, "true or false"),
        ({"topic": " "}, "topic is empty"),
        ({"kafka.compression.type": "brotli"}, "gzip"),
        ({"kafka.acks": "2"}, "all, 1 or 0"),
        ({"kafka.acks": "1"}, "exactlyOnce=false"),
        ({"kafka.batch.size": "many"}, "whole number"),
        ({"kafka.batch.size": "0"}, "at least 1"),
        ({"kafka.buffer.memory": "1"}, "kafka.queue.buffering.max.kbytes"),
        ({"kafka.sasl.jaas.config": "x"}, "kafka.sasl.username"),
        ({"kafka.key.serializer": "x"}, "cast column key"),
        ({"kafka.transactional.id": "x"}, "transactionalIdPrefix"),
        ({"kafka.enable.idempotence": "false"}, "exactlyOnce=false"),
        ({"kafka.security.protocol": "SASL_SSL"}, "exactlyOnce=false"),
        ({"txnAppId": "a"}, "set both"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "txnVersion"),
        ({"txnAppId": "a", "txnVersion": "1", "exactlyOnce": "false"}, "exactlyOnce=true"),
    ],
)
def test_wrong_options_name_the_remedy(wrong: dict[str, str], remedy: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options({**BOOTSTRAP, **wrong})
    assert remedy in str(caught.value)


def test_a_property_that_librdkafka_does_not_know() -> None:
    options = parse_options({**BOOTSTRAP, "kafka.linger.msec": "1"})
    with pytest.raises(OptionError, match=r"linger\.msec"):
        check_properties(options)
