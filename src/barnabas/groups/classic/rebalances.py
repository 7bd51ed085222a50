"""Moves a group from one generation to the next, and applies its timeouts.

Members must join within the largest rebalance timeout among them. Members that do not are removed,
except static ones, whose session decides. A group that was empty first waits for more members
(`initial_rebalance_delay_ms`, again while new members join, but no longer than the rebalance
timeout). The same timeout limits how long members may take to ask for their assignments.
"""

from barnabas.groups.classic import classic_answers
from barnabas.groups.classic.classic_group import ClassicGroup, State, answer
from barnabas.groups.classic.classic_sessions import Sessions
from barnabas.groups.classic.stored import group_record
from barnabas.groups.group_counts import GroupCounts
from barnabas.model.coordination import CoordinatorRecord, Outcome, Scheduler
from barnabas.model.errors import ErrorCode
from barnabas.model.settings import GroupSettings

Records = list[CoordinatorRecord]
"""The records to store; only a group that becomes empty has any."""


class Rebalances:
    """The rules of rebalances, for all groups."""

    def __init__(self, settings: GroupSettings, scheduler: Scheduler, counts: GroupCounts) -> None:
        self._counts = counts
        self._settings = settings
        self._scheduler = scheduler
        self.sessions = Sessions(scheduler, self._expired)

    def go_on(self, group: ClassicGroup) -> Records:
        """Begin a rebalance because a member joined, changed or left; or continue it."""
        if group.state is State.PREPARING:
            return self._complete_if_joined(group)
        return self.prepare(group)

    def prepare(self, group: ClassicGroup) -> Records:
        """Make all members join again."""
        if group.state is State.COMPLETING:
            self.drop_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._stop_waiting_for_syncs(group)
        group.is_first_rebalance = group.state is State.EMPTY
        group.has_newcomers = False
        group.enter(State.PREPARING)
        group.call_to_rejoin()
        if group.is_first_rebalance:
            delay_ms = self._settings.initial_rebalance_delay_ms
            self._wait_for_more_members(group, delay_ms, group.rebalance_timeout_ms - delay_ms)
            return []
        if group.has_all_joined:
            return self._complete(group)
        self._wait_for_joins(group)
        return []

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member, or a pending one; the caller starts the rebalance."""
        group.remove(member_id)
        self.sessions.end(group, member_id)

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """Record that a member asked for its assignment."""
        group.unsynced.pop(member_id, None)
        if not group.unsynced:
            self._stop_waiting_for_syncs(group)

    def hand_out(self, group: ClassicGroup) -> None:
        """Send the waiting members their assignments; the group is stable."""
        group.assigned_generation = group.generation
        for member_id, member in group.members.items():
            if member_id in group.syncing:
                answer(group.syncing, member_id, group.synced(member_id))
                self.sessions.renew(group, member)
        group.enter(State.STABLE)

    def drop_assignments(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Drop this generation's assignments, and fail the requests that wait for them."""
        for member_id, member in group.members.items():
            member.assignment = b""
            if answer(group.syncing, member_id, classic_answers.sync_refused(code)):
                self.sessions.renew(group, member)

    def bury(self, group: ClassicGroup) -> None:
        """Forget a group that was deleted."""
        group.enter(State.DEAD)
        self._scheduler.cancel(_join_phase(group))
        self._scheduler.cancel(_sync_phase(group))
        for member_id in [*group.members, *group.invited]:
            self.remove(group, member_id)

    def _complete_if_joined(self, group: ClassicGroup) -> Records:
        if group.is_first_rebalance or not group.has_all_joined:
            return []
        return self._complete(group)

    def _complete(self, group: ClassicGroup) -> Records:
        """Begin the next generation with the members that have joined."""
        self._scheduler.cancel(_join_phase(group))
        late = [member for name, member in group.members.items() if name not in group.joining]
        for member in late:
            if member.instance_id is None:
                self.remove(group, member.member_id)
        if group.members and not group.elect_leader():
            # Only static members are left, and none has joined: wait until one joins or expires.
            self._wait_for_joins(group)
            return []
        group.begin_generation()
        self._counts.rebalances += 1
        if not group.members:
            return [group_record(group)]
        self._announce(group)
        return []

    def _announce(self, group: ClassicGroup) -> None:
        for member_id, member in group.members.items():
            answer(group.joining, member_id, group.joined(member_id))
            self.sessions.renew(group, member)
            member.is_new = False
        self._scheduler.schedule(
            _sync_phase(group),
            group.rebalance_timeout_ms,
            lambda: Outcome(None, self._sync_phase_over(group)),
        )

    def _wait_for_joins(self, group: ClassicGroup) -> None:
        self._scheduler.schedule(
            _join_phase(group),
            group.rebalance_timeout_ms,
            lambda: Outcome(None, self._complete(group)),
        )

    def _wait_for_more_members(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        self._scheduler.schedule(
            _join_phase(group),
            delay_ms,
            lambda: Outcome(None, self._after_initial_delay(group, delay_ms, max(remaining_ms, 0))),
        )

    def _after_initial_delay(
        self, group: ClassicGroup, delay_ms: int, remaining_ms: int
    ) -> Records:
        if not group.has_newcomers or not remaining_ms:
            return self._complete(group)
        group.has_newcomers = False
        next_ms = min(self._settings.initial_rebalance_delay_ms, remaining_ms)
        self._wait_for_more_members(group, next_ms, remaining_ms - delay_ms)
        return []

    def _stop_waiting_for_syncs(self, group: ClassicGroup) -> None:
        group.unsynced.clear()
        self._scheduler.cancel(_sync_phase(group))

    def _sync_phase_over(self, group: ClassicGroup) -> Records:
        if not group.unsynced:
            return []
        for member_id in list(group.unsynced):
            self.remove(group, member_id)
        return self.prepare(group)

    def _expired(self, group: ClassicGroup, member_id: str) -> Records:
        """Remove a member whose session expired; one that waits for our answer has not expired.

        New members are the exception: a client that stopped waiting joins again under another
        member id, and the first one would stay forever.
        """
        member = group.members.get(member_id)
        if member is not None:
            waits = member_id in group.joining or member_id in group.syncing
            if waits and not member.is_new:
                return []
        self.remove(group, member_id)
        if group.state is State.PREPARING:
            return self._complete(group) if group.has_all_joined else []
        return self.prepare(group) if member is not None else []


def _join_phase(group: ClassicGroup) -> str:
    return f"join phase of {group.group_id!r}"


def _sync_phase(group: ClassicGroup) -> str:
    return f"sync phase of {group.group_id!r}"
