"""DeleteRecords (key 21), versions 0 to 2. Offset -1 is the high watermark: everything.

The request waits for records above the high watermark: a producer with acks=1 already knows their
offsets.
"""

from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import DELETE_TOPIC, denied_among
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1

Result = DeleteRecordsPartitionResult
TopicResult = DeleteRecordsTopicResult


def handle(
    node: Node, request: DeleteRecordsRequest, context: RequestContext
) -> Pending[DeleteRecordsResponse]:
    """Raise the start of logs; retention removes the segments that fall below."""
    denied = denied_among(node, context, DELETE_TOPIC, (topic.name for topic in request.topics))
    topics = all_of([_denied(t) if t.name in denied else _topic(node, t) for t in request.topics])
    return topics.map(lambda results: DeleteRecordsResponse(topics=results))


def _topic(node: Node, topic: DeleteRecordsTopic) -> TopicResult | Pending[TopicResult]:
    results = all_of([_delete(node, topic.name, wanted) for wanted in topic.partitions])
    return results.map(lambda done: TopicResult(name=topic.name, partitions=done))


def _denied(topic: DeleteRecordsTopic) -> TopicResult:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = [_refused(wanted.partition_index, code) for wanted in topic.partitions]
    return TopicResult(name=topic.name, partitions=refused)


def _delete(node: Node, topic: str, wanted: DeleteRecordsPartition) -> Result | Pending[Result]:
    index = wanted.partition_index
    try:
        known = node.image.topics.get(topic)
        if known is not None and node.is_internal(known):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)  # noqa: TRY301
        partition = node.find(topic, index)
        offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= partition.log.end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)  # noqa: TRY301
        if not partition.config.deletes:
            raise ApiError(ErrorCode.POLICY_VIOLATION)  # noqa: TRY301
    except ApiError as error:
        return _refused(index, error.code)
    done: Pending[Result] = Pending()
    partition.when_safe(
        offset,
        lambda: _raise_start(partition, offset, done),
        lambda: done.complete(_refused(index, _gone(partition))),
    )
    return done


def _gone(partition: Partition) -> ErrorCode:
    if partition.retired:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def _raise_start(partition: Partition, offset: int, done: Pending[Result]) -> None:
    """Answer once the new start is safe on disk."""
    index = partition.name.partition

    def raised(_: None) -> None:
        start_offset = partition.log.start_offset
        done.complete(Result(partition_index=index, low_watermark=start_offset))

    def failed(error: Exception) -> None:
        if partition.retired:
            done.complete(_refused(index, _gone(partition)))
        elif isinstance(error, ApiError):
            done.complete(_refused(index, error.code))
        else:
            done.fail(error)

    partition.delete_before(offset).when_done(raised, failed)


def _refused(index: int, code: ErrorCode) -> Result:
    return Result(partition_index=index, low_watermark=-1, error_code=code)
