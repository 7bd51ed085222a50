"""The follower's codec for Fetch: writes requests and reads responses.

Only version 18, which all brokers of a cluster serve. The record batches of a response are views of
its frame; the generated codec would copy them.
"""

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from barnabas.model.errors import WireError
from barnabas.protocol.current_leader import Leader
from barnabas.protocol.fetch import (
    DIVERGING_TAG,
    HIGH_WATERMARK_TAG,
    LEADER_TAG,
    REPLICA_STATE_TAG,
    Diverging,
    FetchRequest,
)
from barnabas.protocol.primitives import bad_length, read_uvarint, skip_tags, uvarint

VERSION = 18
API_KEY = 1

_LIMITS = Struct(">iiibii")
_PARTITION = Struct(">iiqiqiBBBq")
_REPLICA_STATE = Struct(">BBBiqB")
_INT = Struct(">i")
_HEAD = Struct(">ihi")
_RESULT = Struct(">ihqqq")
_ABORTED_BYTES = 16
_DIVERGING = Struct(">iq")
_LEADER = Struct(">ii")


class Copied(NamedTuple):
    """The leader's result for one partition."""

    topic_id: bytes
    partition: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview
    diverging: Diverging | None = None
    leader: Leader | None = None


class FetchResponse(NamedTuple):
    """A Fetch response of the leader to a follower."""

    error_code: int
    session_id: int
    results: list[Copied]


def encode_request(request: FetchRequest) -> bytes:
    """Write the body of a follower's request."""
    body = bytearray(
        _LIMITS.pack(
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.isolation_level,
            request.session_id,
            request.session_epoch,
        )
    )
    body += uvarint(len(request.topics) + 1)
    for key, partitions in request.topics:
        body += _topic_id(key)
        body += uvarint(len(partitions) + 1)
        body += b"".join(
            [_PARTITION.pack(*p[:6], 1, HIGH_WATERMARK_TAG, 8, p[6]) for p in partitions]
        )
        body.append(0)
    body += uvarint(len(request.forgotten) + 1)
    for key, numbers in request.forgotten:
        body += _topic_id(key)
        body += uvarint(len(numbers) + 1)
        body += b"".join([_INT.pack(number) for number in numbers])
        body.append(0)
    rack = request.rack_id.encode()
    body += uvarint(len(rack) + 1) + rack
    body += _REPLICA_STATE.pack(
        1, REPLICA_STATE_TAG, 13, request.replica_id, request.replica_epoch, 0
    )
    return bytes(body)


def parse_response(body: memoryview) -> FetchResponse:
    """Read the body of a response; raise `WireError` if it is invalid."""
    try:
        return _Reader(body).response()
    except (struct_error, IndexError) as error:
        raise WireError(f"Fetch v{VERSION}: {error}") from None


def _topic_id(key: str | bytes) -> bytes:
    assert isinstance(key, bytes)
    return key


class _Reader:
    """Reads fields from a response, one after the other."""

    __slots__ = ("body", "position")

    def __init__(self, body: memoryview) -> None:
        self.body = body
        self.position = 0

    def response(self) -> FetchResponse:
        _, error_code, session_id = _HEAD.unpack_from(self.body)
        self.position = _HEAD.size
        results: list[Copied] = []
        for _ in range(self.count()):
            topic_id = bytes(self.taken(16))
            results += [self.result(topic_id) for _ in range(self.count())]
            self.skip_tags()
        self.skip_tags()
        return FetchResponse(error_code, session_id, results)

    def result(self, topic_id: bytes) -> Copied:
        number, error_code, high_watermark, _, start = _RESULT.unpack_from(self.body, self.position)
        self.position += _RESULT.size
        for _ in range(self.count()):
            self.taken(_ABORTED_BYTES)
            self.skip_tags()
        self.taken(_INT.size)  # the preferred read replica, which is for consumers
        records = self.taken(max(0, self.count()))
        diverging, leader = self.tags()
        return Copied(
            topic_id, number, error_code, high_watermark, start, records, diverging, leader
        )

    def tags(self) -> tuple[Diverging | None, Leader | None]:
        diverging, leader = None, None
        count, self.position = read_uvarint(self.body, self.position)
        for _ in range(count):
            tag, self.position = read_uvarint(self.body, self.position)
            length, self.position = read_uvarint(self.body, self.position)
            content = self.taken(length)
            if tag == DIVERGING_TAG:
                diverging = Diverging(*_DIVERGING.unpack_from(content))
            elif tag == LEADER_TAG:
                leader = Leader(*_LEADER.unpack_from(content))
        return diverging, leader

    def count(self) -> int:
        count, self.position = read_uvarint(self.body, self.position)
        return count - 1

    def taken(self, length: int) -> memoryview:
        start = self.position
        self.position = start + length
        if self.position > len(self.body):
            bad_length("a field", length)
        return self.body[start : self.position]

    def skip_tags(self) -> None:
        self.position = skip_tags(self.body, self.position, len(self.body))
