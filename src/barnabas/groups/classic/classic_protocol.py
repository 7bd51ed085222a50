"""The entry point for requests to classic groups, and the replay of their records."""

from collections.abc import Iterator
from random import Random

from barnabas.groups.classic.classic_describing import described
from barnabas.groups.classic.classic_group import ClassicGroup, State
from barnabas.groups.classic.joining import Joining
from barnabas.groups.classic.rebalances import Rebalances
from barnabas.groups.classic.stored import group_record, restored, take_assignments
from barnabas.groups.classic.syncing import Syncing
from barnabas.groups.directory import Directory, Group, GroupType
from barnabas.groups.group_counts import GroupCounts
from barnabas.model.coordination import Caller, CoordinatorRecord, Outcome, Scheduler
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored
from barnabas.protocol.coordinator_records.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
)
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicProtocol:
    """All classic groups of one coordinator."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        groups: Directory,
        rng: Random,
        counts: GroupCounts,
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._groups = groups
        self._rebalances = Rebalances(settings, scheduler, counts)
        self._joining = Joining(settings, self._rebalances, rng)
        self._syncing = Syncing(self._rebalances)
        self._founded: dict[str, ClassicGroup] = {}
        """Groups whose first record will be replayed next."""
        self._is_loaded = False

    # Records

    def replay(self, stored: Stored) -> None:
        """Replay the record of a group, or its deletion.

        While the coordinator runs, it wrote the records itself: only the assignments are news.
        """
        key, value = stored
        assert isinstance(key, GroupMetadataKey)
        group = self._groups.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self._groups[key.group]
                self._rebalances.bury(group)
            return
        assert isinstance(value, GroupMetadataValue)
        if not self._is_loaded:
            self._groups[key.group] = restored(key.group, value, self._scheduler)
            return
        if not isinstance(group, ClassicGroup):
            group = self._groups[key.group] = self._founded.pop(key.group)
        take_assignments(group, value)

    def loaded(self) -> None:
        """Start every member's session timeout; shrink groups that are too large."""
        self._is_loaded = True
        for group in list(self._classic_groups()):
            for member in group.members.values():
                self._rebalances.sessions.renew(group, member)
            if len(group.members) > self._settings.max_size:
                self._rebalances.prepare(group)

    # Requests

    def join(self, request: JoinGroupRequest, caller: Caller) -> Outcome[JoinGroupResponse]:
        """Add a member, or add one to a rebalance."""
        low_ms, high_ms = (
            self._settings.min_session_timeout_ms,
            self._settings.max_session_timeout_ms,
        )
        if not low_ms <= request.session_timeout_ms <= high_ms:
            raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._joining.join(group, request, caller)
        if group is not None and (not group.is_empty or group.type is GroupType.SHARE):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self._found(group, request, caller)

    def sync(self, request: SyncGroupRequest) -> Outcome[SyncGroupResponse]:
        """Give a member its assignment."""
        return self._syncing.sync(self._group(request.group_id), request)

    def heartbeat(
        self, request: HeartbeatRequest, *, waits: bool = False
    ) -> Outcome[HeartbeatResponse]:
        """Extend a member's session; answer whether it has to join again.

        The answer may wait until the member has to join, or for a limited time. Heartbeats of
        static members do not wait: when such a client closes, it waits for pending answers.
        """
        group = self._group(request.group_id)
        member_id = request.member_id
        group.check_generation(member_id, request.group_instance_id, request.generation_id)
        member = group.members[member_id]
        self._rebalances.sessions.renew(group, member)
        if group.state is State.PREPARING:
            return Outcome(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        # Clients send three or more heartbeats in a session, and wait at least that long.
        wait_ms = min(self._settings.heartbeat_wait_ms, member.session_timeout_ms // 3)
        if waits and wait_ms and group.state is State.STABLE and member.instance_id is None:
            return Outcome(self._listen(group, member_id, wait_ms))
        return Outcome(HeartbeatResponse())

    def hasten(self, request: HeartbeatRequest) -> Outcome[None]:
        """Answer a member's waiting heartbeat, because its next request has arrived."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            group.no_news(request.member_id)
        return Outcome(None)

    def leave(self, group_id: str, leavers: list[MemberIdentity]) -> Outcome[LeaveGroupResponse]:
        """Remove members, which other clients may ask for as well; each has its own result."""
        group = self._group(group_id)
        before = len(group.members)
        results = [self._leave(group, leaver) for leaver in leavers]
        records = []
        if group.state is State.PREPARING or len(group.members) < before:
            records = self._rebalances.go_on(group)
        return Outcome(LeaveGroupResponse(members=results), records)

    def describe(self, group_id: str, version: int) -> Outcome[DescribedGroup]:
        """Describe a group, or answer that it does not exist."""
        return Outcome(described(group_id, self._groups.get(group_id), version))

    # Between them

    def _listen(
        self, group: ClassicGroup, member_id: str, wait_ms: int
    ) -> Pending[HeartbeatResponse]:
        def over() -> Outcome[None]:
            group.no_news(member_id)
            return Outcome(None)

        name = f"heartbeat of {member_id!r} in {group.group_id!r}"
        self._scheduler.schedule(name, wait_ms, over)
        return group.wait_for_news(member_id)

    def _leave(self, group: ClassicGroup, leaver: MemberIdentity) -> MemberResponse:
        answer = MemberResponse(
            member_id=leaver.member_id, group_instance_id=leaver.group_instance_id
        )
        try:
            self._rebalances.remove(group, _member_id(group, leaver))
        except ApiError as error:
            answer.error_code = error.code
        return answer

    def _found(
        self, replaced: Group | None, request: JoinGroupRequest, caller: Caller
    ) -> Outcome[JoinGroupResponse]:
        """Create a group; it replaces an empty one of another protocol."""
        group = ClassicGroup(request.group_id, self._scheduler)
        empty = group_record(group)
        outcome = self._joining.join(group, request, caller)
        assert not outcome.records, "a new group waits for more members"
        outcome.records = [*_ends(replaced), empty]
        outcome.refused = lambda _: self._bury_unborn(group)
        self._founded[group.group_id] = group
        return outcome

    def _bury_unborn(self, group: ClassicGroup) -> None:
        del self._founded[group.group_id]
        self._rebalances.bury(group)

    def _group(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def _classic_groups(self) -> Iterator[ClassicGroup]:
        return (group for group in self._groups.values() if isinstance(group, ClassicGroup))


def _member_id(group: ClassicGroup, leaver: MemberIdentity) -> str:
    """Return the member that a LeaveGroup names; tools name static members by instance id only."""
    if leaver.member_id in group.invited:
        return leaver.member_id
    if not leaver.member_id:
        known_as = group.instances.get(leaver.group_instance_id or "")
        if known_as is None or leaver.group_instance_id is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return known_as
    group.check_member(leaver.member_id, leaver.group_instance_id)
    return leaver.member_id


def _ends(replaced: Group | None) -> list[CoordinatorRecord]:
    """Return the records that delete a replaced group; the new one overwrites a classic record."""
    if replaced is None or replaced.type is GroupType.CLASSIC:
        return []
    return replaced.tombstones()
