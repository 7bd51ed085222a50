"""Moves partitions to other brokers (AlterPartitionReassignments, key 45; KIP-455).

While a partition moves, its replicas are the new ones followed by those that will be dropped.
`adding` names the replicas that are not in sync yet, `removing` those that are dropped when all of
them are. Every partition change checks for that (`partition_change.completed`). A request may set
another target in between, and a cancelled move restores the replicas before it. Neither may drop
the last replica that has all acknowledged records.

A topic may still lack replicas that the controller adds by itself (`growth.py`). If an operator
gives one of its partitions another number of replicas below that factor, or cancels its growth,
the controller adds no further replicas to this topic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.controller.partition_change import in_order, records_of, settle
from barnabas.controller.topic_rules import rules_of
from barnabas.metadata.image import Image, PartitionImage, TopicImage
from barnabas.metadata.metadata_records import (
    MetadataRecord,
    PartitionChanged,
    ReplicationFactorChanged,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


class Reassigned(NamedTuple):
    """The outcome of a request; the response is sent when the records are committed."""

    records: list[MetadataRecord]
    response: AlterPartitionReassignmentsResponse


def alter_reassignments(
    image: Image, request: AlterPartitionReassignmentsRequest, defaults: Mapping[str, str]
) -> Reassigned:
    """Start, change and cancel moves, each partition independently."""
    records: list[MetadataRecord] = []
    decided_on = dict[str, TopicImage]()
    answers = []
    decided = set[tuple[str, int]]()
    for topic in request.topics:
        results = []
        for move in topic.partitions:
            result = ReassignablePartitionResponse(
                partition_index=move.partition_index, error_message=None
            )
            key = (topic.name, move.partition_index)
            try:
                if key in decided:
                    raise ApiError(  # noqa: TRY301
                        ErrorCode.INVALID_REQUEST, "a partition is named twice"
                    )
                decided.add(key)
                keep_count = not request.allow_replication_factor_change
                changes = _alter(image, topic.name, move, defaults, keep_count=keep_count)
                records += changes
                if any(_decides_on_factor(image.topics[topic.name], each) for each in changes):
                    decided_on[topic.name] = image.topics[topic.name]
            except ApiError as error:
                result.error_code, result.error_message = error.code, error.message
            results.append(result)
        answers.append(ReassignableTopicResponse(name=topic.name, partitions=results))
    records += [
        ReplicationFactorChanged(topic_id=topic.topic_id.hex()) for topic in decided_on.values()
    ]
    # A request without topics is answered with the default, as in Kafka.
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
        or not request.topics,
        error_message=None,
        responses=answers,
    )
    return Reassigned(records, response)


def list_reassignments(
    image: Image, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the moves in progress, of all partitions or of the named ones."""
    if request.topics is None:
        asked = {t.name: range(len(t.partitions)) for t in image.topics.values()}
        found = [_ongoing(image, name, numbers) for name, numbers in asked.items()]
    else:
        found = [_ongoing(image, t.name, t.partition_indexes) for t in request.topics]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in found if topic.partitions]
    )


def moved(before: PartitionImage, target: Sequence[int]) -> PartitionImage:
    """Return a partition with a new target; an earlier move of it is replaced."""
    original = [n for n in before.replicas if n not in before.adding]
    removing = [n for n in original if n not in target]
    replicas = [*target, *removing]
    return replace(
        before,
        replicas=replicas,
        isr=in_order(replicas, before.isr),
        eligible=in_order(replicas, before.eligible),
        adding=[n for n in target if n not in original],
        removing=removing,
    )


def cancelled(before: PartitionImage) -> PartitionImage:
    """Return a partition as it was before its move."""
    return moved(before, [n for n in before.replicas if n not in before.adding])


def _alter(
    image: Image,
    name: str,
    move: ReassignablePartition,
    defaults: Mapping[str, str],
    *,
    keep_count: bool,
) -> list[PartitionChanged]:
    topic = image.topics.get(name)
    number = move.partition_index
    if topic is None or not 0 <= number < len(topic.partitions):
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {number} of {name!r}"
        )
    before = topic.partitions[number]
    if move.replicas is None:
        if not (before.adding or before.removing):
            raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "the partition is not moving")
        wanted = cancelled(before)
    else:
        _check_target(image, before, move.replicas, keep_count=keep_count)
        wanted = moved(before, move.replicas)
    if not wanted.isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"only {before.isr} are in sync, and the target contains none of them; wait for others",
        )
    return settled(image, topic, number, wanted, defaults)


def settled(
    image: Image,
    topic: TopicImage,
    number: int,
    wanted: PartitionImage,
    defaults: Mapping[str, str],
) -> list[PartitionChanged]:
    """Return the records of a wanted change with all its consequences."""
    before = topic.partitions[number]
    after = settle(before, wanted, rules_of(topic, defaults), image.is_active)
    return records_of(topic, number, before, after)


def _decides_on_factor(topic: TopicImage, change: PartitionChanged) -> bool:
    """Whether a partition gets another number of replicas, below the wanted factor."""
    before = topic.partitions[change.partition]
    planned = len(before.replicas) - len(before.removing)
    after = len(change.replicas) - len(change.removing)
    return after != planned and after < topic.replication_factor


def _check_target(
    image: Image, before: PartitionImage, target: Sequence[int], *, keep_count: bool
) -> None:
    if not target or len(set(target)) != len(target):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "the target must name at least one broker, each once",
        )
    unknown = [n for n in target if n not in image.brokers]
    if unknown:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"brokers {unknown} are not registered; there are {sorted(image.brokers)}",
        )
    count = len(before.replicas) - len(before.adding)
    if keep_count and len(target) != count:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the partition has {count} replicas, the target {len(target)}, and the request "
            "does not allow another replication factor",
        )


def _ongoing(image: Image, name: str, numbers: Sequence[int]) -> OngoingTopicReassignment:
    topic = image.topics.get(name)
    partitions = [] if topic is None else topic.partitions
    return OngoingTopicReassignment(
        name=name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=partitions[number].replicas,
                adding_replicas=partitions[number].adding,
                removing_replicas=partitions[number].removing,
            )
            for number in numbers
            if 0 <= number < len(partitions)
            and (partitions[number].adding or partitions[number].removing)
        ],
    )
