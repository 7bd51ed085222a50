"""CreatePartitions (key 37), versions 0 to 3."""

from barnabas.controller import topics
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.node.pending import Pending
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(
    node: Node, request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse | Pending[CreatePartitionsResponse]:
    """Grow topics."""
    names = [topic.name for topic in request.topics]
    results, records = [], []
    for topic in request.topics:
        placement = [assignment.broker_ids for assignment in topic.assignments or ()]
        try:
            if names.count(topic.name) > 1:
                raise ApiError(  # noqa: TRY301
                    ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named more than once"
                )
            records.append(
                topics.add_partitions(node.image, topic.name, topic.count, placement, node.nodes)
            )
        except ApiError as error:
            results.append(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=error.code, error_message=error.message
                )
            )
            continue
        results.append(CreatePartitionsTopicResult(name=topic.name))
    response = CreatePartitionsResponse(results=results)
    if request.validate_only or not records:
        return response
    return node.commit(records, context.now_ms).map(lambda _: response)
