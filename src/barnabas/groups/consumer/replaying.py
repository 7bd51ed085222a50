"""Replays stored records into groups: only replay changes durable state."""

from collections.abc import Callable

from barnabas.groups.consumer import consumer_records as records
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.consumer.consumer_member import ResolvedRegex
from barnabas.groups.directory import Directory
from barnabas.metadata.image import Image
from barnabas.protocol.coordinator_codec import Stored
from barnabas.protocol.coordinator_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
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
)
from barnabas.protocol.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from barnabas.protocol.message import Message

NO_ASSIGNMENT_EPOCH = -1

GroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupRegularExpressionKey
)


def replay(groups: Directory, stored: Stored, image: Callable[[], Image]) -> ConsumerGroup | None:
    """Replay a record; return the group that it concerns, if any.

    Tombstones of unknown items are ignored: compaction may have removed the earlier records.
    """
    key = stored.key
    if not isinstance(key, GroupKey):
        return None
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if stored.value is None:
            return None
        group = ConsumerGroup(key.group_id, image)
        groups[key.group_id] = group
    if isinstance(key, ConsumerGroupMetadataKey) and stored.value is None:
        group.is_dead = True
        del groups[key.group_id]
    else:
        _put(group, key, stored.value)
    return group


def _put(group: ConsumerGroup, key: GroupKey, value: Message | None) -> None:
    match key, value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ConsumerGroupPartitionMetadataKey(), _:
            group.has_partition_metadata = value is not None
        case ConsumerGroupTargetAssignmentMetadataKey(), _:
            group.assignment_epoch = NO_ASSIGNMENT_EPOCH
            if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                group.assignment_epoch = value.assignment_epoch
        case ConsumerGroupRegularExpressionKey(), _:
            _put_regex(group, key.regular_expression, value)
        case _:
            _put_member(group, key, value)


def _put_regex(group: ConsumerGroup, pattern: str, value: Message | None) -> None:
    resolved = None
    if isinstance(value, ConsumerGroupRegularExpressionValue):
        resolved = ResolvedRegex(frozenset(value.topics), value.timestamp)
    group.put_regex(pattern, resolved)


def _put_member(group: ConsumerGroup, key: GroupKey, value: Message | None) -> None:
    match key, value:
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            group.put_profile(key.member_id, records.read_profile(value))
        case ConsumerGroupMemberMetadataKey(), _:
            group.put_profile(key.member_id, None)
        case (
            ConsumerGroupCurrentMemberAssignmentKey(),
            ConsumerGroupCurrentMemberAssignmentValue(),
        ):
            group.put_standing(key.member_id, records.read_standing(value))
        case ConsumerGroupCurrentMemberAssignmentKey(), _:
            group.put_standing(key.member_id, None)
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, records.read_target(value))
        case ConsumerGroupTargetAssignmentMemberKey(), _:
            group.put_target(key.member_id, None)
        case _:
            raise AssertionError(f"{key} does not belong to a member")
