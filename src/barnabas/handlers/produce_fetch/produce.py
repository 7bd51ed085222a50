"""Produce (key 0), versions 3 to 13; advertised from 0, since librdkafka turns compression off
where the lowest is 3 (Kafka 4 does the same, KAFKA-18659).

Topic ids from version 13. acks=0 gets no response, and a failure closes the connection, as in
Kafka. acks=1 is answered once the batch is in the log, acks=all once it is below the high
watermark: NOT_ENOUGH_REPLICAS if too few replicas are in sync before the append,
NOT_ENOUGH_REPLICAS_AFTER_APPEND if too few are after it, NOT_LEADER_OR_FOLLOWER if the leader
changes before the batch is committed; from version 10 on with the new leader (KIP-951).

A transactional batch is appended at once if its producer has an open transaction in the partition.
Otherwise the broker asks the transaction coordinator first (KIP-890): from version 12 on to add the
partition to the transaction (transaction version 2), before that to verify that it is part of it. A
batch whose predecessor was not admitted is out of order (`node/coordination/verifications.py`).

A batch with very many records that must all be validated (`node/partitions/batch_validation.py`)
waits in the queue of its partition, and so do the batches behind it
(`node/partitions/batch_checking.py`). If the queue is full the batch gets NOT_ENOUGH_REPLICAS,
which every producer retries. If a request has batches for very many partitions, some are appended
at once and the rest wait in the same way.

A request that waits too long gets REQUEST_TIMED_OUT; with acks=0 the client does not learn of a
refusal. Deviation: without an authorizer, a request without a transactional id is refused only for
partitions with transactional batches; Kafka refuses all of it.
"""

from collections.abc import Callable

from barnabas.handlers.authorization import (
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    is_denied,
    topic_name,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.leadership import endpoints_of, leader_instead
from barnabas.handlers.produce_fetch.counting import count_failed
from barnabas.handlers.throttled_responses import debt_now_ms, pause_at_least
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode, InvalidRecordsError, WireError
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.node.coordination.admissions import Decided
from barnabas.node.node import Node
from barnabas.node.partitions.batch_checking import Outcome, Waiting
from barnabas.node.partitions.batch_validation import MustWaitError, parse_header_or_refuse
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.current_leader import Leader
from barnabas.protocol.produce import (
    PartitionResult,
    ProduceRequest,
    encode_response,
)
from barnabas.protocol.records import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    TRANSACTIONAL,
    is_transactional,
    parse_header,
    producer_of,
)
from barnabas.security.client_quotas import QuotaKind

TopicKey = str | bytes
Batch = tuple[TopicKey, int, memoryview | None]
"""A topic, the number of a partition, and its records in a request."""
Put = Callable[[PartitionResult], None]
"""Puts a result in its place in a response."""
ACKS_ALL = -1
BATCHES_AN_EVENT = 100
"""How many batches of a request are appended in one event: more than the 64 that a producer with
default settings sends in one request."""
ZSTD = 4
ZSTD_FROM_VERSION = 7
KNOWS_ABORTABLE_FROM = 11
ADDS_FROM = 12

COORDINATOR_FAILURES = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Answer:
    """Collects the results of a request; complete when no result is pending."""

    __slots__ = (
        "_awaited",
        "_node",
        "_pending",
        "_timer",
        "context",
        "results",
        "taken",
        "unsafe",
    )

    def __init__(self, node: Node, context: RequestContext) -> None:
        self._node = node
        self.context = context
        self.results: list[tuple[TopicKey, list[PartitionResult]]] = []
        self.taken = 0
        """How many batches of the request were examined."""
        self._awaited = 0
        self.unsafe: list[tuple[TopicKey, Partition, int]] = []
        """The batches that are in a log: their topics, and the offsets below which they end."""
        self._pending: Pending[bytes] | None = None
        self._timer: Timer | None = None

    @property
    def complete(self) -> bool:
        """Whether no result is pending."""
        return self._awaited == 0

    def expect(self, key: TopicKey, partition: Partition, offset: int) -> None:
        """Wait until the high watermark of a partition reaches an offset."""
        self._awaited += 1
        self.unsafe.append((key, partition, offset))
        partition.when_safe(offset, self._arrived, lambda: self._gone(key, partition))

    def expect_result(self, results: list[PartitionResult], index: int) -> Put:
        """Wait for a result; return the function that delivers it."""
        self._awaited += 1
        place = len(results)
        results.append(PartitionResult(index, ErrorCode.REQUEST_TIMED_OUT))

        def put(result: PartitionResult) -> None:
            results[place] = result
            self._arrived()

        return put

    def wait(self, timeout_ms: int) -> Pending[bytes]:
        """Return the response, pending until all batches are committed or the timeout is over."""
        self._pending = Pending()
        self._timer = self._node.timers.after(timeout_ms, self._time_out)
        self._pending.on_abandoned = self._timer.cancel
        return self._pending

    def encode(self) -> bytes:
        """Encode the results."""
        context = self.context
        if context.throttle_ms:  # the client may have waited for a part of its pause
            context.throttle_ms = debt_now_ms(self._node, context, QuotaKind.PRODUCE)
        moved = [r.leader for _, results in self.results for r in results if r.error_code]
        if self._node.traffic is not None:
            context.partition_count = sum(len(results) for _, results in self.results)
            if moved:
                count_failed(self._node, self._node.traffic, self.results, context)
        endpoints = endpoints_of(self._node, moved, context.caller.listener) if moved else ()
        return encode_response(context.version, self.results, context.throttle_ms, endpoints)

    def _arrived(self) -> None:
        self._awaited -= 1
        if self._awaited == 0 and self._pending is not None and self._timer is not None:
            self._timer.cancel()
            self._pending.complete_with(self.encode)

    def _gone(self, key: TopicKey, partition: Partition) -> None:
        if self.note_leader_change(key, partition):
            self._arrived()

    def _time_out(self) -> None:
        assert self._pending is not None
        self.note_time_out()
        self._pending.complete_with(self.encode)

    def note_leader_change(self, key: TopicKey, partition: Partition) -> bool:
        """Record that the leader changed: the batch may or may not be committed.

        Return whether that can be answered now. A deleted topic has no new leader, so the producer
        is answered when the time is over.
        """
        if partition.retired:
            return False
        code, number = ErrorCode.NOT_LEADER_OR_FOLLOWER, partition.name.partition
        self._fail(key, number, code, leader_instead(self._node, key, number, code))
        return True

    def note_time_out(self) -> None:
        """Record that batches took too long: they may or may not be committed."""
        for key, partition, offset in self.unsafe:
            if partition.leads and partition.high_watermark < offset:
                code = ErrorCode.REQUEST_TIMED_OUT
                if partition.leader.is_under_min_isr:
                    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
                self._fail(key, partition.name.partition, code)

    def _fail(
        self, key: TopicKey, number: int, code: ErrorCode, leader: Leader | None = None
    ) -> None:
        for named, results in self.results:
            for place, result in enumerate(results):
                if (named, result.partition) == (key, number):
                    results[place] = result._replace(error_code=code, base_offset=-1, leader=leader)


def handle(
    node: Node, request: ProduceRequest, context: RequestContext
) -> bytes | Pending[bytes] | None:
    """Append every batch; answer when the condition of acks is met."""
    if request.acks not in (ACKS_ALL, 0, 1):
        return _refuse_all(request, context, ErrorCode.INVALID_REQUIRED_ACKS)
    answer = Answer(node, context)
    if node.authorizer is not None:
        if _is_denied_transaction(node, request, context):
            return _refuse_transaction(request, context)
        request = _permitted(node, request, answer)
    return _append_all(node, request, answer)


def _append_all(
    node: Node, request: ProduceRequest, answer: Answer
) -> bytes | Pending[bytes] | None:
    context, size = answer.context, 0
    if request.transactional_id is not None:
        try:
            size = _append_in_transaction(node, answer, request, request.transactional_id)
        except ApiError as error:
            return _refuse_all(request, context, error.code)
    else:
        for key, batches in request.topics:
            results: list[PartitionResult] = []
            for index, records in batches:
                size += 0 if records is None else len(records)
                _take(node, answer, results, (key, index, records), request.acks)
            answer.results.append((key, results))
    if context.quota is not None:
        pause_ms = context.quota.use(QuotaKind.PRODUCE, size, node.timers.now_ms)
        pause_at_least(context, pause_ms)
    if request.acks == 0:
        if answer.complete:
            _check_unanswered(answer)
        return None
    if answer.complete:
        return answer.encode()
    return answer.wait(request.timeout_ms)


def _is_denied_transaction(node: Node, request: ProduceRequest, context: RequestContext) -> bool:
    """Tell whether there are transactional batches, and no right to the transactional id."""
    if not any(
        records is not None and is_transactional(records)
        for _, batches in request.topics
        for _, records in batches
    ):
        return False
    name = request.transactional_id
    return name is None or is_denied(node, context, WRITE_TRANSACTIONAL_ID, name)


def _refuse_transaction(request: ProduceRequest, context: RequestContext) -> bytes:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    context.was_denied = True
    if request.acks == 0:
        raise WireError(f"acks=0 request failed with {code.name}; closing connection")
    return _refuse_all(request, context, code)


def _permitted(node: Node, request: ProduceRequest, answer: Answer) -> ProduceRequest:
    """Return the topics of a request that the caller may write to; refuse the others."""
    permitted = []
    for topic in request.topics:
        name = topic_name(node, topic[0])  # the append reports an unknown id
        if name is None or not is_denied(node, answer.context, WRITE_TOPIC, name):
            permitted.append(topic)
            continue
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answer.results.append((topic[0], [PartitionResult(index, code) for index, _ in topic[1]]))
    return request._replace(topics=permitted)


def _take(
    node: Node,
    answer: Answer,
    results: list[PartitionResult],
    batch: Batch,
    acks: int,
    *,
    admitted: bool = False,
) -> None:
    """Append a batch, now or later, and add its result to those of its topic."""
    try:
        answer.taken += 1
        if answer.taken > BATCHES_AN_EVENT:
            _postpone(node, batch)
        results.append(_append(node, answer, batch, acks, admitted=admitted))
    except MustWaitError:
        put = answer.expect_result(results, batch[1])
        _enqueue(node, answer, batch, acks, put, admitted=admitted)


def _postpone(node: Node, batch: Batch) -> None:
    """Raise `MustWaitError` if a batch may wait. One that is refused need not wait."""
    key, index, records = batch
    if records is None or not node.checking.has_room(len(records)):
        return
    try:
        node.find(key, index)
    except ApiError:
        return
    raise MustWaitError


def _append(
    node: Node,
    answer: Answer,
    batch: Batch,
    acks: int,
    *,
    admitted: bool = False,
    already_checked: memoryview | None = None,
) -> PartitionResult:
    key, index, records = batch
    context = answer.context
    try:
        partition = node.find(key, index)
        if partition.internal:
            raise ApiError(  # noqa: TRY301
                ErrorCode.INVALID_TOPIC_EXCEPTION, "only the broker writes to internal topics"
            )
        if records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "there are no records")  # noqa: TRY301
        if len(records) > ATTRIBUTES_AT and (
            context.version < ZSTD_FROM_VERSION or records[ATTRIBUTES_AT] & TRANSACTIONAL
        ):
            _check_attributes(records[ATTRIBUTES_AT], context.version, admitted=admitted)
        if partition.leader.is_under_min_isr and acks == ACKS_ALL:
            partition.leader.refuse_under_min_isr(records)
        appended = partition.leader.append(records, context.now_ms, already_checked)
    except ApiError as error:
        return _refused(node, batch, error)
    if acks == ACKS_ALL and partition.watermark.high < appended.required_offset:
        answer.expect(key, partition, appended.required_offset)
    return PartitionResult(
        index, 0, appended.base_offset, appended.append_time_ms, partition.log.start_offset
    )


def _refused(node: Node, batch: Batch, error: ApiError) -> PartitionResult:
    key, index, records = batch
    if node.traffic is not None:
        traffic = node.traffic.named(key, node.image)
        traffic.produces += 1
        traffic.bytes_rejected += 0 if records is None else len(records)
    leader = leader_instead(node, key, index, error.code)
    refused = PartitionResult(index, error.code, message=error.message, leader=leader)
    if isinstance(error, InvalidRecordsError):
        refused = refused._replace(record_errors=error.record_errors)
    return refused


def _enqueue(
    node: Node, answer: Answer, batch: Batch, acks: int, put: Put, *, admitted: bool
) -> None:
    """Have a batch validated, and appended after those before it in the queue.

    It is refused if the leader changes meanwhile: the producer may have sent it to the new leader.
    """
    key, index, records = batch
    assert records is not None
    context = answer.context
    kept = memoryview(bytearray(records))
    own = (key, index, kept)
    partition = node.find(key, index)
    leader_epoch = partition.leader_epoch

    def proceed(outcome: Outcome) -> None:
        if partition.retired:
            by_name = isinstance(key, str)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
            outcome = ApiError(code)
        elif partition.leader_epoch != leader_epoch:
            outcome = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if isinstance(outcome, ApiError):
            put(_refused(node, own, outcome))
            return
        put(_append(node, answer, own, acks, admitted=admitted, already_checked=outcome))

    try:
        header = parse_header_or_refuse(kept)
        if not node.checking.has_room(len(kept)):
            code = ErrorCode.NOT_ENOUGH_REPLICAS
            partition.leader.note_refusal(header, code)
            raise ApiError(code, "too many batches wait to be checked")  # noqa: TRY301
    except ApiError as error:
        put(_refused(node, own, error))
        return
    waiting = Waiting(kept, header, context.now_ms, proceed)
    node.checking.enter(partition, context.client, waiting)


def _check_attributes(attributes: int, version: int, *, admitted: bool) -> None:
    if attributes & TRANSACTIONAL and not admitted:
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch needs a transactional id",
        )
    if version < ZSTD_FROM_VERSION and attributes & CODEC_MASK == ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def _append_in_transaction(
    node: Node, answer: Answer, request: ProduceRequest, transactional_id: str
) -> int:
    """Append admitted batches; have the others wait for the coordinator. Return the total size."""
    producer = _producer_of(request)
    context = answer.context
    adds = context.version >= ADDS_FROM
    waiting: list[tuple[TopicPartition, Decided]] = []
    size = 0
    for key, batches in request.topics:
        results: list[PartitionResult] = []
        answer.results.append((key, results))
        for index, records in batches:
            size += 0 if records is None else len(records)
            partition = _closed_to(node, key, index, records)
            if partition is None:
                batch = (key, index, records)
                _take(node, answer, results, batch, request.acks, admitted=True)
            else:
                assert records is not None
                partition.leader.verifications.note(
                    parse_header(records),
                    partition.log.producers,
                    node.timers.now_ms,
                    starts_at_zero=adds,
                )
                put = answer.expect_result(results, index)
                decided = _waiter(node, answer, put, partition, (key, index, records), request.acks)
                waiting.append((partition.name, decided))
    if waiting:
        assert producer is not None
        node.transactions.admissions.enter(transactional_id, producer, waiting, adds=adds)
    return size


def _waiter(
    node: Node,
    answer: Answer,
    put: Put,
    partition: Partition,
    batch: tuple[TopicKey, int, memoryview],
    acks: int,
) -> Decided:
    """Return the function to call once it is known whether a batch is admitted.

    It is refused if another broker led the partition meanwhile: the transaction may have ended
    there.
    """
    key, index, records = batch
    kept = memoryview(bytearray(records))  # the next request overwrites the buffer
    leader_epoch = partition.leader_epoch

    def decided(code: ErrorCode) -> None:
        if not code and partition.leader_epoch != leader_epoch:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if code:
            put(_not_admitted(index, code, answer.context.version))
            return
        admitted = (key, index, kept)
        try:
            put(_append(node, answer, admitted, acks, admitted=True))
        except MustWaitError:
            _enqueue(node, answer, admitted, acks, put, admitted=True)

    return decided


def _not_admitted(index: int, code: ErrorCode, version: int) -> PartitionResult:
    """Return an error that producers retry: some do not retry a coordinator's errors."""
    told_as_it_is = code is ErrorCode.CONCURRENT_TRANSACTIONS and version >= ADDS_FROM
    if code in COORDINATOR_FAILURES and not told_as_it_is:
        message = f"the transaction's coordinator answered {code.name}"
        return PartitionResult(index, ErrorCode.NOT_ENOUGH_REPLICAS, message=message)
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < KNOWS_ABORTABLE_FROM:
        code = ErrorCode.INVALID_TXN_STATE
    return PartitionResult(index, code, message="the transaction does not take the batch")


def _closed_to(
    node: Node, key: TopicKey, index: int, records: memoryview | None
) -> Partition | None:
    """Return the partition if a batch may be appended only after asking the coordinator."""
    if records is None or not is_transactional(records):
        return None
    try:
        partition = node.find(key, index)
    except ApiError:
        return None  # the append reports the error
    if partition.internal or has_open_transaction(partition, records):
        return None
    return partition


def _producer_of(request: ProduceRequest) -> ProducerIdAndEpoch | None:
    """Return the producer of the transactional batches, if there are any."""
    producers = {
        ProducerIdAndEpoch(*producer_of(records))
        for _, batches in request.topics
        for _, records in batches
        if records is not None and is_transactional(records)
    }
    if len(producers) > 1:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return next(iter(producers), None)


def has_open_transaction(partition: Partition, records: memoryview) -> bool:
    """Tell whether the transaction that a batch belongs to has begun in a partition."""
    producer_id, producer_epoch = producer_of(records)
    return (
        partition.log.producers.open_transaction(producer_id) is not None
        and partition.log.producers.epoch_of(producer_id) == producer_epoch
    )


def _refuse_all(request: ProduceRequest, context: RequestContext, code: ErrorCode) -> bytes:
    refused = [
        (key, [PartitionResult(index, code) for index, _ in batches])
        for key, batches in request.topics
    ]
    context.error_code = code
    return encode_response(context.version, refused, context.throttle_ms)


def _check_unanswered(answer: Answer) -> None:
    for _, results in answer.results:
        for result in results:
            if result.error_code:
                name = ErrorCode(result.error_code).name
                raise WireError(f"acks=0 request failed with {name}; closing connection")
