"""Produce (key 0), versions 3 to 13; advertised from 0, since librdkafka turns compression off
where the lowest is 3 (Kafka 4 does the same, KAFKA-18659).

Topic ids from version 13. acks=0 gets no answer, and a failure closes the connection, as in
Kafka. acks=1 is answered once the batch is in the log, acks=all once it is below the high
watermark. Transactional producers are refused until there are transactions.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode, WireError
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer, Timers
from barnabas.node.node import Node
from barnabas.node.partition import Partition
from barnabas.protocol.produce import (
    PartitionResult,
    ProduceRequest,
    encode_response,
)

TopicKey = str | bytes
ACKS_ALL = -1
ZSTD = 4
ZSTD_FROM_VERSION = 7


class Answer:
    """Results as they come in; complete when nothing is awaited any more."""

    __slots__ = ("_awaited", "_pending", "_timer", "_unsafe", "context", "results")

    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self.results: list[tuple[TopicKey, list[PartitionResult]]] = []
        self._awaited = 0
        self._unsafe: list[tuple[TopicKey, Partition, int]] = []
        self._pending: Pending[bytes] | None = None
        self._timer: Timer | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is awaited."""
        return self._awaited == 0

    def expect(self, key: TopicKey, partition: Partition, offset: int) -> None:
        """Wait until everything below an offset of a partition is safe."""
        self._awaited += 1
        self._unsafe.append((key, partition, offset))
        partition.when_safe(offset, self._arrived)

    def wait(self, timers: Timers, timeout_ms: int) -> Pending[bytes]:
        """Promise the answer for when everything is safe, or for when time is over."""
        self._pending = Pending()
        self._timer = timers.after(timeout_ms, self._time_out)
        self._pending.on_abandoned = self._timer.cancel
        return self._pending

    def encode(self) -> bytes:
        """Write what there is."""
        return encode_response(self.context.version, self.results, self.context.throttle_ms)

    def _arrived(self) -> None:
        self._awaited -= 1
        if self._awaited == 0 and self._pending is not None and self._timer is not None:
            self._timer.cancel()
            self._pending.complete_with(self.encode)

    def _time_out(self) -> None:
        """Answer that some took too long: their records may or may not become safe."""
        assert self._pending is not None
        late = {
            (key, partition.name.partition)
            for key, partition, offset in self._unsafe
            if partition.high_watermark < offset
        }
        self.results = [
            (key, [_late(r) if (key, r.partition) in late else r for r in results])
            for key, results in self.results
        ]
        self._pending.complete_with(self.encode)


def _late(result: PartitionResult) -> PartitionResult:
    return result._replace(error_code=ErrorCode.REQUEST_TIMED_OUT, base_offset=-1)


def handle(
    node: Node, request: ProduceRequest, context: RequestContext
) -> bytes | Pending[bytes] | None:
    """Append every batch; answer when the producer's acks are met."""
    if request.acks not in (ACKS_ALL, 0, 1):
        return _refuse_all(request, context, ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None:
        return _refuse_all(request, context, ErrorCode.INVALID_REQUEST)
    answer = Answer(context)
    size = 0
    for key, batches in request.topics:
        results: list[PartitionResult] = []
        for index, records in batches:
            size += 0 if records is None else len(records)
            results.append(_append(node, answer, key, index, records, request.acks))
        answer.results.append((key, results))
    if node.produce_quota.limits:
        context.throttle_ms = node.produce_quota.use(context.client_id, size, context.now_ms)
    if request.acks == 0:
        _check_unanswered(answer)
        return None
    if answer.complete:
        return answer.encode()
    return answer.wait(node.timers, request.timeout_ms)


def _append(
    node: Node, answer: Answer, key: TopicKey, index: int, records: memoryview | None, acks: int
) -> PartitionResult:
    context = answer.context
    try:
        partition = node.find(key, index)
        if records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "there are no records")  # noqa: TRY301
        if context.version < ZSTD_FROM_VERSION and len(records) > 22 and records[22] & 7 == ZSTD:
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)  # noqa: TRY301
        appended = partition.append(records, context.now_ms)
    except ApiError as error:
        return PartitionResult(index, error.code, message=error.message)
    if acks == ACKS_ALL and partition.high_watermark < appended.required_offset:
        answer.expect(key, partition, appended.required_offset)
    return PartitionResult(
        index, 0, appended.base_offset, appended.append_time_ms, partition.log.start_offset
    )


def _refuse_all(request: ProduceRequest, context: RequestContext, code: ErrorCode) -> bytes:
    refused = [
        (key, [PartitionResult(index, code) for index, _ in batches])
        for key, batches in request.topics
    ]
    return encode_response(context.version, refused, 0)


def _check_unanswered(answer: Answer) -> None:
    for _, results in answer.results:
        for result in results:
            if result.error_code:
                raise WireError(f"acks=0 and {ErrorCode(result.error_code).name}: closing is all")
