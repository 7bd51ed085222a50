"""OffsetDelete (key 47), version 0 (KIP-496): never flexible.

Offsets of topics that a member subscribes to stay. Groups of other protocol types must be empty.
"""

from barnabas.handlers.authorization import DELETE_GROUP, READ_TOPIC, denied_among, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(
    node: Node, request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    """Delete some offsets of a group."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if is_denied(node, context, DELETE_GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = denied_among(node, context, READ_TOPIC, (topic.name for topic in request.topics))
    refused = [_denied(topic) for topic in request.topics if topic.name in denied]
    request.topics = [topic for topic in request.topics if topic.name not in denied]

    def complete(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if not response.error_code:
            response.topics = [*refused, *response.topics]
        return response

    answer = _delete(node, request)
    return answer.map(complete) if isinstance(answer, Pending) else complete(answer)


def _denied(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


def _delete(
    node: Node, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    return ask_group(
        node,
        request.group_id,
        lambda machine: machine.offsets.delete(request),
        lambda code: OffsetDeleteResponse(error_code=code),
    )
