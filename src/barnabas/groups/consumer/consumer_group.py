"""A consumer group: what was replayed, and what follows from it.

    state        when
    -----------  -----------------------------------------------------------
    Empty        there are no members
    Assigning    the target is of an earlier epoch than the group
    Reconciling  some member has not reached the target
    Stable       every member has
    Dead         the group was ended

A group without members keeps its epochs until it is ended, lest a late heartbeat of an earlier
time fits a later one.
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
        """When the last member left; not stored, and so not known after a restart."""
        self.topics_seen: int | None = None
        """How often topics had changed when they were last looked at; None is to look again."""
        self.looked_ms = 0
        """When they were last looked at, by the clock that never jumps."""
        self._owners: dict[Slot, str] = {}
        self._topics: frozenset[str] | None = None

    @property
    def type(self) -> GroupType:
        """The protocol its members speak."""
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        """What the members are."""
        return "consumer"

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members

    @property
    def state(self) -> str:
        """The state as clients read it."""
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
        """Return the member that goes by an instance id."""
        return self.members.get(self.static_members.get(instance_id, ""))

    def target_of(self, member_id: str) -> Slots:
        """Return what a member is to have."""
        return self.targets.get(member_id, NO_SLOTS)

    def owner(self, slot: Slot) -> str | None:
        """Return who holds a partition, or still has to give it up."""
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
        """Tell whether a member may commit under an epoch that is over (KIP-1251).

        It may where its epoch moved on without its knowing, and all that it commits was its own
        in the epoch it names and still is.
        """
        member = self.members.get(member_id)
        if member is None or not partitions or epoch >= member.standing.epoch:
            return False
        return all(self._had(member.standing, epoch, partition) for partition in partitions)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise the `ApiError` with which a look at the offsets is refused."""
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
        """Do nothing: a commit is no heartbeat here."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that end the group."""
        return [
            *records.end_of_members(self.group_id, list(self.members)),
            *(records.end_of_regex(self.group_id, pattern) for pattern in self.regexes),
            *records.end_of_group(self.group_id, partition_metadata=self.has_partition_metadata),
        ]

    def looked(self, topic_changes: int, now_ms: int) -> None:
        """Remember that the topics were looked at, so that it need not be done again."""
        self.topics_seen, self.looked_ms = topic_changes, now_ms

    def look_again(self) -> None:
        """Forget it: what was seen could not be stored."""
        self.topics_seen = None

    def note_emptiness(self, wall_ms: int) -> None:
        """Remember since when there are no members."""
        if self.members:
            self.empty_since_ms = None
        elif self.empty_since_ms is None:
            self.empty_since_ms = wall_ms

    def put_profile(self, member_id: str, profile: Profile | None) -> None:
        """Take in what a member said of itself, or that it is gone."""
        self._topics = None
        member = self.members.get(member_id)
        if profile is None:
            self._remove(member)
            return
        self.members[member_id] = replace(member or Member(member_id), profile=profile)
        if profile.instance_id is not None:
            self.static_members[profile.instance_id] = member_id

    def put_standing(self, member_id: str, standing: Standing | None) -> None:
        """Take in where a member stands; None is nowhere, with nothing."""
        member = self.members.get(member_id)
        if member is None and standing is None:
            return
        member = member or Member(member_id)
        self._release(member)
        standing = standing or Standing(epoch=LEFT, previous_epoch=LEFT)
        self.members[member_id] = replace(member, standing=standing)
        self._owners.update(dict.fromkeys(standing.held(), member_id))

    def put_target(self, member_id: str, slots: Slots | None) -> None:
        """Take in what a member is to have."""
        if slots is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = slots

    def put_regex(self, pattern: str, resolved: ResolvedRegex | None) -> None:
        """Take in what a regular expression matched."""
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
        """Free what a member held, unless it is another's by now."""
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
