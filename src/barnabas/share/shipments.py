"""A shipment in requests and in records: tagged fields of ours, which Kafka skips.

Four messages have it, each with classes of its own: ShareSnapshot and ShareUpdate, the request that
writes state, and the response that returns it.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from barnabas.model.ids import TopicId
from barnabas.model.share_state import Shipment

S = TypeVar("S")
R = TypeVar("R")

NO_PRODUCER = -1


class RunMessage(Protocol):
    """A run of offsets, as one of the messages has it."""

    first_offset: int
    last_offset: int


class ShipmentMessage(Protocol):
    """A shipment, as one of the messages has it."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    topic_id: bytes
    partition: int

    @property
    def runs(self) -> Sequence[RunMessage]:
        """The offsets of its records."""


def as_message(make: Callable[..., S], run: Callable[..., R], shipment: Shipment | None) -> S:
    """Return what a message has of a shipment; the default, which takes no room, without one."""
    if shipment is None:
        return make()
    return make(
        producer_id=shipment.producer_id,
        producer_epoch=shipment.producer_epoch,
        base_sequence=shipment.base_sequence,
        topic_id=shipment.topic_id,
        partition=shipment.partition,
        runs=[run(first_offset=first, last_offset=last) for first, last in shipment.runs],
    )


def from_message(message: ShipmentMessage) -> Shipment | None:
    """Read what `as_message` returns; raise `ValueError` if it is no shipment."""
    if message.producer_id == NO_PRODUCER:
        return None
    runs = tuple((each.first_offset, each.last_offset) for each in message.runs)
    shipment = Shipment(
        TopicId(bytes(message.topic_id)),
        message.partition,
        message.producer_id,
        message.producer_epoch,
        message.base_sequence,
        runs,
    )
    if min(shipment[1:5]) < 0 or not _are_in_order(runs):
        raise ValueError(f"{shipment} is no shipment")
    return shipment


def _are_in_order(runs: Sequence[tuple[int, int]]) -> bool:
    before = -1
    for first, last in runs:
        if not before < first <= last:
            return False
        before = last
    return bool(runs)
