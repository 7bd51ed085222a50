"""Tests reading, tailing, exporting and sending of records through the console, with a broker."""

import base64
import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.cli.records.input_lines import parse_json
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from tests.support.console.running_console import Event, RunningConsole

PATIENCE_S = 30.0
BYTES = bytes(range(256))

NewTopicOf = Callable[..., str]


def fill(producer: Producer, topic: str, records: list[dict[str, Any]]) -> None:
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(PATIENCE_S) == 0


def search(console: RunningConsole, topic: str, **parameters: Any) -> tuple[list[Event], Event]:
    """Return the records of a search, and how it ended."""
    records = []
    with console.events("/api/messages", topic=topic, **parameters) as events:
        for event in events:
            if event.name == "record":
                records.append(event)
            elif event.name in {"done", "failed"}:
                return records, event
    raise AssertionError("the stream ended without a word")


def values(records: list[Event]) -> list[str]:
    return [record["value"]["text"] for record in records]


@pytest.fixture
def orders(new_topic: NewTopicOf, producer: Producer) -> str:
    """Ten orders on each of two partitions, a second apart."""
    topic = new_topic(2)
    fill(
        producer,
        topic,
        [
            {
                "key": f"k{number}",
                "value": f'{{"n": {number}, "city": "{"Zürich" if number % 2 else "Bern"}"}}',
                "partition": partition,
                "timestamp": 1_700_000_000_000 + 1000 * number,
                "headers": [("trace", f"id-{number}".encode()), ("none", None)],
            }
            for number in range(10)
            for partition in (0, 1)
        ],
    )
    return topic


def test_all_records_are_found_with_what_a_record_has(console: RunningConsole, orders: str) -> None:
    records, done = search(console, orders)
    assert len(records) == 20
    assert done["reason"] == "end"
    first = next(each for each in records if (each["partition"], each["offset"]) == (0, 0))
    assert first["key"]["text"] == "k0"
    assert first["value"]["encoding"] == "json"
    assert json.loads(first["value"]["text"]) == {"n": 0, "city": "Bern"}
    assert first["timestamp_ms"] == 1_700_000_000_000
    assert first["timestamp_type"] == "CreateTime"
    assert [header["name"] for header in first["headers"]] == ["trace", "none"]
    assert first["headers"][1]["value"]["encoding"] == "null"
    assert "bytes_base64" not in first["value"]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"from": "-3"}, {7, 8, 9}),
        ({"from": "7"}, {7, 8, 9}),
        ({"from": "end"}, set()),
        ({"from": "beginning", "until": "2"}, {0, 1}),
        ({"from": "2023-11-14T22:13:27Z"}, {7, 8, 9}),
        ({"from": "@1700000008000"}, {8, 9}),
        ({"until": "2023-11-14T22:13:22+00:00"}, {0, 1}),
        ({"from": "0:8,1:9"}, {8, 9}),
        ({"key": "k3"}, {3}),
        ({"key": "0x6b33"}, {3}),
        ({"value": "Zürich", "until": "4"}, {1, 3}),
        ({"header": "trace=id-5"}, {5}),
        ({"header": "absent"}, set()),
        ({"text": "ZÜRICH", "from": "-2"}, {9}),
        ({"cel": "value.n > 7"}, {8, 9}),
        ({"cel": 'value.city == "Bern" && offset < 4'}, {0, 2}),
        ({"cel": 'headers.trace == "id-6"'}, {6}),
        ({"cel": "value.missing == 1"}, set()),
        ({"key": "k1", "cel": "partition == 1"}, {1}),
    ],
)
def test_positions_and_filters_choose_records(
    console: RunningConsole, orders: str, parameters: dict[str, str], expected: set[int]
) -> None:
    records, done = search(console, orders, **parameters)
    assert {each["offset"] for each in records} == expected
    assert done["reason"] == "end"


def test_the_limit_ends_a_search_and_next_goes_on_without_a_gap(
    console: RunningConsole, orders: str
) -> None:
    first, done = search(console, orders, limit=7, cel="offset >= 0")
    assert (len(first), done["reason"]) == (7, "limit")
    seen = [(each["partition"], each["offset"]) for each in first]
    position = done["next"]
    while done["reason"] == "limit":
        more, done = search(console, orders, **{"from": position, "limit": 7})
        seen += [(each["partition"], each["offset"]) for each in more]
        position = done["next"]
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(10)]


def test_partitions_can_be_chosen(console: RunningConsole, orders: str) -> None:
    records, _ = search(console, orders, partitions="1")
    assert {each["partition"] for each in records} == {1}
    console.get("/api/messages", 404, topic=orders, partitions="7")
    console.get("/api/messages", 400, topic=orders, partitions="a")


@pytest.mark.parametrize(
    "parameters",
    [{"from": "soon"}, {"until": "-5"}, {"view": "picture"}, {"limit": "x"}, {"key": "k" * 2000}],
)
def test_a_wrong_request_is_refused_before_the_stream(
    console: RunningConsole, orders: str, parameters: dict[str, str]
) -> None:
    assert console.get("/api/messages", 400, topic=orders, **parameters)["error"]


def test_a_topic_that_does_not_exist_is_not_created(console: RunningConsole, admin: Any) -> None:
    assert "There is no topic ghost" in console.get("/api/messages", 404, topic="ghost")["error"]
    assert "ghost" not in admin.list_topics(timeout=PATIENCE_S).topics


def test_an_invalid_expression_says_why(console: RunningConsole, orders: str) -> None:
    _, end = search(console, orders, cel="value.n >")
    assert end.name == "failed"
    assert "not valid" in end["error"]


def test_an_expression_that_takes_too_long_is_stopped_and_the_console_lives(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic()
    numbers = json.dumps(list(range(1500)))
    fill(producer, topic, [{"value": numbers}] * 50)
    slow = "value.exists(a, value.exists(b, value.exists(c, a + b + c < 0)))"
    _, end = search(console, topic, cel=slow)
    assert end.name == "failed"
    assert "stopped after 2 s" in end["error"]
    assert console.get("/api/overview")["cluster_id"]


def test_errors_of_an_expression_are_counted(console: RunningConsole, orders: str) -> None:
    with console.events("/api/messages", topic=orders, cel="value.missing == 1") as events:
        said = [event for event in events if event.name == "progress"]
    assert (said[-1]["scanned"], said[-1]["matched"], said[-1]["errors"]) == (20, 0, 20)


def test_bytes_are_shown_as_json_text_hex_and_avro(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic()
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    target = io.BytesIO()
    fastavro.writer(target, schema, [{"a": 5}])
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, {"a": 7})
    framed = b"\0\0\0\0\x09" + body.getvalue()
    contents = [b'{"b":1.10,"a":[]}', b"plain", BYTES, None, target.getvalue(), framed, b"{broken"]
    fill(producer, topic, [{"value": content} for content in contents])
    records, _ = search(console, topic)
    encodings = [each["value"]["encoding"] for each in records]
    assert encodings == ["json", "text", "hex", "null", "hex", "hex", "text"]
    assert values(records)[0] == '{\n  "b": 1.10,\n  "a": []\n}'
    assert values(records)[2].startswith("00000000  00 01 02")
    avro, _ = search(console, topic, view="avro", schema=json.dumps(schema))
    assert json.loads(avro[4]["value"]["text"]) == [{"a": 5}]
    assert json.loads(avro[5]["value"]["text"]) == {"a": 7}
    assert avro[1]["value"]["encoding"] in {"hex", "avro"}
    hexed, _ = search(console, topic, view="hex", limit=1)
    assert hexed[0]["value"]["encoding"] == "hex"


def test_large_values_are_cut_in_lists_and_whole_alone(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic()
    fill(producer, topic, [{"value": "é" * 200_000}])
    (record,), _ = search(console, topic)
    assert record["value"]["truncated"] is True
    assert record["value"]["size_bytes"] == 400_000
    assert len(record["value"]["text"]) < 100_000
    one = console.get("/api/messages/one", topic=topic, partition=0, offset=0)
    assert one["value"]["truncated"] is False
    assert base64.b64decode(one["value"]["bytes_base64"]) == "é".encode() * 200_000


def test_aborted_records_and_markers_are_not_shown(
    console: RunningConsole, new_topic: NewTopicOf, broker: Broker
) -> None:
    topic = new_topic()
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(PATIENCE_S)
    for word, is_kept in (("lost", False), ("kept", True)):
        producer.begin_transaction()
        producer.produce(topic, word)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(PATIENCE_S)
    # The marker of the end is written after its answer.
    eventually(lambda: values(search(console, topic)[0]), PATIENCE_S)
    records, done = search(console, topic)
    assert values(records) == ["kept"]
    assert done["reason"] == "end"
    console.get("/api/messages/one", 404, topic=topic, partition=0, offset=1)


def test_compressed_batches_are_read(
    console: RunningConsole, new_topic: NewTopicOf, broker: Broker
) -> None:
    topic = new_topic()
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        packed = {"compression.type": codec, "linger.ms": 50, "log_level": 0}
        own = Producer({"bootstrap.servers": broker.bootstrap, **packed})
        fill(own, topic, [{"value": f"{codec}-{number}"} for number in range(20)])
    records, _ = search(console, topic, limit=100)
    assert len(set(values(records))) == 80


def test_a_tail_shows_new_records_and_goes_on_after_the_last_seen(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic(2)
    fill(producer, topic, [{"value": "old", "partition": 0}])
    with console.events("/api/messages/tail", topic=topic) as events:
        assert next(events).name == "progress"
        fill(producer, topic, [{"value": "a", "partition": 0}, {"value": "b", "partition": 1}])
        found = take(events, 2)
    assert sorted(values(found)) == ["a", "b"]
    fill(producer, topic, [{"value": "c", "partition": 0}, {"value": "d", "partition": 1}])
    seen = {"Last-Event-ID": str(found[-1].identity)}
    with console.events("/api/messages/tail", seen, topic=topic) as events:
        assert sorted(values(take(events, 2))) == ["c", "d"]
    # A page that saw only the first of the two gets the second again.
    seen = {"Last-Event-ID": str(found[0].identity)}
    with console.events("/api/messages/tail", seen, topic=topic) as events:
        assert sorted(values(take(events, 3))) == sorted(["c", "d", values(found)[1]])


def take(events: Iterator[Event], count: int) -> list[Event]:
    """Return the next records of a tail."""
    found: list[Event] = []
    while len(found) < count:
        event = next(events)
        assert event.name in {"record", "progress"}, event
        if event.name == "record":
            found.append(event)
    return found


def test_an_export_can_be_produced_again_byte_for_byte(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic()
    sent: list[dict[str, Any]] = [
        {"key": b"k", "value": b"text", "headers": [("a", b"1"), ("a", BYTES), ("b", None)]},
        {"key": BYTES, "value": None},
        {"key": None, "value": BYTES + b"\n"},
        {"key": b"", "value": 'ü\n"quoted"'.encode()},
    ]
    fill(producer, topic, sent)
    answer = console.raw("GET", "/api/messages/export", params={"topic": topic})
    assert answer.headers["content-disposition"] == f'attachment; filename="{topic}.jsonl"'
    found = [parse_json(line) for line in answer.content.splitlines()]
    assert [(each.key, each.value) for each in found] == [(s["key"], s["value"]) for s in sent]
    assert found[0].headers == sent[0]["headers"]


def test_an_export_as_csv_has_a_row_each_and_no_formulas(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer
) -> None:
    topic = new_topic()
    contents = ["=1+1", "-5", '"quoted",\nline', BYTES]
    fill(producer, topic, [{"value": content} for content in contents])
    answer = console.raw("GET", "/api/messages/export", params={"topic": topic, "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [row["value"] for row in rows[:3]] == ["'=1+1", "-5", '"quoted",\nline']
    assert rows[3]["value_encoding"] == "base64"
    assert base64.b64decode(rows[3]["value"]) == BYTES
    console.get("/api/messages/export", 400, topic=topic, format="pdf")


def test_an_export_obeys_filters_and_its_limit(console: RunningConsole, orders: str) -> None:
    answer = console.raw(
        "GET", "/api/messages/export", params={"topic": orders, "key": "k4", "limit": 1}
    )
    assert [json.loads(line)["key"] for line in answer.text.splitlines()] == ["k4"]


@pytest.mark.parametrize(
    ("encoding", "key", "value", "stored"),
    [
        ("text", "k", "héllo", (b"k", "héllo".encode())),
        ("json", "k", '{"a": 1}', (b"k", b'{"a": 1}')),
        ("base64", "aw==", base64.b64encode(BYTES).decode(), (b"k", BYTES)),
        ("hex", "6b", "00ff", (b"k", b"\x00\xff")),
        ("text", None, None, (None, None)),
    ],
)
def test_a_record_is_produced_as_it_was_written(
    console: RunningConsole,
    new_topic: NewTopicOf,
    broker: Broker,
    encoding: str,
    key: str | None,
    value: str | None,
    stored: tuple[bytes | None, bytes | None],
) -> None:
    topic = new_topic(3)
    body = {"topic": topic, "partition": 2, "key": key, "value": value, "encoding": encoding}
    place = console.post("/api/messages", body)
    assert place == {"partition": 2, "offset": 0}
    message = read(broker, topic, **place)
    assert (message.key(), message.value()) == stored


def test_what_cannot_be_produced_is_refused(console: RunningConsole, new_topic: NewTopicOf) -> None:
    topic = new_topic()
    for body, status in (
        ({"topic": "ghost", "value": "x"}, 404),
        ({"topic": topic, "value": "x", "partition": 9}, 400),
        ({"topic": topic, "value": "{", "encoding": "json"}, 400),
        ({"topic": topic, "value": "%%", "encoding": "base64"}, 400),
        ({"topic": topic, "value": 5}, 400),
        ({"topic": topic, "value": "x", "headers": ["a"]}, 400),
        ({"topic": topic, "value": "x", "encoding": "morse"}, 400),
    ):
        assert console.post("/api/messages", body, status)["error"]


def test_a_replayed_record_is_the_same_byte_for_byte(
    console: RunningConsole, new_topic: NewTopicOf, producer: Producer, broker: Broker
) -> None:
    source, target = new_topic(), new_topic(2)
    headers = [("a", b"1"), ("a", BYTES), ("nothing", None)]
    fill(producer, source, [{"key": BYTES, "value": BYTES[::-1], "headers": headers}])
    place = console.post(
        "/api/messages/replay",
        {"from": {"topic": source, "partition": 0, "offset": 0}, "to": {"topic": target}},
    )
    message = read(broker, target, **place)
    assert (message.key(), message.value()) == (BYTES, BYTES[::-1])
    assert message.headers() == headers
    missing = {"from": {"topic": source, "partition": 0, "offset": 9}, "to": {"topic": target}}
    console.post("/api/messages/replay", missing, 404)


def test_the_audit_log_has_changes_without_values(
    console: RunningConsole, new_topic: NewTopicOf
) -> None:
    topic = new_topic()
    console.post("/api/messages", {"topic": topic, "value": "confidential", "partition": 0})
    assert console.settings.audit is not None
    text = console.settings.audit.read_text()
    line = json.loads(text.splitlines()[-1])
    assert (line["action"], line["target"], line["result"]) == ("message.produce", topic, "done")
    assert line["details"] == {"partition": 0, "offset": 0, "bytes": 12}
    assert "confidential" not in text


def read(broker: Broker, topic: str, partition: int, offset: int) -> Any:
    """Return one record as a Kafka client reads it."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "log_level": 0}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        return message
    finally:
        consumer.close()
