"""Encodes and decodes the records of a consumer group, as Kafka stores them.

The topics that an assignment was computed from are stored as a hash (`ConsumerGroupMetadata`).
Kafka before 4.1 stored the topics themselves (`ConsumerGroupPartitionMetadata`): such records are
ignored, and deleted with the group.
"""

from collections.abc import Callable, Sequence

from barnabas.groups.consumer.assignors.spec import Slots
from barnabas.groups.consumer.consumer_member import (
    Held,
    Member,
    MemberState,
    Profile,
    ResolvedRegex,
    Standing,
    by_topic,
)
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.ids import TopicId
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from barnabas.protocol.coordinator_records.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.protocol.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from barnabas.protocol.coordinator_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
)
from barnabas.protocol.coordinator_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

MemberKey = (
    ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupMemberMetadataKey
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Store the group epoch, and the hash of the topics."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode(ConsumerGroupMetadataKey(group_id=group_id), value)


def profile(group_id: str, member: Member) -> CoordinatorRecord:
    """Store a member's subscription."""
    said = member.profile
    value = ConsumerGroupMemberMetadataValue(
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.names),
        subscribed_topic_regex=said.regex,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        server_assignor=said.server_assignor,
        classic_member_metadata=None,
    )
    return encode(_profile_key(group_id, member.member_id), value)


def standing(group_id: str, member: Member) -> CoordinatorRecord:
    """Store a member's current assignment."""
    where = member.standing
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=where.epoch,
        previous_member_epoch=where.previous_epoch,
        state=where.state,
        assigned_partitions=_held(where.assigned),
        partitions_pending_revocation=_held(where.pending_revocation),
    )
    return encode(_standing_key(group_id, member.member_id), value)


def target(group_id: str, member_id: str, slots: Slots) -> CoordinatorRecord:
    """Store a member's target assignment."""
    topics = [
        TopicPartition(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(slots).items()
    ]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return encode(_target_key(group_id, member_id), value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    """Store the group epoch of the target assignment, and when it was computed."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=now_ms
    )
    return encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def regex(group_id: str, pattern: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """Store the topics that a regular expression matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), timestamp=resolved.resolved_ms
    )
    return encode(_regex_key(group_id, pattern), value)


def end_of_regex(group_id: str, pattern: str) -> CoordinatorRecord:
    """Delete a regular expression that no member subscribes to."""
    return encode(_regex_key(group_id, pattern), None)


def end_of_members(group_id: str, member_ids: Sequence[str]) -> list[CoordinatorRecord]:
    """Delete members: their assignments first, their subscriptions last, as in Kafka."""
    keys: tuple[Callable[[str, str], MemberKey], ...] = (_standing_key, _target_key, _profile_key)
    return [encode(key(group_id, member_id), None) for key in keys for member_id in member_ids]


def end_of_group(group_id: str, *, partition_metadata: bool) -> list[CoordinatorRecord]:
    """Delete a group that no longer has members."""
    ended = [encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)]
    if partition_metadata:
        ended.append(encode(ConsumerGroupPartitionMetadataKey(group_id=group_id), None))
    return [*ended, encode(ConsumerGroupMetadataKey(group_id=group_id), None)]


def read_profile(value: ConsumerGroupMemberMetadataValue) -> Profile:
    """Return a member's subscription."""
    return Profile(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
    )


def read_standing(value: ConsumerGroupCurrentMemberAssignmentValue) -> Standing:
    """Return a member's current assignment."""
    known = value.state in {state.value for state in MemberState}
    return Standing(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_read_held(value.assigned_partitions, value.member_epoch),
        pending_revocation=_read_held(value.partitions_pending_revocation, value.member_epoch),
    )


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Slots:
    """Return a member's target assignment."""
    return frozenset(
        (TopicId(topic.topic_id), number)
        for topic in value.topic_partitions
        for number in topic.partitions
    )


def _held(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=numbers,
            assignment_epochs=[held[topic_id, number] for number in numbers],
        )
        for topic_id, numbers in by_topic(held).items()
    ]


def _read_held(topics: Sequence[TopicPartitions], epoch: int) -> Held:
    """Return partitions with their epochs; without stored ones (before Kafka 4.3), the member's."""
    held = {}
    for topic in topics:
        since = topic.assignment_epochs or [epoch] * len(topic.partitions)
        for number, given_at in zip(topic.partitions, since, strict=True):
            held[TopicId(topic.topic_id), number] = given_at
    return held


def _profile_key(group_id: str, member_id: str) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _standing_key(group_id: str, member_id: str) -> ConsumerGroupCurrentMemberAssignmentKey:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> ConsumerGroupTargetAssignmentMemberKey:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _regex_key(group_id: str, pattern: str) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
