"""Decode what a ShareFetch returned: whole batches, of which only some offsets were acquired."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from barnabas.model.errors import BrokerError
from barnabas.protocol.message import Records
from barnabas.protocol.records import Record, batches, records, verify
from barnabas.wire.share_values import AckKind


class AcquiredRun(Protocol):
    """Neighbouring offsets that a member has acquired, with their number of deliveries."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquired(NamedTuple):
    """The records of one partition for the program, and the offsets that it never sees."""

    records: list[tuple[Record, int]]
    """Each with its number of deliveries."""
    without: Mapping[int, AckKind]
    """Offsets without a record (compacted, a marker), or in a batch that is damaged."""


def decode(content: Records | None, acquired: Sequence[AcquiredRun]) -> Acquired:
    """Return the acquired records, and how to answer for the other acquired offsets."""
    counts = {
        offset: run.delivery_count
        for run in acquired
        for offset in range(run.first_offset, run.last_offset + 1)
    }
    found: list[tuple[Record, int]] = []
    without: dict[int, AckKind] = {}
    for header, batch in batches(content or b""):
        if header.is_control:
            continue
        try:
            verify(batch, header)
            decoded = list(records(batch, header))
        except BrokerError:  # each delivery would fail in the same way
            damaged = range(header.base_offset, header.last_offset + 1)
            without |= {offset: AckKind.REJECT for offset in damaged if counts.pop(offset, 0)}
            continue
        found += [(each, counts.pop(each.offset)) for each in decoded if each.offset in counts]
    return Acquired(found, without | dict.fromkeys(counts, AckKind.GAP))
