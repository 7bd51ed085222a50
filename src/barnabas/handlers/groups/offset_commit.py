"""OffsetCommit (key 8), versions 2 to 10; topics by id from version 10 (KIP-848).

Versions 2 to 4 may say how long an offset is kept; from version 9 on members of `consumer` groups
commit with their epoch. A group that does not exist accepts commits of clients that are not
members. Any offset is stored, also a negative one, as in Kafka.

Deviations: the response keeps the order of the request, and the length limit of the metadata counts
characters, not UTF-16 units.
"""

from barnabas.handlers.authorization import READ_GROUP, READ_TOPIC, is_denied, topic_name
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group, caller_of
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_IDS_FROM = 10


def handle(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    """Store the committed offsets of a group."""
    node.group_counts.offset_commits += sum(len(topic.partitions) for topic in request.topics)
    refused: dict[int, OffsetCommitResponseTopic] = {}
    if node.authorizer is not None:
        if is_denied(node, context, READ_GROUP, request.group_id):
            return answered(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        refused = _denied_topics(node, request, context)
        if refused:
            return _commit_others(node, request, context, refused)
    return _commit(node, request, context)


def _commit(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    caller = caller_of(context)
    return ask_group(
        node,
        request.group_id,
        lambda machine: machine.offsets.commit(request, caller),
        lambda code: answered(request, code),
    )


def _denied_topics(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> dict[int, OffsetCommitResponseTopic]:
    """Return the answers for topics that the caller may not read, by their places."""
    refused = {}
    by_id = context.version >= TOPIC_IDS_FROM
    for place, topic in enumerate(request.topics):
        name = topic_name(node, topic.topic_id if by_id else topic.name)
        if name is not None and is_denied(node, context, READ_TOPIC, name):
            refused[place] = _answered(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return refused


def _commit_others(
    node: Node,
    request: OffsetCommitRequest,
    context: RequestContext,
    refused: dict[int, OffsetCommitResponseTopic],
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    """Commit the topics that are not refused; answer all in the order of the request."""
    every = request.topics
    request.topics = [topic for place, topic in enumerate(every) if place not in refused]

    def complete(response: OffsetCommitResponse) -> OffsetCommitResponse:
        committed = iter(response.topics)
        response.topics = [
            refused[place] if place in refused else next(committed) for place in range(len(every))
        ]
        return response

    if not request.topics:
        return complete(OffsetCommitResponse())
    answer = _commit(node, request, context)
    return answer.map(complete) if isinstance(answer, Pending) else complete(answer)


def answered(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Return the answer that has the same code for every partition."""
    return OffsetCommitResponse(topics=[_answered(topic, code) for topic in request.topics])


def _answered(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ],
    )
