"""A consumer group of KIP-848: its replayed state, and the state that follows from it.

    state        when
    -----------  -----------------------------------------------------------
    Empty        there are no members
    Assigning    the target is of an earlier epoch than the group
    Reconciling  some member has not reached the target
    Stable       every member has
    Dead         the group was deleted

A group without members keeps its epochs until it is deleted, so that a late heartbeat with an old
epoch does not match a new one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from barnabas.groups.consumer import consumer_records as records
from barnabas.groups.consumer.assignors.spec import NO_SLOTS, Slot, Slots
from barnabas.groups.consumer.consumer_member import LEFT, Member, Profile, ResolvedRegex, Standing
from barnabas.groups.consumer.subscriptions import subscribed_topics
from barnabas.groups.directory import GroupType
from barnabas.metadata.image import Image
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition


class ConsumerGroup:
    """One group, as the `Group` of `groups/directory.py`."""

    def __init__(self, group_id: str, image: Callable[[], Image]) -> None:
        self.group_id = group_id
        self._image = image
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Slots] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.has_partition_metadata = False
        self.is_dead = False
        self.empty_since_ms: int | None = None
        """When the last member left. It is not stored, and so is unknown after a restart."""
        self.topics_seen: int | None = None
        """The count of topic changes when the topics were last checked; None: check again."""
        self.looked_ms = 0
        """When the topics were last checked, by the monotonic clock."""
        self._owners: dict[Slot, str] = {}
        self._topics: frozenset[str] | None = None

    @property
    def type(self) -> GroupType:
        """The protocol its members speak."""
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        """The protocol type of the members."""
        return "consumer"

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members

    @property
    def state(self) -> str:
        """The state, by the name that clients get."""
        if self.is_dead:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reached = (
            m.standing.is_reconciled_to(self.assignment_epoch) for m in self.members.values()
        )
        return "Stable" if all(reached) else "Reconciling"

    def member(self, member_id: str) -> Member:
        """Return a member, or raise."""
        found = self.members.get(member_id)
        if found is None:
            message = f"{member_id} is not a member of group {self.group_id}"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return found

    def static_member(self, instance_id: str) -> Member | None:
        """Return the member with an instance id."""
        return self.members.get(self.static_members.get(instance_id, ""))

    def target_of(self, member_id: str) -> Slots:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, NO_SLOTS)

    def owner(self, slot: Slot) -> str | None:
        """Return the member that has a partition, or has not revoked it yet."""
        return self._owners.get(slot)

    def preferred_assignor(self, members: Mapping[str, Member]) -> str | None:
        """Return the assignor that most of these members prefer, if any does."""
        names = (member.profile.server_assignor for member in members.values())
        votes = Counter(name for name in names if name is not None)
        return max(votes, key=lambda name: (votes[name], name), default=None)

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        transactional: bool,
    ) -> None:
        """Raise the `ApiError` with which a commit is refused."""
        if epoch < 0 and not self.members:
            return
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return
        standing = self.member(member_id).standing
        if epoch != standing.epoch:
            raise _stale(epoch, standing)

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        """Tell whether a member may commit with an earlier epoch (KIP-1251).

        It may if it does not know its new epoch yet, and all partitions in the commit have been
        its own since the epoch that it names.
        """
        member = self.members.get(member_id)
        if member is None or not partitions or epoch >= member.standing.epoch:
            return False
        return all(self._had(member.standing, epoch, partition) for partition in partitions)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise the `ApiError` with which a fetch of offsets is refused."""
        if member_id is None and epoch < 0:
            return
        standing = self.member(member_id or "").standing
        if epoch != standing.epoch:
            raise _stale(epoch, standing)

    def subscribes_to(self, topic: str) -> bool:
        """Tell whether a member reads a topic, by name or by a pattern."""
        if self._topics is None:
            self._topics = subscribed_topics(self.members.values(), self.regexes)
        return topic in self._topics

    def touch(self, member_id: str) -> None:
        """Do nothing: a commit does not count as a heartbeat here."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group."""
        return [
            *records.end_of_members(self.group_id, list(self.members)),
            *(records.end_of_regex(self.group_id, pattern) for pattern in self.regexes),
            *records.end_of_group(self.group_id, partition_metadata=self.has_partition_metadata),
        ]

    def looked(self, topic_changes: int, now_ms: int) -> None:
        """Remember that the topics were checked, so that the next heartbeat need not do it."""
        self.topics_seen, self.looked_ms = topic_changes, now_ms

    def look_again(self) -> None:
        """Forget that the topics were checked: the result could not be stored."""
        self.topics_seen = None

    def note_emptiness(self, wall_ms: int) -> None:
        """Remember when the last member left."""
        if self.members:
            self.empty_since_ms = None
        elif self.empty_since_ms is None:
            self.empty_since_ms = wall_ms

    def put_profile(self, member_id: str, profile: Profile | None) -> None:
        """Replay a member's subscription, or its removal."""
        self._topics = None
        member = self.members.get(member_id)
        if profile is None:
            self._remove(member)
            return
        self.members[member_id] = replace(member or Member(member_id), profile=profile)
        if profile.instance_id is not None:
            self.static_members[profile.instance_id] = member_id

    def put_standing(self, member_id: str, standing: Standing | None) -> None:
        """Replay a member's current assignment; None removes it."""
        member = self.members.get(member_id)
        if member is None and standing is None:
            return
        member = member or Member(member_id)
        self._release(member)
        standing = standing or Standing(epoch=LEFT, previous_epoch=LEFT)
        self.members[member_id] = replace(member, standing=standing)
        self._owners.update(dict.fromkeys(standing.held(), member_id))

    def put_target(self, member_id: str, slots: Slots | None) -> None:
        """Replay a member's target assignment."""
        if slots is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = slots

    def put_regex(self, pattern: str, resolved: ResolvedRegex | None) -> None:
        """Replay the topics that a regular expression matched."""
        self._topics = None
        if resolved is None:
            self.regexes.pop(pattern, None)
        else:
            self.regexes[pattern] = resolved

    def _remove(self, member: Member | None) -> None:
        if member is None:
            return
        self._release(member)
        del self.members[member.member_id]
        instance_id = member.profile.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _release(self, member: Member) -> None:
        """Release a member's partitions, except those that another member has by now."""
        for slot in member.standing.held():
            if self._owners.get(slot) == member.member_id:
                del self._owners[slot]

    def _had(self, standing: Standing, epoch: int, partition: TopicPartition) -> bool:
        topic = self._image().topics.get(partition.topic)
        if topic is None:
            return False
        since = standing.held_since((topic.topic_id, partition.partition))
        return since is not None and epoch >= since


def _stale(epoch: int, standing: Standing) -> ApiError:
    message = f"the member epoch is {standing.epoch}, not {epoch}"
    return ApiError(ErrorCode.STALE_MEMBER_EPOCH, message)
