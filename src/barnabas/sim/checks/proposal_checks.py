"""Checks that the controller refuses every outdated ISR proposal of a leader.

A proposal (AlterPartition) is stale if the partition has changed since it was made, if its sender
is not the leader or has restarted, or if a broker of the proposed ISR has restarted since, is
fenced, or is stopping. The consequences of an accepted stale proposal may appear much later, or
never. So each proposal is checked when it arrives.
"""

from collections.abc import Callable

from barnabas.metadata.image import Image
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.headers import parse_request_header, response_header
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    BrokerState,
)
from barnabas.sim.host import Host
from barnabas.sim.world import InvariantError

ALTER_PARTITION = 56
UNSEEN = -1

Answered = Callable[[bytes], None]
Place = tuple[bytes, int]


def check_request(host: Host, frame: bytes) -> Answered | None:
    """Inspect a request before the broker handles it; return the callback for its response."""
    header = parse_request_header(memoryview(frame))
    image = None if host.node is None else host.node.quorum.draft
    if header.api_key != ALTER_PARTITION or image is None:
        return None
    request = decode_exact(AlterPartitionRequest, header.api_version, frame[header.body :])
    stale: dict[Place, str] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            problem = why_stale(image, request, topic.topic_id, wanted)
            if problem is not None:
                stale[topic.topic_id, wanted.partition_index] = problem
    head = response_header(header.api_key, header.api_version, header.correlation_id)

    def answered(content: bytes) -> None:
        body = content[len(head) :]
        response = decode_exact(AlterPartitionResponse, header.api_version, body)
        for topic in response.topics:
            for told in topic.partitions:
                problem = stale.get((topic.topic_id, told.partition_index))
                if problem is not None and not (response.error_code or told.error_code):
                    raise InvariantError(f"{host.name} accepts a stale proposal: {problem}")

    return answered


def why_stale(
    image: Image,
    request: AlterPartitionRequest,
    topic_id: bytes,
    wanted: AlterPartitionRequestPartitionData,
) -> str | None:
    """Return why a proposal is stale, or None if it is current."""
    topic = image.topic_by_id(topic_id)
    if topic is None:
        return "the topic is gone"
    placed = topic.partitions[wanted.partition_index]
    if (wanted.leader_epoch, wanted.partition_epoch) != (
        placed.leader_epoch,
        placed.partition_epoch,
    ):
        return "the partition has changed since"
    sender = image.brokers.get(request.broker_id)
    if placed.leader != request.broker_id or sender is None:
        return "the sender does not lead"
    if sender.broker_epoch != request.broker_epoch:
        return "the sender was another process"
    problems = (_problem_with(image, member) for member in wanted.new_isr_with_epochs)
    return next((problem for problem in problems if problem is not None), None)


def _problem_with(image: Image, member: BrokerState) -> str | None:
    broker = image.brokers.get(member.broker_id)
    if broker is None or not broker.is_active:
        return f"{member.broker_id} is not there"
    if member.broker_epoch not in (UNSEEN, broker.broker_epoch):
        return f"{member.broker_id} was another process"
    return None
