"""OffsetFetch (key 9), versions 1 to 10; several groups at once from version 8 (KIP-709).

An offset that was never committed is -1, without an error. Version 7 can ask for stable offsets
(KIP-447), version 9 names the member (KIP-848), version 10 knows topics by id. If a group refuses,
version 1 has an error for each partition, versions 2 to 7 one for the whole response.
"""

from barnabas.groups.offset_reading import unknown
from barnabas.handlers.answers import all_of
from barnabas.handlers.authorization import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    is_denied,
    is_hidden,
    topic_name,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import ask_group
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERRORS_FROM = 2
SEVERAL_FROM = 8
TOPIC_IDS_FROM = 10


def handle(
    node: Node, request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse | Pending[OffsetFetchResponse]:
    """Return the committed offsets of groups."""
    version = context.version
    several = version >= SEVERAL_FROM
    groups = request.groups if several else [_only_group(request)]
    stable = request.require_stable
    if node.authorizer is None:
        found = [_ask(node, group, version, require_stable=stable) for group in groups]
    else:
        found = [_permitted(node, group, context, require_stable=stable) for group in groups]
    answers = all_of(found)
    if several:
        return answers.map(lambda found: OffsetFetchResponse(groups=found))
    return answers.map(lambda found: _only_answer(found[0]))


def _ask(
    node: Node, group: OffsetFetchRequestGroup, version: int, *, require_stable: bool
) -> OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]:
    return ask_group(
        node,
        group.group_id,
        lambda machine: machine.offsets.fetch(group, version, require_stable=require_stable),
        lambda code: _refused(group, version, code),
    )


def _permitted(
    node: Node,
    group: OffsetFetchRequestGroup,
    context: RequestContext,
    *,
    require_stable: bool,
) -> OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]:
    """Return a group's committed offsets in the topics that the caller may describe."""
    version = context.version
    if is_denied(node, context, DESCRIBE_GROUP, group.group_id):
        return _refused(group, version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    asks_for_all, denied = group.topics is None, list[OffsetFetchResponseTopics]()
    if group.topics is not None:
        permitted = []
        for topic in group.topics:
            name = topic_name(node, topic.topic_id if version >= TOPIC_IDS_FROM else topic.name)
            if name is None or not is_denied(node, context, DESCRIBE_TOPIC, name):
                permitted.append(topic)
                continue
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            parts = [unknown(partition, code) for partition in topic.partition_indexes]
            denied.append(
                OffsetFetchResponseTopics(
                    name=topic.name, topic_id=topic.topic_id, partitions=parts
                )
            )
        group.topics = permitted

    def complete(answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if asks_for_all:
            answer.topics = [t for t in answer.topics if not _is_hidden(node, context, t)]
        elif not answer.error_code:
            answer.topics = [*denied, *answer.topics]
        return answer

    answer = _ask(node, group, version, require_stable=require_stable)
    return answer.map(complete) if isinstance(answer, Pending) else complete(answer)


def _is_hidden(node: Node, context: RequestContext, topic: OffsetFetchResponseTopics) -> bool:
    """Tell whether a list of all topics omits this one; it also omits unknown topics."""
    by_id = context.version >= TOPIC_IDS_FROM
    name = topic_name(node, topic.topic_id if by_id else topic.name)
    return name is None or is_hidden(node, context, DESCRIBE_TOPIC, name)


def _refused(
    group: OffsetFetchRequestGroup, version: int, code: ErrorCode
) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=group.group_id)
    if version >= GROUP_ERRORS_FROM:
        answer.error_code = code
        return answer
    for topic in group.topics or ():
        parts = [unknown(partition, code) for partition in topic.partition_indexes]
        answer.topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=parts))
    return answer


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Return the group that a request of an old version asks for, in the form of new versions."""
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _only_answer(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """Return a response in the form of old versions."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=part.partition_index,
                        committed_offset=part.committed_offset,
                        committed_leader_epoch=part.committed_leader_epoch,
                        metadata=part.metadata,
                        error_code=part.error_code,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
