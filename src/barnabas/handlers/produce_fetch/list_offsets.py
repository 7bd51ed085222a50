"""ListOffsets (key 2), versions 1 to 11.

A lookup by time is exact: it finds the first record at or after it. Special times: -1 latest, -2
earliest, -3 the record with the largest timestamp (KIP-734), -4 earliest local (KIP-405). -5 and
-6, of tiered storage, are not supported.

A lookup that takes longer than an event continues in later ones, after the earlier lookups of the
same client (`server/scans.py`). If a partition is deleted or changes its leader meanwhile, the
response says so. If too many lookups are waiting, the client must retry: OFFSET_NOT_AVAILABLE,
before version 5 LEADER_NOT_AVAILABLE, as Kafka answers while an offset is not known (KIP-207).
"""

from barnabas.effects import Scan
from barnabas.handlers.authorization import DESCRIBE_TOPIC, denied_among
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.steps import Rest, Steps, Work, begin, for_answer
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.storage.times import Found

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
SPECIAL_FROM = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The versions that know each special time; an older one gets UNSUPPORTED_VERSION."""
SPECIAL_MIN = EARLIEST_PENDING_UPLOAD
"""No version knows a special time below this."""
READ_COMMITTED = 1
LEADER_EPOCHS_FROM = 4
NOT_AVAILABLE_FROM = 5

LANE = "look-ups by time"
WAITING_MAX = 100_000
"""How many partitions, of all clients together, wait to be looked up."""
PARTITION_UNITS = 20
"""The cost of the answer for a partition without a lookup."""
LOOK_UP_UNITS = 200
"""The least cost of a lookup: the indexes, and some headers."""

Answer = ListOffsetsPartitionResponse


def handle(
    node: Node, request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsResponse | Pending[ListOffsetsResponse]:
    """Answer each partition on its own, at once if that fits into one event."""
    begun = begin(_answers(node, request, context))
    if not isinstance(begun, Rest):
        return begun
    count = sum(len(topic.partitions) for topic in request.topics)
    if node.looked_up + count > WAITING_MAX:
        return _ask_again(request, context.version)
    pending: Pending[ListOffsetsResponse] = Pending()
    node.looked_up += count
    steps = _look_ups(node, begun, pending, count)
    node.outbox.append(Scan(LANE, context.client, steps))
    return pending


def _look_ups(
    node: Node,
    rest: Rest[ListOffsetsResponse],
    pending: Pending[ListOffsetsResponse],
    count: int,
) -> Steps[None]:
    try:
        yield from for_answer(rest, pending)
    finally:
        node.looked_up -= count


def _ask_again(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    knows = version >= NOT_AVAILABLE_FROM
    code = ErrorCode.OFFSET_NOT_AVAILABLE if knows else ErrorCode.LEADER_NOT_AVAILABLE
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    Answer(partition_index=wanted.partition_index, error_code=code)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answers(
    node: Node, request: ListOffsetsRequest, context: RequestContext
) -> Steps[ListOffsetsResponse]:
    committed_only = request.isolation_level == READ_COMMITTED
    work = Work()
    topics = []
    names = (topic.name for topic in request.topics)
    denied = denied_among(node, context, DESCRIBE_TOPIC, names)
    for topic in request.topics:
        partitions = []
        for wanted in topic.partitions:
            if topic.name in denied:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                partitions.append(Answer(partition_index=wanted.partition_index, error_code=code))
                continue
            look_up = LookUp(node, topic.name, wanted, work, committed_only=committed_only)
            partitions.append((yield from look_up.answer(context.version)))
            if work.spend(PARTITION_UNITS):
                yield None
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


class LookUp:
    """The lookup in one partition."""

    def __init__(
        self,
        node: Node,
        topic: str,
        wanted: ListOffsetsPartition,
        work: Work,
        *,
        committed_only: bool,
    ) -> None:
        self._node = node
        self._topic = topic
        self._wanted = wanted
        self._work = work
        self._committed_only = committed_only

    def answer(self, version: int) -> Steps[Answer]:
        """Return an offset, or an error."""
        wanted = self._wanted
        try:
            known_from = SPECIAL_FROM.get(wanted.timestamp, 0)
            if version < known_from or wanted.timestamp < SPECIAL_MIN:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION)  # noqa: TRY301
            offset, timestamp, epoch = yield from self._find()
        except ApiError as error:
            code = error.code
        except CorruptBatchError:
            code = ErrorCode.CORRUPT_MESSAGE
        except OSError:
            code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            return Answer(
                partition_index=wanted.partition_index,
                offset=offset,
                timestamp=timestamp,
                leader_epoch=epoch if version >= LEADER_EPOCHS_FROM else -1,
            )
        return Answer(partition_index=wanted.partition_index, error_code=code)

    def _find(self) -> Steps[Found]:
        while True:
            partition = self._partition()
            leader_epoch = partition.leader_epoch
            found = yield from self._look(partition)
            if partition.leads and partition.leader_epoch == leader_epoch and not partition.retired:
                return found

    def _partition(self) -> Partition:
        partition = self._node.find(self._topic, self._wanted.partition_index)
        partition.check_leader_epoch(self._wanted.current_leader_epoch)
        return partition

    def _look(self, partition: Partition) -> Steps[Found]:
        log, timestamp = partition.log, self._wanted.timestamp
        upper = partition.last_stable_offset if self._committed_only else partition.high_watermark
        found: Found | None = None
        match timestamp:
            case _ if timestamp == LATEST:
                entries = log.epochs.entries
                return Found(upper, -1, entries[-1][0] if entries else -1)
            case _ if timestamp in (EARLIEST, EARLIEST_LOCAL):
                return Found(log.start_offset, -1, log.epochs.epoch_for(log.start_offset))
            case _ if timestamp == MAX_TIMESTAMP:
                found = yield from log.max_timestamp_record(upper, self._work)
            case _ if timestamp >= 0:
                found = yield from log.offset_for_time(timestamp, upper, self._work)
        if self._work.spend(LOOK_UP_UNITS):
            yield None
        return Found(-1, -1, -1) if found is None else found
