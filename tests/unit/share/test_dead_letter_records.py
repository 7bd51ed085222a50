"""Tests what dead letters and shipments look like, and how they are read back."""

import pytest

from barnabas.model.dead_letter_rules import problem_with
from barnabas.model.ids import TopicId
from barnabas.model.share_state import DeliveryState, Shipment, StateBatch
from barnabas.model.steps import finish
from barnabas.protocol.coordinator_records.share_update import Shipment as Message
from barnabas.protocol.coordinator_records.share_update import ShipmentRun as RunMessage
from barnabas.protocol.records import Record, build, parse_header, records
from barnabas.share import shipments
from barnabas.share.dead_letter_records import (
    DELIVERED_TOO_OFTEN,
    Letter,
    Origin,
    Source,
    letters_in,
    packed,
    read_origin,
    runs_of,
)
from barnabas.share.flood_breaker import WINDOW_MS, FloodBreaker

SHIPMENT = Shipment(TopicId(b"t" * 16), 1, 7, 2, 30, ((4, 4), (6, 7)))
SOURCE = Source("orders", 3, "g", 5)
HEADERS = {
    "__dlq.errors.topic": b"orders",
    "__dlq.errors.partition": b"3",
    "__dlq.errors.offset": b"4",
    "__dlq.errors.group": b"g",
}


def test_a_batch_of_dead_letters() -> None:
    record = Record(4, 1_000, b"k", b"v", (("a", b"b"), ("__dlq.errors.topic", b"older")))
    letters = [Letter(4, 5, record), Letter(6, 1, None), Letter(7, 1, None)]
    assert runs_of(letters) == SHIPMENT.runs
    batch = bytes(packed(letters, SOURCE, SHIPMENT, 9_000, copies=True))
    header = parse_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 30)
    first, *_ = found = list(records(batch, header))
    assert (first.timestamp, first.key, first.value, first.headers[0]) == (
        9_000,
        b"k",
        b"v",
        ("a", b"b"),
    )
    assert read_origin(first.headers) == Origin("orders", 3, 4, "g", 5, DELIVERED_TOO_OFTEN, 1_000)
    assert [name for name, _ in first.headers].count("__dlq.errors.topic") == 1
    assert [each.value for each in found[1:]] == [None, None]


@pytest.mark.parametrize(
    "changes",
    [
        {"__dlq.errors.offset": b"four"},
        {"__dlq.errors.partition": b""},
        {"__dlq.errors.topic": b"\xff"},
        {"__dlq.errors.group": None},
        {"__dlq.errors.delivery.count": b"many"},
    ],
)
def test_records_that_are_no_dead_letters(changes: dict[str, bytes | None]) -> None:
    assert read_origin(HEADERS.items()) == Origin("orders", 3, 4, "g", None, "", None)
    assert read_origin({**HEADERS, **changes}.items()) is None


def test_a_batch_that_cannot_be_opened_gives_dead_letters_without_records() -> None:
    content = bytes(build([Record(number, 0, b"k", b"v") for number in range(5)]))
    header = parse_header(content)
    wanted = [StateBatch(1, 2, DeliveryState.ARCHIVING, 3)]
    letters = finish(letters_in(content[:-30], header, wanted))
    assert letters == [Letter(1, 3, None), Letter(2, 3, None)]
    found = finish(letters_in(content, header, wanted))
    assert [each.record.offset for each in found if each.record is not None] == [1, 2]


def test_offsets_without_a_record_have_no_dead_letter() -> None:
    content = bytes(build([Record(0, 0, b"k", b"v"), Record(4, 0, b"k", b"v")]))
    wanted = [StateBatch(0, 9, DeliveryState.ARCHIVING, 3)]
    letters = finish(letters_in(content, parse_header(content), wanted))
    assert [each.offset for each in letters] == [0, 4]


def test_a_shipment_in_a_message() -> None:
    message = shipments.as_message(Message, RunMessage, SHIPMENT)
    assert shipments.from_message(message) == SHIPMENT
    assert SHIPMENT.record_count == 3
    assert shipments.as_message(Message, RunMessage, None) == Message()
    assert shipments.from_message(Message()) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"runs": []},
        {"runs": [RunMessage(first_offset=5, last_offset=4)]},
        {"runs": [RunMessage(first_offset=-2, last_offset=4)]},
        {"base_sequence": -1},
        {"partition": -5},
    ],
)
def test_messages_that_are_no_shipment(changes: dict[str, object]) -> None:
    message = shipments.as_message(Message, RunMessage, SHIPMENT)
    for name, value in changes.items():
        setattr(message, name, value)
    with pytest.raises(ValueError, match="no shipment"):
        shipments.from_message(message)


def test_names_of_dead_letter_topics() -> None:
    assert problem_with("dlq.orders", ("orders",)) is None
    assert "must begin with" in (problem_with("orders.dlq") or "")
    assert "internal" in (problem_with("__dlq.orders") or "")
    assert "own dead letters" in (problem_with("dlq.orders", ("dlq.orders",)) or "")


def test_a_flood_ends_with_its_minute() -> None:
    breaker = FloodBreaker()
    assert breaker.pause_ms(9, 0, 0) == 0  # no limit
    assert breaker.pause_ms(9, 10, 20_000) == 0
    assert breaker.pause_ms(10, 10, 20_000) == WINDOW_MS - 20_000
    assert breaker.pause_ms(12, 10, WINDOW_MS) == 0
    assert breaker.pause_ms(21, 10, WINDOW_MS) == WINDOW_MS
    assert breaker.pause_ms(21, 10, 3 * WINDOW_MS) == 0
