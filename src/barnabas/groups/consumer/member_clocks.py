"""The two timers of a member: its session, and its time to revoke partitions."""

from collections.abc import Callable

from barnabas.groups.consumer.consumer_member import Member, MemberState
from barnabas.model.coordination import Outcome, Scheduler

Expire = Callable[[str, str, int | None], Outcome[None]]
"""Removes a member of a group; with an epoch, only if the member is still in that epoch."""


class Sessions:
    """The timers of all members."""

    def __init__(self, scheduler: Scheduler, timeout_ms: int, expire: Expire) -> None:
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._expire = expire

    def watch(self, group_id: str, member: Member) -> None:
        """Start the session timer, and the other one if there are partitions to revoke."""
        self.renew(group_id, member.member_id)
        self.watch_revocation(group_id, member)

    def renew(self, group_id: str, member_id: str) -> None:
        """Start a session now."""
        self._scheduler.schedule(
            _session(group_id, member_id),
            self._timeout_ms,
            lambda: self._expire(group_id, member_id, None),
        )

    def watch_revocation(self, group_id: str, member: Member) -> None:
        """Start the timer of a member with partitions to revoke; stop it for any other."""
        member_id, epoch = member.member_id, member.standing.epoch
        if member.standing.state is not MemberState.UNREVOKED_PARTITIONS:
            self._scheduler.cancel(_revocation(group_id, member_id))
            return
        self._scheduler.schedule(
            _revocation(group_id, member_id),
            member.profile.rebalance_timeout_ms,
            lambda: self._expire(group_id, member_id, epoch),
        )

    def forget(self, group_id: str, member_id: str) -> None:
        """Stop both timers."""
        self._scheduler.cancel(_session(group_id, member_id))
        self._scheduler.cancel(_revocation(group_id, member_id))


def _session(group_id: str, member_id: str) -> str:
    return f"consumer session {group_id!r} {member_id!r}"


def _revocation(group_id: str, member_id: str) -> str:
    return f"consumer revocation {group_id!r} {member_id!r}"
