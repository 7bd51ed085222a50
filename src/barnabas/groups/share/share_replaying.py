"""Replays stored records into share groups: only replay changes durable state."""

from barnabas.groups.directory import Directory
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share.partition_states import PartitionStates
from barnabas.groups.share.share_group import ShareGroup
from barnabas.protocol.coordinator_codec import Stored
from barnabas.protocol.coordinator_records.share_group_current_member_assignment import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
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
)
from barnabas.protocol.coordinator_records.share_group_target_assignment_member import (
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
)
from barnabas.protocol.coordinator_records.share_group_target_assignment_metadata import (
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from barnabas.protocol.message import Message

NO_ASSIGNMENT_EPOCH = -1

ShareKey = (
    ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupStatePartitionMetadataKey
    | ShareGroupMemberMetadataKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupTargetAssignmentMemberKey
)


def is_of_share_group(stored: Stored) -> bool:
    """Tell whether a record belongs to a share group."""
    return isinstance(stored.key, ShareKey)


def replay(groups: Directory, stored: Stored) -> None:
    """Replay a record.

    Tombstones of unknown items are ignored: compaction may have removed the earlier records.
    """
    key = stored.key
    assert isinstance(key, ShareKey)
    group = groups.get(key.group_id)
    if not isinstance(group, ShareGroup):
        if stored.value is None:
            return
        group = ShareGroup(key.group_id)
        groups[key.group_id] = group
    if isinstance(key, ShareGroupMetadataKey) and stored.value is None:
        group.is_dead = True
        del groups[key.group_id]
    else:
        _put(group, key, stored.value)


def _put(group: ShareGroup, key: ShareKey, value: Message | None) -> None:
    match key, value:
        case ShareGroupMetadataKey(), ShareGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ShareGroupTargetAssignmentMetadataKey(), _:
            group.assignment_epoch = NO_ASSIGNMENT_EPOCH
            if isinstance(value, ShareGroupTargetAssignmentMetadataValue):
                group.assignment_epoch = value.assignment_epoch
        case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
            group.put_states(records.read_states(value))
        case ShareGroupStatePartitionMetadataKey(), _:
            group.put_states(PartitionStates())
        case _:
            _put_member(group, key, value)


def _put_member(group: ShareGroup, key: ShareKey, value: Message | None) -> None:
    match key, value:
        case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
            group.put_profile(key.member_id, records.read_profile(value))
        case ShareGroupMemberMetadataKey(), _:
            group.put_profile(key.member_id, None)
        case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
            group.put_standing(key.member_id, records.read_standing(value))
        case ShareGroupCurrentMemberAssignmentKey(), _:
            group.put_standing(key.member_id, None)
        case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, records.read_target(value))
        case ShareGroupTargetAssignmentMemberKey(), _:
            group.put_target(key.member_id, None)
        case _:
            raise AssertionError(f"{key} does not belong to a member")
