"""Sessions of classic members: a member that sends nothing for its session timeout is removed.

Heartbeats are frequent and sessions hardly ever end, so a heartbeat only moves a member's deadline.
The timer fires at the deadline that was current when it was set. If the deadline has moved, the
timer is set again for the rest.
"""

from collections.abc import Callable, Sequence

from barnabas.groups.classic.classic_group import ClassicGroup
from barnabas.groups.classic.classic_member import Member
from barnabas.model.coordination import CoordinatorRecord, Outcome, Scheduler

Expired = Callable[[ClassicGroup, str], Sequence[CoordinatorRecord]]


class Sessions:
    """The sessions of all members, and of clients that got a member id and have not joined yet."""

    def __init__(self, scheduler: Scheduler, expired: Expired) -> None:
        self._scheduler = scheduler
        self._expired = expired

    def renew(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        """Start a member's session now, with its session timeout or another time."""
        chosen_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.deadline_ms = self._scheduler.now_ms + chosen_ms
        if member.alarm_ms is None or member.alarm_ms > member.deadline_ms:
            self._watch(group, member)

    def invite(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Wait for a client that must join with this member id."""
        self._scheduler.schedule(
            _name(group, member_id),
            timeout_ms,
            lambda: Outcome(None, self._expired(group, member_id)),
        )

    def end(self, group: ClassicGroup, member_id: str) -> None:
        """Stop watching a member, or a client that had to join."""
        self._scheduler.cancel(_name(group, member_id))

    def _watch(self, group: ClassicGroup, member: Member) -> None:
        member.alarm_ms = member.deadline_ms
        delay_ms = member.deadline_ms - self._scheduler.now_ms
        name = _name(group, member.member_id)
        self._scheduler.schedule(name, delay_ms, lambda: self._ring(group, member))

    def _ring(self, group: ClassicGroup, member: Member) -> Outcome[None]:
        member.alarm_ms = None
        if self._scheduler.now_ms < member.deadline_ms:
            self._watch(group, member)
            return Outcome(None)
        return Outcome(None, self._expired(group, member.member_id))


def _name(group: ClassicGroup, member_id: str) -> str:
    return f"session of {member_id!r} in {group.group_id!r}"
