"""A hand-written codec for Produce that reads requests without copying records.

Versions 3 to 13; flexible from 9, topic ids in place of names from 13. Record batches are views of
the frame, and the log sets their offsets in place. The generated codec gives the same results more
slowly; the tests compare the two.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from barnabas.model.errors import WireError
from barnabas.protocol.current_leader import Endpoint, Leader, endpoints_tag, leader_tag
from barnabas.protocol.primitives import read_uvarint, skip_tags, uvarint

FLEXIBLE_FROM = 9
TOPIC_IDS_FROM = 13
LEADERS_FROM = 10
LEADER_TAG = 0
ENDPOINTS_TAG = 0

_SHORT = Struct(">h")
_INT = Struct(">i")
_ACKS_TIMEOUT = Struct(">hi")
_ACKS_TIMEOUT_COUNT = Struct(">hii")
_INDEX_LENGTH = Struct(">ii")


class ProduceTopic(NamedTuple):
    """Batches for one topic, identified by its name or, from version 13 on, by its id."""

    key: str | bytes
    partitions: list[tuple[int, memoryview | None]]


class ProduceRequest(NamedTuple):
    """A Produce request."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]


class PartitionResult(NamedTuple):
    """The result for one partition."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    leader: Leader | None = None
    """The current leader, if the batch was refused because this broker does not lead."""
    record_errors: Sequence[tuple[int, str]] = ()
    """The records that caused the refusal, by their index in the batch; from version 8 on."""


def parse_request(version: int, frame: memoryview, position: int) -> ProduceRequest:
    """Read the body of a request; raise `WireError` if it is invalid."""
    try:
        if version >= FLEXIBLE_FROM:
            return _parse_flexible(version, frame, position)
        return _parse_classic(frame, position)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Produce v{version}: {error}") from None


def _parse_classic(frame: memoryview, position: int) -> ProduceRequest:
    transactional_id, position = _string(frame, position)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position)
    position += 10
    topics = []
    for _ in range(topic_count):
        name, position = _string(frame, position)
        (count,) = _INT.unpack_from(frame, position)
        position += 4
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(count):
            index, length = _INDEX_LENGTH.unpack_from(frame, position)
            position += 8
            if length < 0:
                partitions.append((index, None))
                continue
            end = position + length
            if end > len(frame):
                raise WireError(f"records of {length} bytes reach past the end of the request")
            partitions.append((index, frame[position:end]))
            position = end
        topics.append(ProduceTopic(name or "", partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _parse_flexible(version: int, frame: memoryview, position: int) -> ProduceRequest:
    transactional_id, position = _compact_string(frame, position)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = _count(frame, position + 6)
    topics = []
    for _ in range(topic_count):
        key: str | bytes
        if version >= TOPIC_IDS_FROM:
            key, position = bytes(frame[position : position + 16]), position + 16
        else:
            name, position = _compact_string(frame, position)
            key = name or ""
        count, position = _count(frame, position)
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(count):
            (index,) = _INT.unpack_from(frame, position)
            length, position = read_uvarint(frame, position + 4)
            if length == 0:
                records = None
            else:
                end = position + length - 1
                if end > len(frame):
                    raise WireError(
                        f"records of {length - 1} bytes reach past the end of the request"
                    )
                records, position = frame[position:end], end
            position = _tags(frame, position)
            partitions.append((index, records))
        position = _tags(frame, position)
        topics.append(ProduceTopic(key, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _string(frame: memoryview, position: int) -> tuple[str | None, int]:
    (length,) = _SHORT.unpack_from(frame, position)
    position += 2
    if length < 0:
        return None, position
    return str(frame[position : position + length], "utf-8"), position + length


def _compact_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    length, position = read_uvarint(frame, position)
    if length == 0:
        return None, position
    return str(frame[position : position + length - 1], "utf-8"), position + length - 1


def _count(frame: memoryview, position: int) -> tuple[int, int]:
    count, position = read_uvarint(frame, position)
    return count - 1, position


def _tags(frame: memoryview, position: int) -> int:
    return position + 1 if frame[position] == 0 else skip_tags(frame, position, len(frame))


_PARTITION_CLASSIC = Struct(">ihqqq")
_PARTITION_V8 = Struct(">ihqqqi")
_PARTITION_V3 = Struct(">ihqq")
_NO_ERRORS_NULL_MESSAGE_NO_TAGS = b"\x01\x00\x00"
"""A batch that was refused for some of its records has a message, too."""
_NO_TAGS = b"\x00"
_ONE_TAG = b"\x01"


def encode_response(
    version: int,
    topics: Iterable[tuple[str | bytes, Iterable[PartitionResult]]],
    throttle_ms: int,
    endpoints: Sequence[Endpoint] = (),
) -> bytes:
    """Write the body of a response."""
    listed = [(key, list(results)) for key, results in topics]
    if version >= FLEXIBLE_FROM:
        return _encode_flexible(version, listed, throttle_ms, endpoints)
    parts = [_INT.pack(len(listed))]
    for key, results in listed:
        assert isinstance(key, str)
        name = key.encode()
        parts += [_SHORT.pack(len(name)), name, _INT.pack(len(results))]
        parts += [_classic_result(version, result) for result in results]
    parts.append(_INT.pack(throttle_ms))
    return b"".join(parts)


def _classic_result(version: int, result: PartitionResult) -> bytes:
    if version >= 8:
        message = result.message.encode() if result.message is not None else b""
        length = -1 if result.message is None else len(message)
        errors = b"".join(_classic_record_error(*error) for error in result.record_errors)
        head = _PARTITION_V8.pack(*result[:5], len(result.record_errors))
        return head + errors + _SHORT.pack(length) + message
    if version >= 5:
        return _PARTITION_CLASSIC.pack(*result[:5])
    return _PARTITION_V3.pack(*result[:4])


def _classic_record_error(place: int, message: str) -> bytes:
    text = message.encode()
    return _INT.pack(place) + _SHORT.pack(len(text)) + text


def _encode_flexible(
    version: int,
    topics: list[tuple[str | bytes, list[PartitionResult]]],
    throttle_ms: int,
    endpoints: Sequence[Endpoint],
) -> bytes:
    body = bytearray()
    body += uvarint(len(topics) + 1)
    for key, results in topics:
        if isinstance(key, str):
            name = key.encode()
            body += uvarint(len(name) + 1)
            body += name
        else:
            body += key
        body += uvarint(len(results) + 1)
        for result in results:
            body += _PARTITION_CLASSIC.pack(*result[:5])
            if result.message is None and result.leader is None:
                body += _NO_ERRORS_NULL_MESSAGE_NO_TAGS
            else:
                body += _record_errors(result.record_errors)
                body += _message_and_tags(version, result)
        body.append(0)
    body += _INT.pack(throttle_ms)
    if endpoints and version >= LEADERS_FROM:
        body += _ONE_TAG + endpoints_tag(ENDPOINTS_TAG, endpoints)
    else:
        body += _NO_TAGS
    return bytes(body)


def _record_errors(errors: Sequence[tuple[int, str]]) -> bytes:
    body = bytearray(uvarint(len(errors) + 1))
    for place, message in errors:
        text = message.encode()
        body += _INT.pack(place) + uvarint(len(text) + 1) + text + _NO_TAGS
    return bytes(body)


def _message_and_tags(version: int, result: PartitionResult) -> bytes:
    message = b"\0"
    if result.message is not None:
        text = result.message.encode()
        message = uvarint(len(text) + 1) + text
    if result.leader is None or version < LEADERS_FROM:
        return message + _NO_TAGS
    return message + _ONE_TAG + leader_tag(LEADER_TAG, result.leader)
