"""Tests share groups with random members, topics, answers of share coordinators, and restarts."""

from collections.abc import Callable, Collection

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.groups.share.share_group import ShareGroup
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from tests.support.talk.share_group_talk import GROUP, ShareGroupMember, ShareGroupTalk

NAMES = st.sampled_from(["a", "b", "c", "d"])
TOPICS = st.sampled_from(["x", "y"])
PERIOD_MS = 5000
REJOIN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}
NOT_NOW = {ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND}


def succeeds(operation: Callable[[], object], expected: Collection[ErrorCode]) -> bool:
    """Tell whether an operation is carried out, and not refused with an expected error."""
    try:
        operation()
    except ApiError as error:
        if error.code not in expected:
            raise
        return False
    return True


class ShareGroupMachine(RuleBasedStateMachine):
    """One group. What its members read must be initialized, and settle once all is quiet."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = ShareGroupTalk({"x": 2})
        self.members: dict[str, ShareGroupMember] = {}
        self.wants: dict[str, tuple[str, ...]] = {}

    @property
    def group(self) -> ShareGroup | None:
        found = self.talk.machine.groups.get(GROUP)
        return found if isinstance(found, ShareGroup) else None

    @rule(name=NAMES, topics=st.sets(TOPICS, min_size=1))
    def join(self, name: str, topics: set[str]) -> None:
        member = self.members.setdefault(name, self.talk.member(name))
        self.wants[name] = tuple(sorted(topics))
        member.join(*self.wants[name])

    @rule(name=NAMES)
    def heartbeat(self, name: str) -> None:
        if name in self.members:
            self._heartbeat(name)

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        member = self.members.pop(name, None)
        if member is None:
            return
        succeeds(member.leave, REJOIN)

    @rule(name=TOPICS)
    def change_topic(self, name: str) -> None:
        topic = self.talk.image.topics.get(name)
        if topic is None:
            self.talk.create_topic(name, 1)
        elif len(topic.partitions) < 5:
            self.talk.grow_topic(name)
        else:
            self.talk.delete_topic(name)

    @rule(at_once=st.booleans(), refuses=st.booleans())
    def change_share_coordinators(self, *, at_once: bool, refuses: bool) -> None:
        self.talk.states.answers_at_once = at_once
        refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.talk.states.refusal = refusal if refuses else None

    @rule(lost=st.booleans())
    def answer(self, *, lost: bool) -> None:
        if lost:
            self.talk.states.lose_all()
        else:
            self.talk.states.answer_all()

    @rule(name=TOPICS)
    def delete_offsets(self, name: str) -> None:
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name)]
        request = DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics)
        delete = self.talk.machine.share.deleting.delete
        succeeds(lambda: self.talk.begin(lambda: delete(request)), NOT_NOW)

    @precondition(lambda self: self.group is not None and self.group.is_empty)
    @rule()
    def delete_group(self) -> None:
        self.talk.begin(lambda: self.talk.machine.delete_group(GROUP))

    @rule(duration_ms=st.sampled_from([10, 1000, PERIOD_MS, 31_000]))
    def pass_time(self, duration_ms: int) -> None:
        self.talk.pass_time(duration_ms)

    @rule()
    def restart(self) -> None:
        self.talk.restart()

    @rule()
    def compact(self) -> None:
        self.talk.log = list({record.key: record for record in self.talk.log}.values())

    @rule()
    def quiet(self) -> None:
        """Everything answers: soon all members read, and all partitions are read."""
        self.talk.states.answers_at_once, self.talk.states.refusal = True, None
        self.talk.states.answer_all()
        self.talk.pass_time(31_000)
        for _ in range(4):
            for name in list(self.members):
                self._heartbeat(name)
            self.talk.pass_time(PERIOD_MS)
        self._check_settled()

    @invariant()
    def what_is_assigned_was_initialized(self) -> None:
        group = self.group
        if group is None:
            return
        parts = group.states.initialized.items()
        there = {(topic_id, number) for topic_id, part in parts for number in part.partitions}
        names = self.talk.image.names
        for member in group.members.values():
            for topic_id, number in member.standing.assigned:
                assert topic_id not in names or (topic_id, number) in there

    @invariant()
    def replay_leads_to_the_same_state(self) -> None:
        before = self._stored()
        machine = self.talk.replayed()
        group = machine.groups.get(GROUP)
        assert before == (self._stored_of(group) if isinstance(group, ShareGroup) else None)

    def _stored(self) -> object:
        return None if self.group is None else self._stored_of(self.group)

    def _stored_of(self, group: ShareGroup) -> object:
        epochs = (group.epoch, group.assignment_epoch, group.metadata_hash)
        return (epochs, group.members, group.targets, group.states)

    def _heartbeat(self, name: str) -> None:
        member = self.members[name]
        if not succeeds(member.heartbeat, REJOIN):
            member.join(*self.wants[name])

    def _check_settled(self) -> None:
        topics = self.talk.image.topics
        read = set()
        for name, member in self.members.items():
            found = [topic for topic in self.wants[name] if topic in topics]
            assert bool(member.assigned) == bool(found)
            assert member.assigned <= self.talk.slots(*found)
            read |= member.assigned
        wanted = {topic for name in self.members for topic in self.wants[name] if topic in topics}
        assert read == self.talk.slots(*wanted)
        if self.group is not None:
            assert self.group.states.is_settled


ShareGroupMachine.TestCase.settings = settings(deadline=None, stateful_step_count=30)
TestShareGroups = ShareGroupMachine.TestCase
