"""Tests transaction markers, byte by byte as Kafka writes them."""

import pytest

from barnabas.model.errors import CorruptBatchError
from barnabas.protocol.markers import ABORT, COMMIT, EndMarker, build_marker, parse_marker
from barnabas.protocol.records import CONTROL, TRANSACTIONAL, Record, build, parse_header, records


@pytest.mark.parametrize(("kind", "key"), [(ABORT, b"\0\0\0\0"), (COMMIT, b"\0\0\0\1")])
def test_a_marker_is_a_control_batch_of_one_record(kind: int, key: bytes) -> None:
    batch = build_marker(7, 3, EndMarker(kind, 9), 1_234)
    header = parse_header(batch)
    assert header.attributes == TRANSACTIONAL | CONTROL
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert list(records(batch, header)) == [Record(0, 1_234, key, b"\0\0\0\0\0\x09")]
    assert parse_marker(batch, header) == EndMarker(kind, 9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\0", None),
        (b"\0\0\0\0", b""),
    ],
)
def test_a_control_batch_that_ends_nothing(key: bytes | None, value: bytes | None) -> None:
    batch = build([Record(0, 0, key, value)], attributes=CONTROL, producer_id=1)
    with pytest.raises(CorruptBatchError):
        parse_marker(batch, parse_header(batch))


def test_an_empty_control_batch() -> None:
    batch = build([], base_offset=5, last_offset=5, base_timestamp=0, attributes=CONTROL)
    with pytest.raises(CorruptBatchError, match="offset 5 is empty"):
        parse_marker(batch, parse_header(batch))
