"""The fast path of Produce, for a producer that sends records to the same partition again.

Only the correlation id and the records differ; see `shapes.py`. The records of a request with a
known shape are passed directly to the partition.

Only requests with one partition, acks=1 or acks=all, from version 7 on, have a shape.

A quota is charged here as in the handler: a shape knows its client. The response then has the
pause, and the session mutes the connection.

Shapes outlive their last request, so they refer to partitions weakly: the files of a deleted topic
use disk space until the last reference to its partitions is dropped.
"""

from struct import Struct
from typing import NamedTuple
from weakref import ref

from barnabas.handlers.context import RequestContext
from barnabas.handlers.produce_fetch.produce import (
    ACKS_ALL,
    Answer,
    has_open_transaction,
)
from barnabas.handlers.throttled_responses import debt_now_ms
from barnabas.model.callers import Caller
from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending
from barnabas.model.ports import Chunk
from barnabas.node.node import Node
from barnabas.node.partitions.batch_validation import MustWaitError
from barnabas.node.partitions.leader_role import Appended
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.headers import RequestHeader, response_header
from barnabas.protocol.primitives import read_uvarint, uvarint
from barnabas.protocol.produce import FLEXIBLE_FROM, PartitionResult, ProduceRequest
from barnabas.protocol.records import ATTRIBUTES_AT, TRANSACTIONAL, is_transactional
from barnabas.security.client_quotas import ClientQuota, QuotaKind

LOWEST_VERSION = 7
"""Earlier versions must refuse zstd."""
RECORD_ERRORS_FROM = 8
TRAILING_TAGS = b"\0\0\0"
SHAPE_BYTES = 1_500
"""Measured: the memory that a shape takes."""

_LENGTH = Struct(">i")
_SHORT = Struct(">h")


class Framing(NamedTuple):
    """The bytes around the result of the one partition in a response."""

    head: bytes
    tail: bytes


class PacedAnswer(NamedTuple):
    """An answer to a client that must pause; the context has the time."""

    answer: bytes | Pending[list[Chunk]]
    context: RequestContext


class ProduceShape:
    """All bytes of a request except its records, and of its response except the offsets."""

    __slots__ = (
        "_answer",
        "_framing",
        "_partition",
        "_quotas",
        "acks",
        "caller",
        "index",
        "kept_bytes",
        "key",
        "node",
        "quota",
        "timeout_ms",
        "transactional",
        "version",
        "was_used",
    )

    def __init__(
        self,
        version: int,
        request: ProduceRequest,
        partition: Partition,
        node: Node,
        quota: ClientQuota,
        caller: Caller,
    ) -> None:
        self.version = version
        self.caller = caller
        """Its principal and listener: errors name leaders by their addresses on that listener."""
        self.node = node
        self.quota = quota
        self._quotas = node.quotas
        ((self.key, ((self.index, _),)),) = request.topics
        self._partition = ref(partition)
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.transactional = request.transactional_id is not None
        self._framing = _framing(version, self.key)
        head, tail = self._framing
        self._answer = Struct(f">ii{len(head)}sihqqq{len(tail)}s")
        self.kept_bytes = SHAPE_BYTES + 2 * len(head)
        """About how much memory it takes."""
        self.was_used = False

    def answer(
        self, frame: memoryview, prefix_bytes: int, correlation_id: int, now_ms: int
    ) -> bytes | Pending[list[Chunk]] | PacedAnswer | None:
        """Append the records of one more request."""
        partition = self._partition()
        if partition is None or partition.retired or partition.leader.is_under_min_isr:
            return None
        records = _records(frame, prefix_bytes, self.version)
        if records is None or (
            len(records) > ATTRIBUTES_AT
            and records[ATTRIBUTES_AT] & TRANSACTIONAL
            and not self._may_enter(partition, records)
        ):
            return None
        try:
            appended = partition.leader.append(records, now_ms)
        except (ApiError, MustWaitError):
            return None  # refused without a change: the handler answers with the reason, or waits
        if self._quotas.limits:
            pause_ms = self.quota.use(QuotaKind.PRODUCE, len(records), self.node.timers.now_ms)
            if pause_ms:
                return self._paced(correlation_id, partition, appended, pause_ms)
        if self.acks == ACKS_ALL and partition.watermark.high < appended.required_offset:
            return _Waiting(self, correlation_id, partition, appended, None).pending
        return self.encode(correlation_id, partition, appended)

    def _paced(
        self, correlation_id: int, partition: Partition, appended: Appended, pause_ms: int
    ) -> PacedAnswer:
        context = RequestContext(self.version, None, self.caller, 0, self.quota, pause_ms)
        if self.acks == ACKS_ALL and partition.watermark.high < appended.required_offset:
            waiting = _Waiting(self, correlation_id, partition, appended, context)
            return PacedAnswer(waiting.pending, context)
        return PacedAnswer(self.encode(correlation_id, partition, appended, pause_ms), context)

    def _may_enter(self, partition: Partition, records: memoryview) -> bool:
        """Tell whether a transactional batch may be appended without asking the coordinator."""
        if not self.transactional or not is_transactional(records):
            return False
        return has_open_transaction(partition, records)

    def encode(
        self, correlation_id: int, partition: Partition, appended: Appended, pause_ms: int = 0
    ) -> bytes:
        """Encode the whole response, its length included."""
        tail = self._framing.tail
        if pause_ms:
            tail = _with_pause(tail, self.version, pause_ms)
        return self._answer.pack(
            self._answer.size - 4,
            correlation_id,
            self._framing.head,
            self.index,
            0,
            appended.base_offset,
            appended.append_time_ms,
            partition.log.start_offset,
            tail,
        )

    def failed(self, correlation_id: int, answer: Answer) -> list[Chunk]:
        """Encode the handler's response, which has the error."""
        return [response_header(ApiKey.PRODUCE, self.version, correlation_id), answer.encode()]


class _Waiting:
    """A response, encoded when its batch is in the log and sent once the batch is committed."""

    __slots__ = (
        "_appended",
        "_context",
        "_correlation_id",
        "_encoded",
        "_partition",
        "_shape",
        "_timer",
        "pending",
    )

    def __init__(
        self,
        shape: ProduceShape,
        correlation_id: int,
        partition: Partition,
        appended: Appended,
        context: RequestContext | None,
    ) -> None:
        self._shape = shape
        self._context = context
        """Says how long the client must pause; None if it need not."""
        self._correlation_id = correlation_id
        self._partition = partition
        self._appended = appended
        self._encoded = shape.encode(correlation_id, partition, appended)
        self.pending: Pending[list[Chunk]] = Pending()
        self._timer = shape.node.timers.after(shape.timeout_ms, self._time_out)
        self.pending.on_abandoned = self._timer.cancel
        partition.when_safe(appended.required_offset, self._safe, self._gone)

    def _safe(self) -> None:
        self._timer.cancel()
        encoded, context = self._encoded, self._context
        if context is not None:  # the client has waited for a part of its pause
            shape = self._shape
            pause_ms = debt_now_ms(shape.node, context, QuotaKind.PRODUCE)
            context.throttle_ms = pause_ms
            encoded = shape.encode(self._correlation_id, self._partition, self._appended, pause_ms)
        self.pending.complete([encoded[_LENGTH.size :]])

    def _gone(self) -> None:
        answer = self._as_handled()
        if answer.note_leader_change(self._shape.key, self._partition):
            self._timer.cancel()
            self._fail(answer)

    def _time_out(self) -> None:
        answer = self._as_handled()
        answer.note_time_out()
        self._fail(answer)

    def _fail(self, answer: Answer) -> None:
        self.pending.complete_with(lambda: self._shape.failed(self._correlation_id, answer))

    def _as_handled(self) -> Answer:
        """Return the results in the form that the handler uses at this point."""
        shape, appended = self._shape, self._appended
        context = self._context or RequestContext(shape.version, None, shape.caller, 0)
        answer = Answer(shape.node, context)
        start_offset = self._partition.log.start_offset
        result = PartitionResult(
            shape.index, 0, appended.base_offset, appended.append_time_ms, start_offset
        )
        answer.results.append((shape.key, [result]))
        answer.unsafe.append((shape.key, self._partition, appended.required_offset))
        return answer


def learn(
    node: Node, caller: Caller, frame: memoryview, header: RequestHeader, request: ProduceRequest
) -> tuple[ProduceShape, int] | None:
    """Find the shape of a user's request that was served, and where its records begin."""
    if not _has_shape(header, request):
        return None
    ((key, ((index, records),)),) = request.topics
    assert records is not None
    version = header.api_version
    if version >= FLEXIBLE_FROM:
        after = len(TRAILING_TAGS) + len(uvarint(len(records) + 1))
    else:
        after = _LENGTH.size
    prefix_bytes = len(frame) - len(records) - after
    try:
        partition = node.find(key, index)
    except ApiError:
        return None
    if partition.internal or _records(frame, prefix_bytes, version) is None:
        return None
    quota = node.quotas.of(caller.principal.name, header.client_id)
    return ProduceShape(version, request, partition, node, quota, caller), prefix_bytes


def _has_shape(header: RequestHeader, request: ProduceRequest) -> bool:
    return (
        header.api_version >= LOWEST_VERSION
        and request.acks in (1, ACKS_ALL)
        and len(request.topics) == 1
        and len(request.topics[0].partitions) == 1
        and request.topics[0].partitions[0][1] is not None
    )


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
    """Return the constant bytes of a response with one topic and one partition."""
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


def _with_pause(tail: bytes, version: int, pause_ms: int) -> bytes:
    """Return the end of a response with the time that the client must pause."""
    after = 1 if version >= FLEXIBLE_FROM else 0  # tags
    at = len(tail) - after - _LENGTH.size
    return tail[:at] + _LENGTH.pack(pause_ms) + tail[at + _LENGTH.size :]
