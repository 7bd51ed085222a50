"""ListOffsets (key 2), versions 1 to 11.

By time is exact: the first record at or after it. Special times: -1 latest, -2 earliest, -3 the
record with the largest timestamp (KIP-734), -4 earliest local (KIP-405); -5 and -6, of tiered
storage, have no answer here.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.node.node import Node
from barnabas.node.partition import Partition
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

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


def handle(node: Node, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Answer each partition by itself."""
    committed_only = request.isolation_level == READ_COMMITTED
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(node, topic.name, wanted, context.version, committed_only)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(
    node: Node,
    topic: str,
    wanted: ListOffsetsPartition,
    version: int,
    committed_only: bool,
) -> ListOffsetsPartitionResponse:
    try:
        known_from = SPECIAL_FROM.get(wanted.timestamp, 0)
        if version < known_from or wanted.timestamp < SPECIAL_MIN:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)  # noqa: TRY301
        partition = node.find(topic, wanted.partition_index)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        upper = partition.last_stable_offset if committed_only else partition.high_watermark
        offset, timestamp, epoch = _look_up(partition, wanted.timestamp, upper)
    except ApiError as error:
        code = error.code
    except CorruptBatchError:
        code = ErrorCode.CORRUPT_MESSAGE
    except OSError:
        code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            offset=offset,
            timestamp=timestamp,
            leader_epoch=epoch if version >= LEADER_EPOCHS_FROM else -1,
        )
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)


def _look_up(partition: Partition, timestamp: int, upper: int) -> tuple[int, int, int]:
    log = partition.log
    match timestamp:
        case _ if timestamp == LATEST:
            entries = log.epochs.entries
            return upper, -1, entries[-1][0] if entries else -1
        case _ if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return log.start_offset, -1, log.epochs.epoch_for(log.start_offset)
        case _ if timestamp == MAX_TIMESTAMP:
            found = log.max_timestamp_record(upper)
        case _ if timestamp < 0:
            found = None
        case _:
            found = log.offset_for_time(timestamp, upper)
    if found is None:
        return -1, -1, -1
    record, epoch = found
    return record.offset, record.timestamp, epoch
