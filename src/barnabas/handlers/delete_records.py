"""DeleteRecords (key 21), versions 0 to 2. Offset -1 is the high watermark: everything."""

from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1


def handle(
    node: Node, request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse:
    """Raise the start of logs; retention removes the segments that fall below."""
    del context
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(node, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(node: Node, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        partition = node.find(topic, index)
        offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= partition.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)  # noqa: TRY301
        if not partition.config.deletes:
            raise ApiError(ErrorCode.POLICY_VIOLATION)  # noqa: TRY301
        partition.delete_before(offset)
    except ApiError as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=-1, error_code=error.code
        )
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=partition.log.start_offset
    )
