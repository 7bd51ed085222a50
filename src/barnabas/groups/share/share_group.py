"""A share group: its replayed state, and the state that follows from it.

    state    when
    -------  -----------------------
    Empty    there are no members
    Stable   there are members
    Dead     the group was deleted

A group without members keeps its epochs and its delivery state until it is deleted.
"""

from collections.abc import Collection
from dataclasses import replace

from barnabas.groups.consumer.assignors.spec import NO_SLOTS, Slots
from barnabas.groups.directory import Directory, GroupType
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share.partition_states import PartitionStates
from barnabas.groups.share.share_member import ShareMember, ShareProfile, ShareStanding
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition


class ShareGroup:
    """One group, as the `Group` of `groups/directory.py`."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Slots] = {}
        self.states = PartitionStates()
        self.is_dead = False
        self.topics_seen: int | None = None
        """The count of topic changes when the topics were last checked; None: check again."""
        self.asked_ms: int | None = None
        """When a heartbeat last had partitions initialized, by the monotonic clock."""
        self.failures = 0
        """How often in a row share coordinators have refused a request for this group."""

    @property
    def type(self) -> GroupType:
        """The protocol its members speak."""
        return GroupType.SHARE

    @property
    def protocol_type(self) -> str:
        """The protocol type of the members."""
        return "share"

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members

    @property
    def empty_since_ms(self) -> int | None:
        """None: a share group has no committed offsets that could expire."""
        return None

    @property
    def state(self) -> str:
        """The state, by the name that clients get."""
        if self.is_dead:
            return "Dead"
        return "Stable" if self.members else "Empty"

    def member(self, member_id: str) -> ShareMember:
        """Return a member, or raise."""
        found = self.members.get(member_id)
        if found is None:
            message = f"{member_id} is not a member of group {self.group_id}"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return found

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        """Refuse: a share group has no committed offsets."""
        message = f"group {self.group_id} is a share group, which has no committed offsets"
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        """Return False: a share group has no committed offsets."""
        return False

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let any client read, as in Kafka: there is nothing to read."""

    def touch(self, member_id: str) -> None:
        """Do nothing: there are no commits that could count as heartbeats."""

    def subscribes_to(self, topic: str) -> bool:
        """Tell whether a member reads a topic."""
        return any(topic in member.profile.names for member in self.members.values())

    def check_empty(self) -> None:
        """Raise NON_EMPTY_GROUP if there are members."""
        if self.members:
            message = f"group {self.group_id} has {len(self.members)} members; stop them first"
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, message)

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group."""
        return [
            *records.end_of_members(self.group_id, list(self.members)),
            *records.end_of_group(self.group_id),
        ]

    def look_again(self) -> None:
        """Have the next heartbeat check topics and partition states."""
        self.topics_seen = None

    def put_profile(self, member_id: str, profile: ShareProfile | None) -> None:
        """Replay a member's subscription, or its removal."""
        if profile is None:
            self.members.pop(member_id, None)
            return
        member = self.members.get(member_id) or ShareMember(member_id)
        self.members[member_id] = replace(member, profile=profile)

    def put_standing(self, member_id: str, standing: ShareStanding | None) -> None:
        """Replay a member's current assignment; None precedes the removal of the member."""
        member = self.members.get(member_id)
        if member is None and standing is None:
            return
        member = member or ShareMember(member_id)
        self.members[member_id] = replace(member, standing=standing or ShareStanding())

    def put_target(self, member_id: str, slots: Slots | None) -> None:
        """Replay a member's target assignment."""
        if slots is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = slots

    def put_states(self, states: PartitionStates) -> None:
        """Replay which partitions are initialized: others can be assigned now."""
        self.states = states
        self.look_again()

    def target_of(self, member_id: str) -> Slots:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, NO_SLOTS)


def existing(groups: Directory, group_id: str) -> ShareGroup:
    """Return a share group; raise GROUP_ID_NOT_FOUND for none, and for one of another type."""
    group = groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    message = f"group {group_id} {'does not exist' if group is None else 'is not a share group'}"
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)
