"""Dead letters: the records of a dead-letter topic, and where they came from (KIP-1191).

A dead letter is the record that a share group gave up on, with headers that say where it came from,
how often it was delivered, and why the group gave up. Names and texts of the headers are Kafka's;
`__dlq.errors.timestamp` is ours. Kafka copies key and value if the group asks for that, and never
the headers; here a dead letter is the whole record unless the group wants only the headers.

Its timestamp is the time at which it is written: the retention of the dead-letter topic would
delete a record with an old timestamp at once.

This module knows no broker: the command line and the console read dead letters with it, too.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.share_state import Shipment, StateBatch
from barnabas.model.steps import Steps, Work
from barnabas.protocol.records import BatchHeader, Record, build, records_in, unpacked_body

PREFIX = "__dlq.errors."
TOPIC, PARTITION, OFFSET = f"{PREFIX}topic", f"{PREFIX}partition", f"{PREFIX}offset"
GROUP, DELIVERIES, MESSAGE = f"{PREFIX}group", f"{PREFIX}delivery.count", f"{PREFIX}message"
TIMESTAMP = f"{PREFIX}timestamp"

REJECTED = "Offset rejected by client."
DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."
WITHOUT_RECORD = "Its record could not be copied."
"""Follows the reason where a dead letter lacks its record, though the group wants it."""

RECORD_OVERHEAD_BYTES = 400
"""More than the headers of a dead letter take, except for its names, and the framing around it."""
UNPACKED_BYTES_MAX = 64 << 20
"""A batch that is larger once decompressed is not opened: its dead letters have no records."""
RECORD_UNITS = 10
"""What it costs to read one record (`model/steps.py`)."""

Headers = Iterable[tuple[str, bytes | None]]


class Source(NamedTuple):
    """What the dead letters of one share partition have in common."""

    topic: str
    partition: int
    group_id: str
    deliveries_max: int


class Origin(NamedTuple):
    """Where a dead letter came from, and why it is one."""

    topic: str
    partition: int
    offset: int
    group_id: str
    deliveries: int | None
    """None if the header is missing."""
    message: str
    timestamp_ms: int | None
    """The timestamp of the original record; None in dead letters of Apache Kafka."""


class Letter(NamedTuple):
    """A record that a group gave up on."""

    offset: int
    deliveries: int
    record: Record | None
    """None if it cannot be read, or is gone."""

    @property
    def size(self) -> int:
        """About how many bytes it takes, rather more than less."""
        if self.record is None:
            return RECORD_OVERHEAD_BYTES
        headers = sum(len(name) + len(value or b"") + 10 for name, value in self.record.headers)
        content = len(self.record.key or b"") + len(self.record.value or b"")
        return RECORD_OVERHEAD_BYTES + content + headers


def read_origin(headers: Headers) -> Origin | None:
    """Return where a record of a dead-letter topic came from; None if it is no dead letter."""
    found = {name: value for name, value in headers if value is not None}
    try:
        return Origin(
            found[TOPIC].decode(),
            int(found[PARTITION]),
            int(found[OFFSET]),
            found[GROUP].decode(),
            int(found[DELIVERIES]) if DELIVERIES in found else None,
            found.get(MESSAGE, b"").decode(errors="replace"),
            int(found[TIMESTAMP]) if TIMESTAMP in found else None,
        )
    except (KeyError, ValueError):
        return None


def without_origin(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of the original record."""
    return tuple(each for each in headers if not each[0].startswith(PREFIX))


def letters_in(
    content: bytes, header: BatchHeader, wanted: Sequence[StateBatch]
) -> Steps[list[Letter]]:
    """Return the records of a batch that a group gave up on, in their order.

    The batch is decompressed on a thread, and its records are read in steps. A batch that cannot be
    opened gives dead letters without records.
    """
    deliveries = {
        each.offset: each.deliveries
        for each in letters_without_records(header.base_offset, header.last_offset, wanted)
    }
    found: list[Letter] = []
    last, work = max(deliveries, default=-1), Work()
    try:
        body = yield partial(unpacked_body, content, header, UNPACKED_BYTES_MAX)
        for record in records_in(body, header):
            if record.offset in deliveries:
                found.append(Letter(record.offset, deliveries[record.offset], record))
            if record.offset >= last:
                break
            if work.spend(RECORD_UNITS):
                yield None
    except CorruptBatchError:
        return letters_without_records(header.base_offset, header.last_offset, wanted)
    return found


def letters_without_records(first: int, last: int, wanted: Sequence[StateBatch]) -> list[Letter]:
    """Return dead letters that have only headers, for offsets in a range."""
    return [
        Letter(offset, run.deliveries, None)
        for run in wanted
        for offset in range(max(run.first, first), min(run.last, last) + 1)
    ]


def runs_of(letters: Sequence[Letter]) -> tuple[tuple[int, int], ...]:
    """Return the offsets of dead letters as runs."""
    runs: list[tuple[int, int]] = []
    for each in letters:
        if runs and runs[-1][1] + 1 == each.offset:
            runs[-1] = runs[-1][0], each.offset
        else:
            runs.append((each.offset, each.offset))
    return tuple(runs)


def packed(
    letters: Sequence[Letter], source: Source, shipment: Shipment, now_ms: int, *, copies: bool
) -> bytearray:
    """Return the batch of a shipment."""
    assert shipment.record_count == len(letters)
    content = [
        _record(number, each, source, now_ms, copies=copies) for number, each in enumerate(letters)
    ]
    return build(
        content,
        producer_id=shipment.producer_id,
        producer_epoch=shipment.producer_epoch,
        base_sequence=shipment.base_sequence,
    )


def _record(number: int, letter: Letter, source: Source, now_ms: int, *, copies: bool) -> Record:
    record = letter.record if copies else None
    is_last = letter.deliveries >= source.deliveries_max
    reason = DELIVERED_TOO_OFTEN if is_last else REJECTED
    if copies and record is None:
        reason = f"{reason} {WITHOUT_RECORD}"
    headers = [
        (TOPIC, source.topic.encode()),
        (PARTITION, b"%d" % source.partition),
        (OFFSET, b"%d" % letter.offset),
        (GROUP, source.group_id.encode()),
        (DELIVERIES, b"%d" % letter.deliveries),
        (MESSAGE, reason.encode()),
    ]
    if letter.record is not None:
        headers.append((TIMESTAMP, b"%d" % letter.record.timestamp))
    if record is None:
        return Record(number, now_ms, None, None, tuple(headers))
    return Record(
        number, now_ms, record.key, record.value, (*without_origin(record.headers), *headers)
    )
