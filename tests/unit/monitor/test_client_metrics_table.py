"""Tests how pushes of clients become series: the protocol, and the table of clients."""

import json
import math
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.exporter.client_series import client_families
from barnabas.exporter.series_text import page
from barnabas.monitor.client_metrics import ClientMetricsTable, ClientSeries, metric_name
from barnabas.monitor.otlp_metrics import OtlpError, Point, points
from barnabas.protocol.compression import Codec, compress

INTERVAL_MS = 10_000
RATE = "org.apache.kafka.producer.record.send.rate"
SENT = "org.apache.kafka.producer.record.send.total"


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(key: str, value: str) -> bytes:
    return message(7, message(1, key.encode()) + message(2, message(1, value.encode())))


def point(value: float, **attributes: str) -> bytes:
    given = b"".join(attribute(key, text) for key, text in attributes.items())
    number = varint(6 << 3 | 1) + pack("<q", value) if isinstance(value, int) else b""
    real = b"" if number else varint(4 << 3 | 1) + pack("<d", value)
    return message(1, varint(3 << 3 | 1) + bytes(8) + given + number + real)


def gauge(name: str, *found: bytes) -> bytes:
    return message(2, message(1, name.encode()) + message(5, b"".join(found)))


def total(name: str, *found: bytes, temporality: int = 1) -> bytes:
    data = b"".join(found) + varint(2 << 3) + varint(temporality) + varint(3 << 3) + b"\x01"
    return message(2, message(1, name.encode()) + message(7, data))


def pushed(*metrics: bytes) -> bytes:
    resource = message(1, attribute("ignored", "resource"))
    scope = message(1, message(1, b"scope")) + b"".join(metrics)
    return message(1, resource + message(2, scope))


def key(
    client: str = "shop", instance: str = "i1", *, codec: int = 0, is_last: bool = False
) -> bytes:
    facts = {
        "client_instance_id": instance,
        "client_id": client,
        "codec": codec,
        "interval_ms": INTERVAL_MS,
        "is_last": is_last,
    }
    return json.dumps(facts).encode()


def series(table: ClientMetricsTable) -> list[tuple[str, str, float]]:
    return [(each.name, each.client_id, each.value) for each in table.series()]


def test_gauges_and_sums_are_read() -> None:
    content = pushed(
        gauge(RATE, point(1.5, topic="orders"), point(2)), total(SENT, point(7)), message(9, b"")
    )
    assert points(content) == [
        Point(RATE, 1.5, {"topic": "orders"}, is_sum=False, is_delta=False),
        Point(RATE, 2.0, {}, is_sum=False, is_delta=False),
        Point(SENT, 7.0, {}, is_sum=True, is_delta=True),
    ]


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_or_have_no_points(content: bytes) -> None:
    try:
        assert isinstance(points(content), list)
    except OtlpError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


@given(st.integers(0, 100), st.binary(min_size=1, max_size=3))
def test_damaged_pushes_raise_nothing_else(place: int, damage: bytes) -> None:
    content = bytearray(pushed(gauge(RATE, point(1.5, topic="orders")), total(SENT, point(7))))
    content[place : place + len(damage)] = damage
    table = ClientMetricsTable()
    table.apply(key(), bytes(content), 0.0)
    assert table.refused in (0, 1)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_push_becomes_series_of_its_client_id(codec: Codec) -> None:
    table = ClientMetricsTable()
    content = pushed(gauge(RATE, point(1.5)), total(SENT, point(7)))
    table.apply(key(codec=codec), compress(codec, content), 0.0)
    assert table.series() == [
        ClientSeries("kafka_client_producer_record_send_rate", "shop", 1.5, is_counter=False),
        ClientSeries("kafka_client_producer_record_send_total", "shop", 7.0, is_counter=True),
    ]


def test_counts_add_up_over_pushes_and_instances_and_gauges_show_the_largest() -> None:
    table = ClientMetricsTable()
    for instance, rate, sent in (("i1", 1.0, 5), ("i2", 9.0, 2), ("i1", 3.0, 4)):
        content = pushed(gauge(RATE, point(rate)), total(SENT, point(sent)))
        table.apply(key(instance=instance), content, 0.0)
    assert series(table) == [
        ("kafka_client_producer_record_send_rate", "shop", 9.0),
        ("kafka_client_producer_record_send_total", "shop", 11.0),
    ]


def test_counts_since_the_start_of_a_client_are_not_added_twice() -> None:
    table = ClientMetricsTable()
    for sent in (5, 8, 3):  # it started again before the last one
        table.apply(key(), pushed(total(SENT, point(sent), temporality=2)), 0.0)
    assert series(table) == [("kafka_client_producer_record_send_total", "shop", 11.0)]


@pytest.mark.parametrize("instances", [("idle", "busy"), ("busy", "idle")])
def test_what_an_instance_has_not_measured_hides_nothing(instances: tuple[str, str]) -> None:
    """Java sends NaN for averages and maxima of nothing."""
    table = ClientMetricsTable()
    for instance in instances:
        rate, sent = (math.nan, math.nan) if instance == "idle" else (9.0, 2.0)
        content = pushed(gauge(RATE, point(rate)), total(SENT, point(sent), temporality=2))
        table.apply(key(instance=instance), content, 0.0)
    assert series(table) == [
        ("kafka_client_producer_record_send_rate", "shop", 9.0),
        ("kafka_client_producer_record_send_total", "shop", 2.0),
    ]


def test_a_client_is_forgotten_two_intervals_after_its_last_push() -> None:
    table = ClientMetricsTable()
    table.apply(key(), pushed(total(SENT, point(5))), 0.0)
    table.apply(key("other", "i2"), pushed(total(SENT, point(1))), 15.0)
    table.forget(20.0)
    assert [client for _, client, _ in series(table)] == ["other", "shop"]
    table.forget(20.1)
    assert [client for _, client, _ in series(table)] == ["other"]


def test_a_client_that_ends_is_forgotten_at_once() -> None:
    table = ClientMetricsTable()
    table.apply(key(is_last=True), pushed(gauge(RATE, point(1.0))), 0.0)
    table.forget(0.1)
    assert series(table) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (None, b""),
        (b"", b""),
        (b"[]", b""),
        (b"{}", b""),
        (b"[" * 50_000, b""),
        (key(codec=9), b""),
        (key(codec=4), b"not zstd"),
        (key(), b"\x0a\xff"),
        (key().replace(b"10000", b'"soon"'), b""),
    ],
)
def test_records_that_are_no_pushes_are_counted(name: bytes | None, content: bytes) -> None:
    table = ClientMetricsTable()
    table.apply(name, content, 0.0)
    assert (series(table), table.refused) == ([], 1)


def test_series_become_families_by_name() -> None:
    table = ClientMetricsTable()
    for client in ("shop", "till"):
        content = pushed(gauge(RATE, point(1.5)), total(SENT, point(7)))
        table.apply(key(client, client), content, 0.0)
    assert page(client_families(table.series())).splitlines()[1:4] == [
        "# TYPE kafka_client_producer_record_send_rate gauge",
        'kafka_client_producer_record_send_rate{client_id="shop"} 1.5',
        'kafka_client_producer_record_send_rate{client_id="till"} 1.5',
    ]


def test_names_are_those_of_prometheus() -> None:
    assert metric_name("org.apache.kafka.consumer.fetch.latency.max") == (
        "kafka_client_consumer_fetch_latency_max"
    )
    assert metric_name("app.ünïcode-name") == "kafka_client_app_n_code_name"
