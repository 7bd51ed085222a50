"""OffsetCommit (key 8), versions 2 to 10; topics by id from version 10 (KIP-848).

Versions 2 to 4 may say how long an offset is kept; from version 9 on members of `consumer` groups
commit with their epoch. A group that does not exist accepts commits of clients that are no members.
Any offset is stored, negative ones as well, as in Kafka.

Deviations: the response keeps the order of the request, and the length limit of the metadata counts
characters, not UTF-16 units.
"""

from barnabas.handlers.context import RequestContext
from barnabas.handlers.coordination import ask_group, caller_of
from barnabas.model.errors import ErrorCode
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def handle(
    node: Node, request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    """Store how far a group has read."""
    caller = caller_of(context)
    return ask_group(
        node,
        request.group_id,
        lambda machine: machine.offsets.commit(request, caller),
        lambda code: answered(request, code),
    )


def answered(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Return the answer that has the same code for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=part.partition_index, error_code=code
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
