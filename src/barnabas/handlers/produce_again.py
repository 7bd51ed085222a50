"""Produce, once more: the short way for a producer that asks as it asked before.

A producer sends the same request again and again; only correlation id and records differ. What lies
before the records is remembered as a shape, and a request that begins with a known shape goes
straight to its partition: nothing is parsed and no answer is built field by field. Whatever does
not fit is left to `handlers/produce.py`, and so is every refusal. The two must always agree; a
test sends everything both ways.

Only requests with one partition, acks=1 or acks=all, from version 7 on, have a shape.
"""

from struct import Struct
from typing import NamedTuple

from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce import (
    ACKS_ALL,
    ATTRIBUTES_AT,
    Answer,
    has_open_transaction,
    is_transactional,
)
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.node.partition import Appended, Partition
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.primitives import read_uvarint, uvarint
from barnabas.protocol.produce import FLEXIBLE_FROM, PartitionResult, ProduceRequest
from barnabas.protocol.records import TRANSACTIONAL

PRODUCE = 0
SHAPES_MAX = 10_000
LOWEST_VERSION = 7
"""Before it, zstd would have to be refused."""
RECORD_ERRORS_FROM = 8
CLIENT_ID_AT = 8
TRAILING_TAGS = b"\0\0\0"

_VERSION_AND_CORRELATION = Struct(">ii")
"""The API key is 0, so key and version together, as one number, are the version."""

_LENGTH = Struct(">i")
_SHORT = Struct(">h")


class Framing(NamedTuple):
    """What stands around the result of the one partition in an answer."""

    head: bytes
    tail: bytes


class Shape:
    """Everything about a request but its records, and about its answer but the offsets."""

    __slots__ = (
        "_answer",
        "_framing",
        "acks",
        "index",
        "key",
        "partition",
        "timeout_ms",
        "transactional",
    )

    def __init__(self, version: int, request: ProduceRequest, partition: Partition) -> None:
        ((self.key, ((self.index, _),)),) = request.topics
        self.partition = partition
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.transactional = request.transactional_id is not None
        self._framing = _framing(version, self.key)
        head, tail = self._framing
        self._answer = Struct(f">ii{len(head)}sihqqq{len(tail)}s")

    def encode(self, correlation_id: int, appended: Appended) -> bytes:
        """Write the whole answer, its length included."""
        return self._answer.pack(
            self._answer.size - 4,
            correlation_id,
            self._framing.head,
            self.index,
            0,
            appended.base_offset,
            appended.append_time_ms,
            self.partition.log.start_offset,
            self._framing.tail,
        )


class Shapes:
    """The shapes that were seen, by version and the bytes that they begin with."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[tuple[int, bytes], Shape] = {}

    def answer(
        self, frame: memoryview, prefix_bytes: int, now_ms: int
    ) -> bytes | Pending[list[Chunk]] | None:
        """Append the records of a request with a known shape; None where there is none.

        `prefix_bytes` is where the records of the connection's last request began: that is the
        same for all partitions of a topic, mostly.
        """
        version, correlation_id = _VERSION_AND_CORRELATION.unpack_from(frame)
        shape = self._known.get((version, bytes(frame[CLIENT_ID_AT:prefix_bytes])))
        if shape is None or shape.partition.retired:
            return None
        records = _records(frame, prefix_bytes, version)
        if records is None:
            return None
        if (
            len(records) > ATTRIBUTES_AT
            and records[ATTRIBUTES_AT] & TRANSACTIONAL
            and not _may_enter(shape, records)
        ):
            return None
        try:
            appended = shape.partition.append(records, now_ms)
        except ApiError:
            return None  # refused without a trace: the long way says why
        if shape.acks == ACKS_ALL and shape.partition.high_watermark < appended.required_offset:
            context = RequestContext(version, None, "", now_ms)
            return self._wait(shape, context, correlation_id, appended)
        return shape.encode(correlation_id, appended)

    def learn(self, frame: memoryview, header: RequestHeader, request: ProduceRequest) -> int:
        """Remember a request that was served; return where its records begin, 0 for no shape."""
        if not _has_shape(header, request) or self._node.produce_quota.limits:
            return 0
        ((key, ((index, records),)),) = request.topics
        assert records is not None
        version = header.api_version
        if version >= FLEXIBLE_FROM:
            after = len(TRAILING_TAGS) + len(uvarint(len(records) + 1))
        else:
            after = _LENGTH.size
        prefix_bytes = len(frame) - len(records) - after
        try:
            partition = self._node.find(key, index)
        except ApiError:
            return 0
        if partition.internal:
            return 0
        shape = Shape(version, request, partition)
        if _records(frame, prefix_bytes, version) is None:
            return 0
        if len(self._known) >= SHAPES_MAX:
            self._known.clear()
        self._known[version, bytes(frame[CLIENT_ID_AT:prefix_bytes])] = shape
        return prefix_bytes

    def _wait(
        self, shape: Shape, context: RequestContext, correlation_id: int, appended: Appended
    ) -> Pending[list[Chunk]]:
        head = response_header(PRODUCE, context.version, correlation_id)
        answer = Answer(context)
        start_offset = shape.partition.log.start_offset
        result = PartitionResult(
            shape.index, 0, appended.base_offset, appended.append_time_ms, start_offset
        )
        answer.results.append((shape.key, [result]))
        answer.expect(shape.key, shape.partition, appended.required_offset)
        return answer.wait(self._node.timers, shape.timeout_ms).map(lambda body: [head, body])


def _has_shape(header: RequestHeader, request: ProduceRequest) -> bool:
    return (
        header.api_version >= LOWEST_VERSION
        and request.acks in (1, ACKS_ALL)
        and len(request.topics) == 1
        and len(request.topics[0].partitions) == 1
        and request.topics[0].partitions[0][1] is not None
    )


def _may_enter(shape: Shape, records: memoryview) -> bool:
    """Tell whether a transactional batch needs nobody to be asked."""
    if not shape.transactional or not is_transactional(records):
        return False
    return has_open_transaction(shape.partition, records)


def _records(frame: memoryview, position: int, version: int) -> memoryview | None:
    """Return the records that begin with their length at a position and reach to the end."""
    if version >= FLEXIBLE_FROM:
        length, position = read_uvarint(frame, position)
        end = position + length - 1
        if end != len(frame) - len(TRAILING_TAGS) or frame[end:] != TRAILING_TAGS:
            return None
    else:
        (length,) = _LENGTH.unpack_from(frame, position)
        position += _LENGTH.size
        end = position + length
        if end != len(frame):
            return None
    return frame[position:end]


def _framing(version: int, key: str | bytes) -> Framing:
    """Return what an answer with one topic and one partition consists of, results apart."""
    no_throttle = _LENGTH.pack(0)
    if version < FLEXIBLE_FROM:
        assert isinstance(key, str)
        name = key.encode()
        head = _LENGTH.pack(1) + _SHORT.pack(len(name)) + name + _LENGTH.pack(1)
        no_errors = _LENGTH.pack(0) + _SHORT.pack(-1) if version >= RECORD_ERRORS_FROM else b""
        return Framing(head, no_errors + no_throttle)
    if isinstance(key, str):
        name = key.encode()
        topic = uvarint(len(name) + 1) + name
    else:
        topic = key
    # A tagged section that is empty, an array of one; then no errors, no message, no tags.
    return Framing(b"\0\x02" + topic + b"\x02", b"\x01\0\0\0" + no_throttle + b"\0")
