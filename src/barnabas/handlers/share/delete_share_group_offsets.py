"""DeleteShareGroupOffsets (key 92), version 0: deletes what an empty share group knows of topics.

Members that subscribe to such a topic later begin where the group's config says. A group with
members is NON_EMPTY_GROUP, one of another type GROUP_ID_NOT_FOUND; a topic of which the group has
no state is UNKNOWN_TOPIC_OR_PARTITION.
"""

from barnabas.handlers.authorization import DELETE_GROUP, READ_TOPIC, denied_among, is_denied
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


def handle(
    node: Node, request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> DeleteShareGroupOffsetsResponse | Pending[DeleteShareGroupOffsetsResponse]:
    """Have the coordinator delete the state of topics."""
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    if is_denied(node, context, DELETE_GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    denied = denied_among(node, context, READ_TOPIC, (topic.topic_name for topic in request.topics))
    hidden = [_denied(topic.topic_name) for topic in request.topics if topic.topic_name in denied]
    request.topics = [topic for topic in request.topics if topic.topic_name not in denied]

    def complete(response: DeleteShareGroupOffsetsResponse) -> DeleteShareGroupOffsetsResponse:
        if not response.error_code:
            response.responses = [*hidden, *response.responses]
        return response

    try:
        shard = node.coordinators.groups.shard_for(request.group_id)
        answer = shard.run(lambda: shard.machine.share.deleting.delete(request))
    except ApiError as error:
        return _refused(retriable(error.code), error.message)
    return answer.or_refused(_refused).map(complete)


def _refused(code: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message)


def _denied(topic: str) -> DeleteShareGroupOffsetsResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeleteShareGroupOffsetsResponseTopic(topic_name=topic, error_code=code)
