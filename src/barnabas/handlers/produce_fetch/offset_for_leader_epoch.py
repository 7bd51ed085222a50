"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where an epoch ended (KIP-101, KIP-320)."""

from barnabas.handlers.authorization import (
    CLUSTER_ACTION,
    DESCRIBE_TOPIC,
    NO_NAMES,
    denied_among,
    is_hidden,
)
from barnabas.handlers.context import RequestContext
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    node: Node, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Return the end offsets of leader epochs, so that clients can detect truncation."""
    denied = NO_NAMES
    if is_hidden(node, context, CLUSTER_ACTION):
        names = (topic.topic for topic in request.topics)
        denied = denied_among(node, context, DESCRIBE_TOPIC, names)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _denied(wanted) if topic.topic in denied else _answer(node, topic.topic, wanted)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _denied(wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return EpochEndOffset(partition=wanted.partition, error_code=code)


def _answer(node: Node, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = node.find(topic, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
    except ApiError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
    log = partition.log
    epoch, end_offset = log.epochs.end_offset_for(wanted.leader_epoch, log.end_offset)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
