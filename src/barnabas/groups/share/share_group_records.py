"""Encodes and decodes the records of a share group, as Kafka stores them."""

from collections.abc import Callable, Sequence

from barnabas.groups.consumer.assignors.spec import Slots
from barnabas.groups.consumer.consumer_member import by_topic
from barnabas.groups.share.partition_states import PartitionStates, Parts, TopicPart
from barnabas.groups.share.share_member import ShareMember, ShareProfile, ShareStanding
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.ids import TopicId
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records.share_group_current_member_assignment import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from barnabas.protocol.coordinator_records.share_group_member_metadata import (
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
)
from barnabas.protocol.coordinator_records.share_group_metadata import (
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from barnabas.protocol.coordinator_records.share_group_state_partition_metadata import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from barnabas.protocol.coordinator_records.share_group_target_assignment_member import (
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from barnabas.protocol.coordinator_records.share_group_target_assignment_metadata import (
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

STABLE = 0
"""The only state that a stored member has."""

MemberKey = (
    ShareGroupCurrentMemberAssignmentKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupMemberMetadataKey
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Store the group epoch, and the hash of the topics."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode(ShareGroupMetadataKey(group_id=group_id), value)


def profile(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Store a member's subscription."""
    said = member.profile
    value = ShareGroupMemberMetadataValue(
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.names),
    )
    return encode(_profile_key(group_id, member.member_id), value)


def standing(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Store a member's current assignment."""
    where = member.standing
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=where.epoch,
        previous_member_epoch=where.previous_epoch,
        state=STABLE,
        assigned_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in by_topic(where.assigned).items()
        ],
    )
    return encode(_standing_key(group_id, member.member_id), value)


def target(group_id: str, member_id: str, slots: Slots) -> CoordinatorRecord:
    """Store a member's target assignment."""
    topics = [
        TopicPartition(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(slots).items()
    ]
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return encode(_target_key(group_id, member_id), value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    """Store the group epoch of the target assignment, and when it was computed."""
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=now_ms
    )
    return encode(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def partition_states(group_id: str, states: PartitionStates) -> CoordinatorRecord:
    """Store which partitions have delivery state."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_parts(states.initializing),
        initialized_topics=_parts(states.initialized),
        deleting_topics=[
            TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in sorted(states.deleting.items())
        ],
    )
    return encode(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def end_of_members(group_id: str, member_ids: Sequence[str]) -> list[CoordinatorRecord]:
    """Delete members: their assignments first, their subscriptions last, as in Kafka."""
    keys: tuple[Callable[[str, str], MemberKey], ...] = (_standing_key, _target_key, _profile_key)
    return [encode(key(group_id, member_id), None) for key in keys for member_id in member_ids]


def end_of_group(group_id: str) -> list[CoordinatorRecord]:
    """Delete a group that has no members any more."""
    return [
        encode(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        encode(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        encode(ShareGroupMetadataKey(group_id=group_id), None),
    ]


def read_profile(value: ShareGroupMemberMetadataValue) -> ShareProfile:
    """Return a member's subscription."""
    return ShareProfile(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=frozenset(value.subscribed_topic_names),
    )


def read_standing(value: ShareGroupCurrentMemberAssignmentValue) -> ShareStanding:
    """Return a member's current assignment."""
    return ShareStanding(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=_slots(value.assigned_partitions),
    )


def read_target(value: ShareGroupTargetAssignmentMemberValue) -> Slots:
    """Return a member's target assignment."""
    return _slots(value.topic_partitions)


def read_states(value: ShareGroupStatePartitionMetadataValue) -> PartitionStates:
    """Return which partitions have delivery state."""
    return PartitionStates(
        initializing=_read_parts(value.initializing_topics),
        initialized=_read_parts(value.initialized_topics),
        deleting={TopicId(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
    )


def _slots(topics: Sequence[TopicPartitions] | Sequence[TopicPartition]) -> Slots:
    return frozenset(
        (TopicId(topic.topic_id), number) for topic in topics for number in topic.partitions
    )


def _parts(parts: Parts) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=part.name, partitions=sorted(part.partitions)
        )
        for topic_id, part in sorted(parts.items())
    ]


def _read_parts(topics: Sequence[TopicPartitionsInfo]) -> Parts:
    return {
        TopicId(topic.topic_id): TopicPart(topic.topic_name, frozenset(topic.partitions))
        for topic in topics
    }


def _profile_key(group_id: str, member_id: str) -> ShareGroupMemberMetadataKey:
    return ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _standing_key(group_id: str, member_id: str) -> ShareGroupCurrentMemberAssignmentKey:
    return ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> ShareGroupTargetAssignmentMemberKey:
    return ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
