"""Tests that batches of the broker itself are the same as those of the general encoder."""

import pytest

from barnabas.protocol.records import (
    TRANSACTIONAL,
    Record,
    build,
    build_own,
    parse_header,
    records,
    verify,
)

PAIRS: list[tuple[bytes, bytes | None]] = [
    (b"", b""),
    (b"key", None),
    (b"k" * 63, b"v" * 64),
    (b"k" * 1023, b"v" * 1024),
    (b"k" * 9000, b"v" * 70_000),
]


@pytest.mark.parametrize("count", [1, len(PAIRS), 100 * len(PAIRS)])
def test_the_same_bytes(count: int) -> None:
    pairs = (PAIRS * 100)[:count]
    asked = [Record(number, 17, key, value) for number, (key, value) in enumerate(pairs)]
    assert build_own(pairs, 17) == build(asked)
    batch = build_own(pairs, 17, attributes=TRANSACTIONAL, producer_id=1 << 40, producer_epoch=3)
    assert batch == build(asked, attributes=TRANSACTIONAL, producer_id=1 << 40, producer_epoch=3)
    header = parse_header(batch)
    verify(batch, header)
    assert list(records(batch, header)) == asked
