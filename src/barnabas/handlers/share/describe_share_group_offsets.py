"""DescribeShareGroupOffsets (key 90), versions 0 and 1: where share groups read, and their lag.

Version 1 has the lag: the records from the start offset on that are neither acknowledged nor
archived. It is -1 where the share coordinator does not know how many these are. As in Kafka,
missing state is no error: its start offset is -1. Without a list of topics all partitions with
state are described, except those of topics that the caller may not describe.
"""

from collections.abc import Iterable, Mapping

from barnabas.handlers.answers import all_of, then
from barnabas.handlers.authorization import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    denied_among,
    is_hidden,
)
from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordinator_requests import retriable
from barnabas.handlers.share.end_offsets import EndOffsets, end_offsets
from barnabas.metadata.image import TopicImage
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.share_state import UNKNOWN_COUNT, UNKNOWN_OFFSET, StateSummary
from barnabas.node.node import Node
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

UNKNOWN_LAG = -1
UNKNOWN_EPOCH = 0

Group = DescribeShareGroupOffsetsResponseGroup
Topic = DescribeShareGroupOffsetsResponseTopic
Partition = DescribeShareGroupOffsetsResponsePartition
Summaries = Mapping[TopicPartition, StateSummary | ErrorCode]


def handle(
    node: Node, request: DescribeShareGroupOffsetsRequest, context: RequestContext
) -> Pending[DescribeShareGroupOffsetsResponse]:
    """Describe the offsets of groups, in the order of the request."""
    names = (group.group_id for group in request.groups)
    denied = denied_among(node, context, DESCRIBE_GROUP, names)
    found = [
        _refused(asked.group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if asked.group_id in denied
        else _describe(node, context, asked)
        for asked in request.groups
    ]
    return all_of(found).map(lambda groups: DescribeShareGroupOffsetsResponse(groups=groups))


def _describe(
    node: Node, context: RequestContext, asked: DescribeShareGroupOffsetsRequestGroup
) -> Group | Pending[Group]:
    group_id = asked.group_id
    try:
        shard = node.coordinators.groups.shard_for(group_id)
        initialized = shard.run(lambda: shard.machine.share.initialized(group_id))
    except ApiError as error:
        return _refused(group_id, retriable(error.code), error.message)

    def describe(known: Mapping[TopicId, frozenset[int]]) -> Pending[Group]:
        topics = (
            _known(node, context, known) if asked.topics is None else _named(node, context, asked)
        )
        return _with_offsets(node, Group(group_id=group_id, topics=topics))

    described: Pending[Group] = then(initialized, describe)
    return described.or_refused(lambda code: _refused(group_id, code))


def _refused(group_id: str, code: ErrorCode, message: str | None = None) -> Group:
    return Group(group_id=group_id, error_code=code, error_message=message)


def _known(
    node: Node, context: RequestContext, known: Mapping[TopicId, Iterable[int]]
) -> list[Topic]:
    """Return all topics with state that exist and that the caller may describe."""
    found = ((node.image.topic_by_id(topic_id), numbers) for topic_id, numbers in known.items())
    return [
        _unknown(topic.name, sorted(numbers), topic)
        for topic, numbers in found
        if topic is not None and not is_hidden(node, context, DESCRIBE_TOPIC, topic.name)
    ]


def _named(
    node: Node, context: RequestContext, asked: DescribeShareGroupOffsetsRequestGroup
) -> list[Topic]:
    """Return the topics of a request; those that are denied have error codes."""
    wanted = asked.topics or ()
    denied = denied_among(node, context, DESCRIBE_TOPIC, (topic.topic_name for topic in wanted))
    topics = []
    for topic in wanted:
        name = topic.topic_name
        answer = _unknown(
            name, topic.partitions, None if name in denied else node.image.topics.get(name)
        )
        if name in denied:
            for part in answer.partitions:
                part.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topics.append(answer)
    return topics


def _unknown(name: str, numbers: Iterable[int], topic: TopicImage | None) -> Topic:
    """Return a topic of which nothing is known yet."""
    answer = Topic(
        topic_name=name,
        partitions=[
            Partition(
                partition_index=number, start_offset=UNKNOWN_OFFSET, leader_epoch=UNKNOWN_EPOCH
            )
            for number in numbers
        ],
    )
    if topic is not None:
        answer.topic_id = topic.topic_id
    return answer


def _with_offsets(node: Node, group: Group) -> Pending[Group]:
    """Ask share coordinators for summaries, then leaders for end offsets; fill them in."""

    def summarized(found: list[Summaries]) -> Pending[Group]:
        summaries = {place: each for part in found for place, each in part.items()}
        counted = [place for place, each in summaries.items() if _has_lag(each)]
        return end_offsets(node, counted).map(lambda ends: _filled(group, summaries, ends))

    asked = [_summarize(node, group.group_id, topic) for topic in group.topics]
    return then(all_of(asked), summarized)


def _summarize(node: Node, group_id: str, topic: Topic) -> Summaries | Pending[Summaries]:
    found = node.image.topic_by_id(topic.topic_id)
    if found is None:
        return {}
    epochs = {
        part.partition_index: found.partitions[part.partition_index].leader_epoch
        for part in topic.partitions
        if 0 <= part.partition_index < len(found.partitions)
    }
    if not epochs:
        return {}
    return node.share_states.summarize(group_id, found.topic_id, epochs).map(
        lambda summaries: {
            TopicPartition(topic.topic_name, number): each for number, each in summaries.items()
        }
    )


def _has_lag(summary: StateSummary | ErrorCode) -> bool:
    return (
        isinstance(summary, StateSummary)
        and summary.start_offset != UNKNOWN_OFFSET
        and summary.complete_count != UNKNOWN_COUNT
    )


def _filled(group: Group, summaries: Summaries, ends: EndOffsets) -> Group:
    for topic in group.topics:
        for part in topic.partitions:
            place = TopicPartition(topic.topic_name, part.partition_index)
            summary = summaries.get(place)
            if isinstance(summary, StateSummary):
                _fill(part, summary, ends.get(place, UNKNOWN_LAG))
    return group


def _fill(part: Partition, summary: StateSummary, end: int | ErrorCode) -> None:
    if isinstance(end, ErrorCode):
        part.error_code = end
        return
    part.start_offset, part.leader_epoch = summary.start_offset, summary.leader_epoch
    if _has_lag(summary):
        part.lag = max(0, end - summary.start_offset - summary.complete_count)
