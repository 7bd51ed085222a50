"""DeleteTopics (key 20), versions 1 to 6; by id from 6."""

from barnabas.controller import topics
from barnabas.handlers.context import RequestContext
from barnabas.metadata.records import MetadataRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.node.node import Node
from barnabas.node.pending import Pending
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def handle(
    node: Node, request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse | Pending[DeleteTopicsResponse]:
    """End topics; their files go in the background."""
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    results, records = [], dict[str, MetadataRecord]()
    for topic in wanted:
        try:
            name = _name(node, topic)
            if not node.settings.broker.delete_topics:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.TOPIC_DELETION_DISABLED, "delete_topics is off in the settings"
                )
            topic_id = node.image.topics[name].topic_id if name in node.image.topics else b""
            records[name] = topics.delete_topic(node.image, name)
            results.append(DeletableTopicResult(name=name, topic_id=topic_id))
        except ApiError as error:
            results.append(
                DeletableTopicResult(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=error.code,
                    error_message=error.message,
                )
            )
    response = DeleteTopicsResponse(responses=results)
    if not records:
        return response
    return node.commit(list(records.values()), context.now_ms).map(lambda _: response)


def _name(node: Node, topic: DeleteTopicState) -> str:
    if topic.name is not None:
        return topic.name
    if topic.topic_id == NO_TOPIC_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a topic is named neither by name nor by id")
    found = node.image.topic_by_id(topic.topic_id)
    if found is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    return found.name
