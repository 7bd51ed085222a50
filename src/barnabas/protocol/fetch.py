"""A hand-written codec for Fetch that reads requests in one pass and does not copy records.

Versions 4 to 18; flexible from 12, topic ids in place of names from 13. The response is a list of
chunks: bytes around the records, and file slices that the server sends with sendfile. The codec of
the follower, which writes requests and reads responses, is `replica_fetch_codec.py`.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from barnabas.model.errors import WireError
from barnabas.model.ports import Chunk, FileSlice
from barnabas.protocol.current_leader import Endpoint, Leader, endpoints_tag, leader_tag
from barnabas.protocol.primitives import bad_length, read_uvarint, skip_tags, uvarint

FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13
SESSIONS_FROM = 7
REPLICA_ID_UNTIL = 14
ENDPOINTS_FROM = 16
REPLICA_STATE_TAG = 1
DIVERGING_TAG = 0
LEADER_TAG = 1
ENDPOINTS_TAG = 0
HIGH_WATERMARK_FROM = 18
HIGH_WATERMARK_TAG = 1
UNKNOWN_HIGH_WATERMARK = (1 << 63) - 1

TopicKey = str | bytes

_SHORT = Struct(">h")
_INT = Struct(">i")
_LONG = Struct(">q")
_LIMITS = Struct(">iiib")
_SESSION = Struct(">ii")
_PARTITION_V4 = Struct(">iqi")
_PARTITION_V5 = Struct(">iqqi")
_PARTITION_V9 = Struct(">iiqqi")
_PARTITION_V12 = Struct(">iiqiqi")
_REPLICA_STATE = Struct(">iq")
_DIVERGING = Struct(">BBiqB")


class FetchPartition(NamedTuple):
    """The position of a consumer or follower in one partition."""

    partition: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int
    high_watermark: int = UNKNOWN_HIGH_WATERMARK
    """The high watermark that a follower knows (KIP-1166)."""


class FetchRequest(NamedTuple):
    """A Fetch request of a consumer or follower."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[TopicKey, list[FetchPartition]]]
    forgotten: list[tuple[TopicKey, list[int]]]
    rack_id: str
    replica_epoch: int = -1
    """The broker epoch of a follower; the leader refuses requests from before its last restart."""


class Diverging(NamedTuple):
    """The largest epoch that leader and follower share, and its end offset (KIP-595)."""

    epoch: int
    end_offset: int


class FetchResult(NamedTuple):
    """The result for one partition."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: FileSlice | None = None
    aborted: tuple[tuple[int, int], ...] | None = None
    diverging: Diverging | None = None
    leader: Leader | None = None
    preferred_replica: int = -1
    """The replica that the consumer should fetch from, because it is nearer (KIP-392)."""


def parse_request(version: int, frame: memoryview, position: int) -> FetchRequest:
    """Read the body of a request; raise `WireError` if it is invalid."""
    try:
        return _Reader(version, frame, position).request()
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Fetch v{version}: {error}") from None


class _Reader:
    """Reads fields from a frame, one after the other."""

    __slots__ = ("flexible", "frame", "position", "version")

    def __init__(self, version: int, frame: memoryview, position: int) -> None:
        self.version = version
        self.flexible = version >= FLEXIBLE_FROM
        self.frame = frame
        self.position = position

    def request(self) -> FetchRequest:
        replica_id = self.integer() if self.version <= REPLICA_ID_UNTIL else -1
        max_wait_ms, min_bytes, max_bytes, isolation = _LIMITS.unpack_from(
            self.frame, self.position
        )
        self.position += 13
        session_id, session_epoch = 0, -1
        if self.version >= SESSIONS_FROM:
            session_id, session_epoch = _SESSION.unpack_from(self.frame, self.position)
            self.position += 8
        topics = [self.topic() for _ in range(self.count())]
        forgotten: list[tuple[TopicKey, list[int]]] = []
        if self.version >= SESSIONS_FROM:
            forgotten = [self.forgotten() for _ in range(self.count())]
        rack_id = self.string() if self.version >= 11 else ""
        replica_epoch = -1
        if self.version > REPLICA_ID_UNTIL and self.frame[self.position]:
            replica_id, replica_epoch = self.replica_state()
        return FetchRequest(
            replica_id,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation,
            session_id,
            session_epoch,
            topics,
            forgotten,
            rack_id,
            replica_epoch,
        )

    def replica_state(self) -> tuple[int, int]:
        """Read the tagged section of the request: the follower's broker id and epoch."""
        found = self.tagged(REPLICA_STATE_TAG)
        return (-1, -1) if found is None else _REPLICA_STATE.unpack_from(self.frame, found)

    def high_watermark(self) -> int:
        """Read the tagged section of a partition: the high watermark that the follower knows."""
        found = self.tagged(HIGH_WATERMARK_TAG)
        if found is None or self.version < HIGH_WATERMARK_FROM:
            return UNKNOWN_HIGH_WATERMARK
        return int(_LONG.unpack_from(self.frame, found)[0])

    def tagged(self, wanted: int) -> int | None:
        """Skip a tagged section; return the position of one field in it, or None."""
        found = None
        count, position = read_uvarint(self.frame, self.position)
        for _ in range(count):
            tag, position = read_uvarint(self.frame, position)
            length, position = read_uvarint(self.frame, position)
            if position + length > len(self.frame):
                bad_length("tagged field", length)
            if tag == wanted:
                found = position
            position += length
        self.position = position
        return found

    def topic(self) -> tuple[TopicKey, list[FetchPartition]]:
        key = self.key()
        partitions = [self.partition() for _ in range(self.count())]
        self.tags()
        return key, partitions

    def partition(self) -> FetchPartition:
        frame, position = self.frame, self.position
        if self.version >= 12:
            fields = _PARTITION_V12.unpack_from(frame, position)
            self.position = position + 32
            if frame[self.position] == 0:
                self.position += 1
                return FetchPartition._make((*fields, UNKNOWN_HIGH_WATERMARK))
            return FetchPartition._make((*fields, self.high_watermark()))
        if self.version >= 9:
            index, epoch, offset, start, size = _PARTITION_V9.unpack_from(frame, position)
            self.position = position + 28
            return FetchPartition(index, epoch, offset, -1, start, size)
        if self.version >= 5:
            index, offset, start, size = _PARTITION_V5.unpack_from(frame, position)
            self.position = position + 24
            return FetchPartition(index, -1, offset, -1, start, size)
        index, offset, size = _PARTITION_V4.unpack_from(frame, position)
        self.position = position + 16
        return FetchPartition(index, -1, offset, -1, -1, size)

    def forgotten(self) -> tuple[TopicKey, list[int]]:
        key = self.key()
        indexes = [self.integer() for _ in range(self.count())]
        self.tags()
        return key, indexes

    def key(self) -> TopicKey:
        if self.version < TOPIC_IDS_FROM:
            return self.string()
        self.position += 16
        if self.position > len(self.frame):
            raise WireError("a topic id is truncated")
        return bytes(self.frame[self.position - 16 : self.position])

    def integer(self) -> int:
        (value,) = _INT.unpack_from(self.frame, self.position)
        self.position += 4
        return int(value)

    def count(self) -> int:
        if self.flexible:
            count, self.position = read_uvarint(self.frame, self.position)
            return count - 1
        return self.integer()

    def string(self) -> str:
        if self.flexible:
            length = self.count()
        else:
            (length,) = _SHORT.unpack_from(self.frame, self.position)
            self.position += 2
        start = self.position
        self.position = start + max(0, length)
        if self.position > len(self.frame):
            raise WireError(f"a string of {length} bytes reaches past the end of the request")
        return str(self.frame[start : self.position], "utf-8")

    def tags(self) -> None:
        if self.flexible:
            position = self.position
            if self.frame[position] == 0:
                self.position = position + 1
            else:
                self.position = skip_tags(self.frame, position, len(self.frame))


_RESULT_V4 = Struct(">ihqq")
_RESULT_V5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_HEAD_V7 = Struct(">ihi")
_NULL = -1


def encode_response(
    version: int,
    topics: list[tuple[TopicKey, list[FetchResult]]],
    *,
    throttle_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[Chunk]:
    """Return the body of a response as chunks; records are file slices between the bytes."""
    chunks: list[Chunk] = []
    head = bytearray()
    flexible = version >= FLEXIBLE_FROM
    if version >= SESSIONS_FROM:
        head += _HEAD_V7.pack(throttle_ms, error_code, session_id)
    else:
        head += _INT.pack(throttle_ms)
    _write_count(head, len(topics), flexible=flexible)
    for key, results in topics:
        _write_key(head, key, flexible=flexible)
        _write_count(head, len(results), flexible=flexible)
        for result in results:
            _write_result(head, version, result, flexible=flexible)
            if result.records is not None:
                chunks += [head, result.records]
                head = bytearray()
            if flexible:
                head += _result_tags(result)
        if flexible:
            head.append(0)
    if endpoints and version >= ENDPOINTS_FROM:
        head.append(1)
        head += endpoints_tag(ENDPOINTS_TAG, endpoints)
    elif flexible:
        head.append(0)
    if head:
        chunks.append(head)
    return chunks


def _write_result(head: bytearray, version: int, result: FetchResult, *, flexible: bool) -> None:
    if version >= 5:
        head += _RESULT_V5.pack(*result[:5])
    else:
        head += _RESULT_V4.pack(*result[:4])
    _write_aborted(head, result.aborted, flexible=flexible)
    if version >= 11:
        head += _INT.pack(result.preferred_replica)
    length = 0 if result.records is None else result.records.length
    if flexible:
        head += uvarint(length + 1)
    else:
        head += _INT.pack(length)


def _result_tags(result: FetchResult) -> bytes:
    diverging, leader = result.diverging, result.leader
    if diverging is None and leader is None:
        return b"\0"
    tags = bytearray((1 if diverging is None or leader is None else 2,))
    if diverging is not None:
        tags += _DIVERGING.pack(DIVERGING_TAG, 13, *diverging, 0)
    if leader is not None:
        tags += leader_tag(LEADER_TAG, leader)
    return bytes(tags)


def _write_aborted(
    head: bytearray, aborted: tuple[tuple[int, int], ...] | None, *, flexible: bool
) -> None:
    _write_count(head, _NULL if aborted is None else len(aborted), flexible=flexible)
    for producer_id, first_offset in aborted or ():
        head += _ABORTED.pack(producer_id, first_offset)
        if flexible:
            head.append(0)


def _write_count(head: bytearray, count: int, *, flexible: bool) -> None:
    if flexible:
        head += uvarint(count + 1)
    else:
        head += _INT.pack(count)


def _write_key(head: bytearray, key: TopicKey, *, flexible: bool) -> None:
    if isinstance(key, bytes):
        head += key
        return
    name = key.encode()
    if flexible:
        head += uvarint(len(name) + 1)
    else:
        head += _SHORT.pack(len(name))
    head += name
