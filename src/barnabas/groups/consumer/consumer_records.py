"""The records of a consumer group, as Kafka stores them, from and to the nouns used here.

What a group was computed from is kept as a hash of its topics (`ConsumerGroupMetadata`); Kafka
before 4.1 kept the topics themselves (`ConsumerGroupPartitionMetadata`), which is read over and
ended with the group.
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
    """Store the group epoch, and what the topics looked like."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode(ConsumerGroupMetadataKey(group_id=group_id), value)


def profile(group_id: str, member: Member) -> CoordinatorRecord:
    """Store what a member said of itself."""
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
    """Store where a member stands."""
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
    """Store what a member is to have."""
    topics = [
        TopicPartition(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in by_topic(slots).items()
    ]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return encode(_target_key(group_id, member_id), value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    """Store for which group epoch the target is, and when it was worked out."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=now_ms
    )
    return encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def regex(group_id: str, pattern: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """Store what a regular expression matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), timestamp=resolved.resolved_ms
    )
    return encode(_regex_key(group_id, pattern), value)


def end_of_regex(group_id: str, pattern: str) -> CoordinatorRecord:
    """Forget a regular expression that no member subscribes to."""
    return encode(_regex_key(group_id, pattern), None)


def end_of_members(group_id: str, member_ids: Sequence[str]) -> list[CoordinatorRecord]:
    """Forget members: where they stand first, what they said last, so that none is half there."""
    keys: tuple[Callable[[str, str], MemberKey], ...] = (_standing_key, _target_key, _profile_key)
    return [encode(key(group_id, member_id), None) for key in keys for member_id in member_ids]


def end_of_group(group_id: str, *, partition_metadata: bool) -> list[CoordinatorRecord]:
    """Forget a group that has no members any more."""
    ended = [encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)]
    if partition_metadata:
        ended.append(encode(ConsumerGroupPartitionMetadataKey(group_id=group_id), None))
    return [*ended, encode(ConsumerGroupMetadataKey(group_id=group_id), None)]


def read_profile(value: ConsumerGroupMemberMetadataValue) -> Profile:
    """Return what a member said of itself."""
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
    """Return where a member stands."""
    known = value.state in {state.value for state in MemberState}
    return Standing(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_read_held(value.assigned_partitions, value.member_epoch),
        pending_revocation=_read_held(value.partitions_pending_revocation, value.member_epoch),
    )


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Slots:
    """Return what a member is to have."""
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
    """Return what is held; where no epochs are stored, as before Kafka 4.3, since the member's."""
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
