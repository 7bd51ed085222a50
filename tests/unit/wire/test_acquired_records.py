"""Tests what a share consumer makes of whole batches of which it has acquired some offsets."""

from barnabas.protocol.messages.share_fetch import AcquiredRecords
from barnabas.wire.acquired_records import decode
from barnabas.wire.share_values import AckKind
from tests.support.talk.requests import batch


def runs(*them: tuple[int, int, int]) -> list[AcquiredRecords]:
    return [
        AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
        for first, last, count in them
    ]


def test_only_acquired_offsets_are_returned_with_their_deliveries() -> None:
    found = decode(batch(4), runs((1, 1, 2), (3, 3, 1)))
    assert [(each.offset, each.value, count) for each, count in found.records] == [
        (1, b"v", 2),
        (3, b"v", 1),
    ]
    assert found.without == {}


def test_an_acquired_offset_without_a_record_is_a_gap() -> None:
    found = decode(batch(1), runs((0, 2, 1)))
    assert [each.offset for each, _ in found.records] == [0]
    assert found.without == {1: AckKind.GAP, 2: AckKind.GAP}


def test_a_damaged_batch_is_rejected() -> None:
    damaged = batch(2)
    damaged[-1] ^= 1
    found = decode(bytes(damaged), runs((0, 1, 1)))
    assert found.records == []
    assert found.without == {0: AckKind.REJECT, 1: AckKind.REJECT}


def test_nothing_acquired_is_nothing() -> None:
    assert decode(None, []) == ([], {})
