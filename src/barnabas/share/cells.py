"""One byte for each offset of a share partition: its delivery state and its delivery count.

The low three bits are the state, the others the count. Bytes make a window small (a byte an
offset) and its operations fast: a run of equal offsets is found by one regular expression, and
changed by one `bytes.translate`, whatever its length.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from barnabas.model.share_state import COMPLETE, DeliveryState, StateBatch

STATE_BITS = 3
STATE_MASK = 0b111
COUNT_MAX = 0xFF >> STATE_BITS
STORING = 5
"""In place of ACQUIRED while the end of the delivery is being written."""
WAITING = 6
"""In place of AVAILABLE until the backoff of a record that was released is over."""
VALUES = range(256)


def cell(state: int, deliveries: int) -> int:
    """Return the byte for a state and a count; counts that are too large are cut."""
    return min(deliveries, COUNT_MAX) << STATE_BITS | state


def deliveries_of(value: int) -> int:
    """Return the count in a byte."""
    return value >> STATE_BITS


def state_of(value: int) -> int:
    """Return the state in a byte."""
    return value & STATE_MASK


def _any_of(*states: int) -> bytes:
    values = bytes(value for value in VALUES if state_of(value) in states)
    return b"[" + re.escape(values) + b"]"


AVAILABLE = re.compile(_any_of(DeliveryState.AVAILABLE))
AVAILABLE_RUN = re.compile(b"(" + _any_of(DeliveryState.AVAILABLE) + rb")\1*", re.DOTALL)
ACQUIRED_RUN = re.compile(_any_of(DeliveryState.ACQUIRED) + b"+")
COMPLETE_RUN = re.compile(_any_of(*COMPLETE) + b"+")
WAITING_RUN = re.compile(_any_of(WAITING) + b"+")
ARCHIVING_RUN = re.compile(_any_of(DeliveryState.ARCHIVING) + b"+")
LOCKED = re.compile(_any_of(DeliveryState.ACQUIRED, STORING))
EQUAL_RUN = re.compile(rb"(.)\1*", re.DOTALL)


@cache
def change_to(state: int) -> bytes:
    """Return the table for `translate` that sets a state and keeps the count."""
    return bytes(cell(state, deliveries_of(value)) for value in VALUES)


@cache
def end_of_delivery(deliveries_max: int, last_state: DeliveryState) -> bytes:
    """Return the table that makes offsets available again, or ends them at the limit."""
    return bytes(
        cell(
            DeliveryState.AVAILABLE if deliveries_of(value) < deliveries_max else last_state,
            deliveries_of(value),
        )
        for value in VALUES
    )


def batches_of(first: int, content: bytes | bytearray) -> Iterator[StateBatch]:
    """Yield the runs of equal cells, the first of which is at an offset."""
    for run in EQUAL_RUN.finditer(content):
        value = run[1][0]
        state = DeliveryState(state_of(value))
        last = first + run.end() - 1
        yield StateBatch(first + run.start(), last, state, deliveries_of(value))


def count_complete(content: bytes | bytearray) -> int:
    """Return how many cells are acknowledged or archived."""
    return sum(run.end() - run.start() for run in COMPLETE_RUN.finditer(content))


def count_archiving(content: bytes | bytearray) -> int:
    """Return how many cells wait for a dead letter."""
    return sum(run.end() - run.start() for run in ARCHIVING_RUN.finditer(content))


class Acquired(NamedTuple):
    """A run of offsets that a member has acquired."""

    first: int
    last: int
    deliveries: int
    """How often they were delivered, this time included."""
