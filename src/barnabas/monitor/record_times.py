"""Reads the timestamps of single records, for commits that are older than all samples.

A Fetch for one byte returns one whole batch (KIP-74), so each record costs one small request; they
follow each other on the connection without waiting. A collection stops reading after `BYTES_MAX`;
the rest is read in the next ones.
"""

from collections.abc import Mapping, Sequence

from barnabas.admin.scopes import Place
from barnabas.model.errors import CorruptBatchError
from barnabas.monitor.broker_line import BrokerLine
from barnabas.monitor.group_asking import pieces
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.records import LOG_APPEND_TIME, BatchHeader, batches, records
from barnabas.wire.wire_failures import LinkError

BYTES_MAX = 32 << 20
IN_FLIGHT_MAX = 8
ONE_BATCH = 1
NO_TIMESTAMP = -1

Record = tuple[Place, int]


def ask_times(line: BrokerLine, wanted: Sequence[Record]) -> Mapping[Record, int]:
    """Return the timestamps of the first records at or after offsets; those found, at least."""
    found: dict[Record, int] = {}
    read = 0
    pipeline = line.pipeline()
    try:
        for piece in pieces(wanted, IN_FLIGHT_MAX):
            for record in piece:
                pipeline.send(_request(record))
            for record in piece:
                content = _content(pipeline.receive(FetchResponse))
                read += len(content)
                written_ms = timestamp_of(content, record[1])
                if written_ms is not None:
                    found[record] = written_ms
            if read > BYTES_MAX:
                break
    except LinkError as error:
        line.fail(str(error))
    return found


def _request(record: Record) -> FetchRequest:
    (topic, number), offset = record
    wanted = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=ONE_BATCH)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=ONE_BATCH,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


def _content(answer: FetchResponse) -> bytes:
    for topic in answer.responses:
        for each in topic.partitions:
            return b"" if each.error_code or each.records is None else bytes(each.records)
    return b""


def timestamp_of(content: bytes, offset: int) -> int | None:
    """Return the timestamp of the first record at or after an offset."""
    try:
        for header, batch in batches(content):
            if header.last_offset >= offset:
                return _within(header, batch, offset)
    except CorruptBatchError:
        return None
    return None


def _within(header: BatchHeader, batch: memoryview, offset: int) -> int | None:
    """Return the timestamp of a record of a batch; that of the batch if it cannot be unpacked."""
    if header.attributes & LOG_APPEND_TIME:
        return header.max_timestamp
    first = None if header.base_timestamp == NO_TIMESTAMP else header.base_timestamp
    if offset <= header.base_offset or header.is_control:
        return first
    try:
        found = next((each for each in records(batch, header) if each.offset >= offset), None)
    except CorruptBatchError:
        return first
    return first if found is None else found.timestamp
