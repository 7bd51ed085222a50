"""Tests what is read out of brokers' answers: assignments, and timestamps in record batches."""

from struct import pack

import pytest

from barnabas.monitor.group_asking import assigned, pieces
from barnabas.monitor.record_times import timestamp_of
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import Record, build

FIRST_MS = 1_700_000_000_000


def assignment(**topics: list[int]) -> bytes:
    body = pack(">hi", 0, len(topics))
    for name, numbers in topics.items():
        body += pack(">h", len(name)) + name.encode()
        body += pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return body + pack(">i", -1)


def test_an_assignment() -> None:
    assert assigned(assignment(orders=[0, 2], audit=[1])) == (
        ("orders", 0),
        ("orders", 2),
        ("audit", 1),
    )


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"\xff" * 40, assignment(orders=[0, 2])[:-9], b"\0\0\0\0\0\1\0\1\xff"]
)
def test_what_is_no_assignment_has_no_partitions(content: bytes) -> None:
    assert assigned(content) in ((), (("orders", 0),))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_the_timestamp_of_a_record_in_a_batch(codec: Codec) -> None:
    found = [Record(40 + at, FIRST_MS + 7 * at, None, b"v", ()) for at in range(10)]
    content = bytes(build(found, codec=codec))
    assert timestamp_of(content, 40) == FIRST_MS
    assert timestamp_of(content, 43) == FIRST_MS + 21
    assert timestamp_of(content, 12) == FIRST_MS
    assert timestamp_of(content, 50) is None
    assert timestamp_of(content[:30], 43) is None
    assert timestamp_of(b"", 43) is None


def test_pieces() -> None:
    assert [len(each) for each in pieces(range(1201), 500)] == [500, 500, 201]
    assert list(pieces([])) == []
