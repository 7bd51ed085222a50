"""Tests how a record is printed."""

import json
from typing import Any

import pytest

from barnabas.cli.common.failure import CommandError
from barnabas.cli.records.input_lines import parse_json
from barnabas.cli.records.record_formats import compile_format, render_json


class Printed:
    """Replaces confluent-kafka's message."""

    def __init__(self, key: bytes | None, value: bytes | None, headers: Any = None) -> None:
        self._fields = (key, value, headers)

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 41

    def key(self) -> bytes | None:
        return self._fields[0]

    def value(self) -> bytes | None:
        return self._fields[1]

    def headers(self) -> Any:
        return self._fields[2]

    def timestamp(self) -> tuple[int, int]:
        return (1, 1_700_000_000_000)


MESSAGE = Printed(b"k", b"v\xff", [("a", b"1"), ("b", None)])


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        (r"%v\n", b"v\xff\n"),
        (r"%t-%p@%o\t%k=%v", b"orders-3@41\tk=v\xff"),
        ("%T %s %h", b"1700000000000 2 a=1,b="),
        ("100%% %k", b"100% k"),
        (r"\\n", b"\\n"),
        ("", b""),
        ("ü%k", "ük".encode()),
    ],
)
def test_format(template: str, printed: bytes) -> None:
    assert compile_format(template)(MESSAGE) == printed


def test_null_prints_as_nothing_and_its_size_as_minus_one() -> None:
    assert compile_format("[%k][%v]%s%h")(Printed(None, None)) == b"[][]-1"


@pytest.mark.parametrize("template", ["%x", "%", r"\q", "\\"])
def test_unknown_letters_are_refused(template: str) -> None:
    with pytest.raises(CommandError, match="--format"):
        compile_format(template)


def test_json_carries_text_as_text_and_bytes_as_base64() -> None:
    assert json.loads(render_json(MESSAGE)) == {
        "topic": "orders",
        "partition": 3,
        "offset": 41,
        "timestamp": 1_700_000_000_000,
        "key": "k",
        "value_base64": "dv8=",
        "headers": [["a", "1"], ["b", None]],
    }


@pytest.mark.parametrize(
    "message",
    [
        MESSAGE,
        Printed(None, None),
        Printed(b"", b"", []),
        Printed(b"\xfe", b'{"a": 1}', [("h", b"\xff"), ("h", b"")]),
    ],
)
def test_what_consume_prints_produce_reads_back(message: Printed) -> None:
    outgoing = parse_json(render_json(message))
    assert outgoing.key == message.key()
    assert outgoing.value == message.value()
    assert outgoing.headers == (message.headers() or [])
    assert outgoing.partition == message.partition()
    assert outgoing.timestamp_ms == message.timestamp()[1]
