"""DescribeTopicPartitions (key 75), version 0: metadata in pages (KIP-966)."""

from barnabas.controller.topic_decisions import check_name
from barnabas.handlers.authorization import (
    DESCRIBE_TOPIC,
    denied_among,
    is_hidden,
    operations,
)
from barnabas.handlers.client_endpoints import reach_on
from barnabas.handlers.cluster.metadata import (
    LISTENER_NOT_FOUND_FROM,
    leader_for,
    offline,
    trouble,
)
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_TOPIC_ID
from barnabas.model.permissions import ResourceType
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PAGE_MAX = 2000


def handle(
    node: Node, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Describe partitions from the cursor on, as many as a page holds."""
    cursor = request.cursor
    asked = {topic.name for topic in request.topics}
    if cursor is not None and not _is_valid(cursor, asked):
        return DescribeTopicPartitionsResponse(topics=[_refused(name) for name in sorted(asked)])
    denied = denied_among(node, context, DESCRIBE_TOPIC, asked)
    names = sorted(asked or _visible(node, context))
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    room = min(max(1, request.response_partition_limit), PAGE_MAX)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        resumed = cursor is not None and cursor.topic_name == name
        first = cursor.partition_index if cursor is not None and resumed else 0
        if room <= 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name)
            break
        if name in denied:
            response.topics.append(_denied(name))
            continue
        described = _describe(node, context, name, first, first + room)
        response.topics.append(described)
        room -= len(described.partitions)
        after = first + len(described.partitions)
        if name in node.image.topics and after < len(node.image.topics[name].partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=after
            )
            break
    return response


def _visible(node: Node, context: RequestContext) -> list[str]:
    """Return all topics that the caller may describe."""
    names = node.image.topics
    return [name for name in names if not is_hidden(node, context, DESCRIBE_TOPIC, name)]


def _is_valid(cursor: DescribeTopicPartitionsRequestCursor, asked: set[str]) -> bool:
    """Tell whether a page can begin at a cursor. Its topic may have been deleted meanwhile."""
    return cursor.partition_index >= 0 and (not asked or cursor.topic_name in asked)


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=name)


def _denied(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, topic_id=NO_TOPIC_ID)


def _why_unknown(name: str) -> ErrorCode:
    try:
        check_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _describe(
    node: Node, context: RequestContext, name: str, first: int, last: int
) -> DescribeTopicPartitionsResponseTopic:
    topic = node.image.topics.get(name)
    told = operations(node, context, ResourceType.TOPIC, name)
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(
            error_code=_why_unknown(name),
            name=name,
            topic_id=NO_TOPIC_ID,
            topic_authorized_operations=told,
        )
    reach = reach_on(node, context.caller.listener)
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=node.is_internal(topic),
        topic_authorized_operations=told,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=leader_for(partition, reach),
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                eligible_leader_replicas=partition.eligible,
                last_known_elr=[],
                offline_replicas=offline(partition, reach.living),
                error_code=trouble(partition, reach, LISTENER_NOT_FOUND_FROM),
            )
            for index, partition in enumerate(topic.partitions[first:last], first)
        ],
    )
