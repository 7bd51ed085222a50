"""Tests how produce parses a line."""

import pytest

from barnabas.cli.records.input_lines import (
    BadLineError,
    Outgoing,
    json_parser,
    line_parser,
    parse_json,
)


def test_a_line_is_a_value() -> None:
    parse = line_parser(key=None, key_separator=None, headers=[], partition=None)
    assert parse(b"a:b") == Outgoing(value=b"a:b")


def test_options_apply_to_every_line() -> None:
    parse = line_parser(key="k", key_separator=None, headers=[("h", b"1")], partition=2)
    assert parse(b"v") == Outgoing(value=b"v", key=b"k", headers=[("h", b"1")], partition=2)


@pytest.mark.parametrize(
    ("separator", "line", "key", "value"),
    [(":", b"a:b:c", b"a", b"b:c"), (r"\t", b"a\tb", b"a", b"b"), ("=>", b"=>b", b"", b"b")],
)
def test_the_first_separator_ends_the_key(
    separator: str, line: bytes, key: bytes, value: bytes
) -> None:
    parse = line_parser(key=None, key_separator=separator, headers=[], partition=None)
    assert parse(line) == Outgoing(value=value, key=key)


def test_a_line_without_separator_is_bad() -> None:
    parse = line_parser(key=None, key_separator=":", headers=[], partition=None)
    with pytest.raises(BadLineError, match="write KEY:VALUE"):
        parse(b"ab")


@pytest.mark.parametrize(
    ("line", "outgoing"),
    [
        (b'{"value": "v"}', Outgoing(value=b"v")),
        (b'{"value": null, "key": "k"}', Outgoing(value=None, key=b"k")),
        (b'{"value": {"a": [1]}, "key": 7}', Outgoing(value=b'{"a":[1]}', key=b"7")),
        (b'{"value_base64": "/w=="}', Outgoing(value=b"\xff")),
        (b'{"value": "", "headers": {"a": "b"}}', Outgoing(value=b"", headers=[("a", b"b")])),
        (
            b'{"value": "", "headers": [["a", null], ["a", {"base64": "/w=="}]]}',
            Outgoing(value=b"", headers=[("a", None), ("a", b"\xff")]),
        ),
        (
            b'{"value": "v", "partition": 1, "timestamp": 1700000000000, "offset": 3}',
            Outgoing(value=b"v", partition=1, timestamp_ms=1_700_000_000_000),
        ),
        (
            b'{"value": "v", "timestamp": "2023-11-14T22:13:20Z"}',
            Outgoing(value=b"v", timestamp_ms=1_700_000_000_000),
        ),
    ],
)
def test_json_lines(line: bytes, outgoing: Outgoing) -> None:
    assert parse_json(line) == outgoing


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[1]", "not an object"),
        (b'{"key": "k"}', 'write "value": null'),
        (b'{"valeu": 1}', "unknown field 'valeu'"),
        (b'{"value": 1, "partition": -1}', "whole number"),
        (b'{"value": 1, "partition": true}', "whole number"),
        (b'{"value": 1, "timestamp": "noon"}', "milliseconds"),
        (b'{"value": 1, "headers": [1]}', "headers"),
        (b'{"value_base64": "?"}', "base64"),
    ],
)
def test_bad_json_says_what_to_change(line: bytes, advice: str) -> None:
    with pytest.raises(BadLineError, match=advice):
        parse_json(line)


def test_options_fill_in_what_json_leaves_out() -> None:
    parse = json_parser(key="k", headers=[("h", b"1")], partition=5)
    assert parse(b'{"value": "v"}') == Outgoing(
        value=b"v", key=b"k", headers=[("h", b"1")], partition=5
    )
    assert parse(b'{"value": "v", "key": "own", "partition": 0}') == Outgoing(
        value=b"v", key=b"own", headers=[("h", b"1")], partition=0
    )
