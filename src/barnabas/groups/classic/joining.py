"""JoinGroup: checks whether a client may join, gives it a member id, and starts a rebalance.

A new member has no member id. A dynamic one first gets an id and then joins with it (KIP-394), so
that clients that stop waiting leave no unknown members behind. Before version 4 it joins at once,
as static members do (KIP-345): they are known by their instance id, and replace their earlier
instance.
"""

from dataclasses import replace
from random import Random

from barnabas.groups.classic import classic_answers
from barnabas.groups.classic.classic_group import ClassicGroup, State
from barnabas.groups.classic.classic_member import Member, Protocols
from barnabas.groups.classic.rebalances import Rebalances
from barnabas.groups.classic.stored import group_record
from barnabas.model.coordination import Caller, Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import MINUTE_MS, GroupSettings
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_FROM = 4
SKIP_ASSIGNMENT_FROM = 9
NEWCOMER_TIMEOUT_MS = 5 * MINUTE_MS
"""How long a new member's JoinGroup may wait: it has no session before its first generation."""

Answer = Outcome[JoinGroupResponse]


class Joining:
    """The rules of JoinGroup, for existing groups."""

    def __init__(self, settings: GroupSettings, rebalances: Rebalances, rng: Random) -> None:
        self._settings = settings
        self._rebalances = rebalances
        self._rng = rng

    def join(self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller) -> Answer:
        """Handle a JoinGroup; raise the `ApiError` with which it is refused."""
        if not self._has_room(group, request.member_id):
            return self._no_room(group, request.member_id)
        names = {protocol.name for protocol in request.protocols}
        if not group.takes(request.protocol_type, names):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id:
            return self._join_again(group, request, caller)
        if request.group_instance_id is not None:
            return self._join_static(group, request, caller)
        return self._join_dynamic(group, request, caller)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Tell whether the group has room for one more member.

        While a rebalance is prepared, only members that have joined count: if the group is too
        large because the limit was lowered, the last to join are refused.
        """
        if group.state is State.EMPTY:
            return True
        inside = group.joining if group.state is State.PREPARING else group.members
        return member_id in inside or len(inside) < self._settings.max_size

    def _no_room(self, group: ClassicGroup, member_id: str) -> Answer:
        full = classic_answers.join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        if member_id not in group.members and member_id not in group.invited:
            return Outcome(full)
        self._rebalances.remove(group, member_id)
        return Outcome(full, self._rebalances.go_on(group) if self._is_preparing(group) else [])

    def _join_dynamic(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller
    ) -> Answer:
        member_id = self._new_id(caller.client_id)
        if caller.version < MEMBER_ID_REQUIRED_FROM:
            return self._add(group, member_id, request, caller)
        group.invited[member_id] = None
        self._rebalances.sessions.invite(group, member_id, request.session_timeout_ms)
        return Outcome(classic_answers.join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _join_static(
        self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller
    ) -> Answer:
        instance_id = request.group_instance_id
        assert instance_id is not None
        member_id = self._new_id(instance_id)
        known_as = group.instances.get(instance_id)
        if known_as is None:
            return self._add(group, member_id, request, caller)
        return self._replace(group, group.members[known_as], member_id, request, caller)

    def _join_again(self, group: ClassicGroup, request: JoinGroupRequest, caller: Caller) -> Answer:
        """Handle the JoinGroup of a client that has a member id."""
        member_id = request.member_id
        if member_id in group.invited and request.group_instance_id is None:
            return self._add(group, member_id, request, caller)
        group.check_member(member_id, request.group_instance_id)
        member = group.members[member_id]
        if self._has_news(group, member, request):
            return self._update(group, member, request, caller)
        return Outcome(group.joined(member_id))

    def _has_news(self, group: ClassicGroup, member: Member, request: JoinGroupRequest) -> bool:
        """Tell whether a member's JoinGroup asks for a rebalance, or is part of one.

        Otherwise it has missed the last answer. A leader that joins a stable group wants to assign
        again: it knows of changes that members need not know of, such as new partitions.
        """
        if group.state is State.PREPARING or member.protocols != _protocols(request):
            return True
        return group.state is State.STABLE and group.leader == member.member_id

    def _add(
        self, group: ClassicGroup, member_id: str, request: JoinGroupRequest, caller: Caller
    ) -> Answer:
        if self._is_preparing(group) and group.is_first_rebalance:
            group.has_newcomers = True
        member = _member(member_id, request, caller)
        group.add(member, request.protocol_type)
        answer = group.wait_to_join(member_id)
        self._rebalances.sessions.renew(group, member, NEWCOMER_TIMEOUT_MS)
        return Outcome(answer, self._rebalances.go_on(group))

    def _update(
        self, group: ClassicGroup, member: Member, request: JoinGroupRequest, caller: Caller
    ) -> Answer:
        group.update(
            member,
            _protocols(request),
            request.session_timeout_ms,
            _rebalance_timeout_ms(request, caller),
        )
        answer = group.wait_to_join(member.member_id)
        return Outcome(answer, self._rebalances.go_on(group))

    def _replace(
        self,
        group: ClassicGroup,
        old: Member,
        member_id: str,
        request: JoinGroupRequest,
        caller: Caller,
    ) -> Answer:
        """Replace a static member's earlier instance, without a rebalance if possible."""
        led = group.leader
        new = replace(_member(member_id, request, caller), assignment=old.assignment, is_new=False)
        self._swap(group, old, new)
        if group.state is State.STABLE and group.favourite_protocol() == group.protocol:
            return Outcome(
                self._back_again(group, new, led, caller),
                [group_record(group)],
                refused=lambda _: self._swap(group, new, old),
            )
        answer = group.wait_to_join(member_id)
        return Outcome(answer, self._rebalances.go_on(group))

    def _swap(self, group: ClassicGroup, old: Member, new: Member) -> None:
        self._rebalances.sessions.end(group, old.member_id)
        group.substitute(old, new)
        new.alarm_ms = None
        self._rebalances.sessions.renew(group, new)

    def _back_again(
        self, group: ClassicGroup, member: Member, led: str | None, caller: Caller
    ) -> JoinGroupResponse:
        """Answer a static member with the present generation, of which it is still a member.

        A leader must skip the assignment, which exists (KIP-814). The response to clients that do
        not know this does not name them as the leader.
        """
        answer = group.joined(member.member_id)
        if caller.version >= SKIP_ASSIGNMENT_FROM:
            answer.skip_assignment = group.leader == member.member_id
        else:
            answer.leader, answer.members = led or "", []
        return answer

    def _is_preparing(self, group: ClassicGroup) -> bool:
        return group.state is State.PREPARING

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}-{random_uuid(self._rng)}"


def random_uuid(rng: Random) -> str:
    """Return a random UUID (version 4), as text."""
    bits = rng.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | 4 << 76 | 2 << 62
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _protocols(request: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def _rebalance_timeout_ms(request: JoinGroupRequest, caller: Caller) -> int:
    """Return how long a member may take to join; version 0 has no separate field for it."""
    return request.rebalance_timeout_ms if caller.version else request.session_timeout_ms


def _member(member_id: str, request: JoinGroupRequest, caller: Caller) -> Member:
    return Member(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=_rebalance_timeout_ms(request, caller),
        protocols=_protocols(request),
        is_new=True,
    )
