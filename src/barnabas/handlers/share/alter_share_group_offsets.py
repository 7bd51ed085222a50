"""AlterShareGroupOffsets (key 91), version 0: sets where an empty share group begins to read.

A group with members is NON_EMPTY_GROUP, one of another type GROUP_ID_NOT_FOUND; a group that does
not exist is created, as in Kafka. Deviation from Kafka: a negative offset is INVALID_REQUEST.
"""

from barnabas.handlers.authorization import READ_GROUP, READ_TOPIC, denied_among, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)


def handle(
    node: Node, request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> AlterShareGroupOffsetsResponse | Pending[AlterShareGroupOffsetsResponse]:
    """Have the coordinator set start offsets."""
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    if is_denied(node, context, READ_GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = denied_among(node, context, READ_TOPIC, (topic.topic_name for topic in request.topics))
    hidden = [_denied(topic) for topic in request.topics if topic.topic_name in denied]
    request.topics = [topic for topic in request.topics if topic.topic_name not in denied]

    def complete(response: AlterShareGroupOffsetsResponse) -> AlterShareGroupOffsetsResponse:
        if not response.error_code:
            response.responses = [*hidden, *response.responses]
        return response

    try:
        shard = node.coordinators.groups.shard_for(request.group_id)
        answer = shard.run(lambda: shard.machine.share.altering.alter(request))
    except ApiError as error:
        return _refused(retriable(error.code), error.message)
    return answer.or_refused(_refused).map(complete)


def _refused(code: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=message)


def _denied(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=part.partition_index, error_code=code
            )
            for part in topic.partitions
        ],
    )
