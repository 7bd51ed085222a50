"""Members of a classic group that send requests to a coordinator's state machine, without a node.

talk = ClassicTalk()
alice = talk.member("alice")
joined = alice.join()          # waits, as JoinGroup does
talk.pass_time(100)
assert joined.answer.generation_id == 1
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Generic, TypeVar

from barnabas.groups.classic.classic_group import ClassicGroup
from barnabas.groups.group_machine import GroupMachine
from barnabas.groups.offsets import EXPIRE
from barnabas.metadata.image import Image
from barnabas.model.coordination import Caller, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.settings import SECOND_MS, GroupSettings
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.support.talk.coordination import MachineRunner

R = TypeVar("R")

GROUP = "group"
SESSION_MS = 10 * SECOND_MS
REBALANCE_MS = 60 * SECOND_MS
NEWEST_JOIN = 9


class Asked(Generic[R]):
    """One request; its response is there once the machine has given it."""

    def __init__(self, ask: Callable[[], Pending[R]], answered: list["Asked[Any]"]) -> None:
        self._answer: R | None = None
        self._answered = answered
        self.refusal: ErrorCode | None = None
        try:
            ask().when_done(self._take)
        except ApiError as error:
            self.refusal = error.code
            answered.append(self)

    @property
    def waiting(self) -> bool:
        """Whether there is neither a response nor an error yet."""
        return self._answer is None and self.refusal is None

    @property
    def answer(self) -> R:
        """The response."""
        assert self.refusal is None, self.refusal.name
        assert self._answer is not None, "the machine has not answered"
        return self._answer

    @property
    def code(self) -> ErrorCode:
        """The error code of the response, or of the error that was raised."""
        answer: Any = self._answer
        return ErrorCode(answer.error_code) if self.refusal is None else self.refusal

    def _take(self, answer: R) -> None:
        self._answer = answer
        self._answered.append(self)


class ClassicTalk:
    """A state machine, and members that send it requests."""

    def __init__(self, settings: GroupSettings | None = None) -> None:
        chosen = settings or GroupSettings()
        image = Image()
        self.rng = Random(1)
        self.answered: list[Asked[Any]] = []
        """Every request that was answered, in the order of the responses."""
        self.runner = MachineRunner(
            lambda scheduler: GroupMachine(chosen, scheduler, lambda: image, self.rng)
        )

    @property
    def timers(self) -> set[str]:
        """The timers of members; the expiration of offsets is not one of them."""
        return self.runner.timers - {EXPIRE}

    @property
    def group(self) -> ClassicGroup:
        """The group that all members join."""
        group = self.runner.machine.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def member(self, name: str, **facts: Any) -> "TalkingMember":
        """Return a client that is not a member yet; `facts` set its attributes."""
        member = TalkingMember(self, name)
        for fact, value in facts.items():
            assert hasattr(member, fact)
            setattr(member, fact, value)
        return member

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass."""
        self.runner.pass_time(duration_ms)

    def stable(self, *members: "TalkingMember") -> None:
        """Create a new group of these members, the first of which leads."""
        joined = [member.join() for member in members]
        self.pass_time(SECOND_MS)
        for member, join in zip(members, joined, strict=True):
            member.take(join)
        assert members[0].leads
        synced = [members[0].sync({m.member_id: m.name.encode() for m in members})]
        synced += [member.sync() for member in members[1:]]
        assert [sync.answer.assignment for sync in synced] == [m.name.encode() for m in members]

    def stable_with_new_member(self) -> tuple["TalkingMember", "TalkingMember"]:
        """Return the only member of a group, and a client that has got its member id."""
        member, new = self.member("alice"), self.member("bob")
        self.stable(member)
        new.member_id = new.join_once().answer.member_id
        return member, new

    def leave(self, *leavers: MemberIdentity) -> Asked[LeaveGroupResponse]:
        """Remove members, as an operator does."""
        return self.ask(lambda machine: machine.classic.leave(GROUP, list(leavers)))

    def describe(self, version: int = 6, group_id: str = GROUP) -> DescribedGroup:
        """Return the group as operators see it."""
        return self.ask(lambda machine: machine.classic.describe(group_id, version)).answer

    def ask(self, operation: Callable[[GroupMachine], Outcome[R]]) -> Asked[R]:
        """Run an operation."""
        return Asked(lambda: self.runner.run(operation), self.answered)


class TalkingMember:
    """A client: its own state, and the responses it got."""

    def __init__(self, talk: ClassicTalk, name: str) -> None:
        self._talk = talk
        self.name = name
        self.version = NEWEST_JOIN
        self.instance_id: str | None = None
        self.session_ms = SESSION_MS
        self.rebalance_ms = REBALANCE_MS
        self.protocol_type = "consumer"
        self.protocols: dict[str, bytes] = {"range": name.encode()}
        self.member_id = ""
        self.generation = -1
        self.leads = False

    def join(self) -> Asked[JoinGroupResponse]:
        """Join; join again if the first response only contains a member id."""
        asked = self.join_once()
        if not asked.waiting and asked.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = asked.answer.member_id
            return self.join_once()
        return asked

    def join_once(self) -> Asked[JoinGroupResponse]:
        """Send one JoinGroup."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self.protocols.items()
            ],
        )
        caller = Caller(self.name, "/test", self.version, self._talk.runner.wall_ms)
        return self._talk.ask(lambda machine: machine.classic.join(request, caller))

    def take(self, joined: Asked[JoinGroupResponse]) -> None:
        """Apply a successful JoinGroup response."""
        answer = joined.answer
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self.leads = answer.leader == self.member_id

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> Asked[SyncGroupResponse]:
        """Send SyncGroup, with all assignments if the client leads."""
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )
        return self._talk.ask(lambda machine: machine.classic.sync(request))

    def heartbeat(self) -> ErrorCode:
        """Send a heartbeat; return the error code."""
        return self.send_heartbeat().code

    def send_heartbeat(self, *, waits: bool = False) -> Asked[HeartbeatResponse]:
        """Send a heartbeat."""
        request = self._heartbeat()
        return self._talk.ask(lambda machine: machine.classic.heartbeat(request, waits=waits))

    def change_subscription(self) -> None:
        """Change the subscription while a heartbeat waits."""
        request = self._heartbeat()
        self._talk.ask(lambda machine: machine.classic.hasten(request))

    def _heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def leave(self) -> ErrorCode:
        """Leave; return the error code."""
        asked = self.send_leave()
        if asked.refusal is not None:
            return asked.refusal
        return ErrorCode(asked.answer.members[0].error_code)

    def send_leave(self) -> Asked[LeaveGroupResponse]:
        """Leave."""
        leaver = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        return self._talk.leave(leaver)

    def commits(self, *, transactional: bool = False) -> ErrorCode:
        """Return the error code that a commit would get."""
        try:
            self._talk.group.check_commit(
                self.member_id, self.instance_id, self.generation, transactional=transactional
            )
        except ApiError as error:
            return error.code
        return ErrorCode.NONE
