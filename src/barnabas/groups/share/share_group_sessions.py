"""The session timer of each member of a share group."""

from collections.abc import Callable

from barnabas.model.coordination import Outcome, Scheduler

Expire = Callable[[str, str], Outcome[None]]
"""Removes a silent member of a group."""


class ShareSessions:
    """The timers of all members."""

    def __init__(self, scheduler: Scheduler, expire: Expire) -> None:
        self._scheduler = scheduler
        self._expire = expire

    def renew(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Start a session now."""
        self._scheduler.schedule(
            _session(group_id, member_id),
            timeout_ms,
            lambda: self._expire(group_id, member_id),
        )

    def forget(self, group_id: str, member_id: str) -> None:
        """Stop the timer."""
        self._scheduler.cancel(_session(group_id, member_id))


def _session(group_id: str, member_id: str) -> str:
    return f"share session {group_id!r} {member_id!r}"
