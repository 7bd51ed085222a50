"""The share groups of one coordinator: heartbeats in, responses and records out.

A member uses heartbeats to join, to show that it is alive, and to leave; the response has its
assignment. A member that is silent for the session timeout is removed.

A heartbeat that requires it computes an assignment at once. Kafka waits a little between two
assignments of a group. While partitions of a group are being initialized, members get a short
heartbeat interval, so that they learn soon which partitions they can read; in Kafka they wait for
the usual one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from barnabas.groups.consumer.assignors.spec import NO_SLOTS
from barnabas.groups.consumer.consumer_member import by_topic
from barnabas.groups.directory import Directory
from barnabas.groups.group_counts import GroupCounts
from barnabas.groups.share import share_group_records as records
from barnabas.groups.share import share_heartbeat_fields as requests
from barnabas.groups.share import share_rebalance as rebalance
from barnabas.groups.share import share_replaying as replaying
from barnabas.groups.share.altering_offsets import AlteringOffsets
from barnabas.groups.share.deleting_states import DeletingStates
from barnabas.groups.share.partition_states import Parts
from barnabas.groups.share.settling import Settling
from barnabas.groups.share.share_describing import describe
from barnabas.groups.share.share_group import ShareGroup, existing
from barnabas.groups.share.share_group_sessions import ShareSessions
from barnabas.groups.share.share_member import JOINING, LEFT, ShareMember
from barnabas.groups.share.share_rebalance import Members, ShareEpochs
from barnabas.groups.share.state_requests import StateRequests
from barnabas.metadata.image import Image
from barnabas.metadata.share_group_config import ShareGroupConfig, resolve
from barnabas.model.coordination import Caller, CoordinatorRecord, Outcome, Scheduler
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import ShareStates
from barnabas.protocol.coordinator_codec import Stored
from barnabas.protocol.messages.share_group_describe import DescribedGroup
from barnabas.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

R = TypeVar("R")

UNSETTLED_MS = 200
"""The heartbeat interval of a member while partitions are being initialized."""
IMPATIENT_MS = 5000
"""How long the interval stays short; share coordinators that are away get less load after that."""


class ShareProtocol:
    """The rules of KIP-932, on the groups of a directory that follow them."""

    def __init__(
        self,
        settings: ShareSettings,
        scheduler: Scheduler,
        groups: Directory,
        image: Callable[[], Image],
        counts: GroupCounts,
        states: ShareStates,
    ) -> None:
        self._counts = counts
        self._settings = settings
        self._default_config = resolve({}, settings)
        self._scheduler = scheduler
        self._groups = groups
        self._image = image
        self._sessions = ShareSessions(scheduler, self._expire)
        state_requests = StateRequests(states, scheduler)
        self._settling = Settling(state_requests, scheduler, groups, image)
        self.altering = AlteringOffsets(state_requests, groups, image)
        self.deleting = DeletingStates(state_requests, self._settling, groups, image)
        self._topic_changes = 0

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller
    ) -> Outcome[ShareGroupHeartbeatResponse]:
        """Handle a heartbeat; raise the `ApiError` with which it is refused."""
        requests.check(request)
        if request.member_epoch == LEFT:
            return self._leave(request)
        return self._stay(request, caller)

    def describe(self, group_id: str) -> Outcome[DescribedGroup]:
        """Describe a group."""
        return Outcome(describe(existing(self._groups, group_id), self._image()))

    def initialized(self, group_id: str) -> Outcome[Mapping[TopicId, frozenset[int]]]:
        """Return the partitions of a group that have delivery state; none for no share group."""
        group = self._groups.get(group_id)
        parts = group.states.initialized if isinstance(group, ShareGroup) else {}
        return Outcome({topic_id: part.partitions for topic_id, part in parts.items()})

    def replay(self, stored: Stored) -> None:
        """Replay a record of a share group."""
        replaying.replay(self._groups, stored)

    def loaded(self) -> None:
        """Restart all sessions, and all requests to share coordinators."""
        for group in self._groups.values():
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    self._renew(group, member_id)
        self._settling.loaded()

    def topics_changed(self, deleted: Sequence[str]) -> list[CoordinatorRecord]:
        """Record that topics changed; return the records that forget deleted ones."""
        self._topic_changes += 1
        return self.deleting.forget_topics(deleted)

    def _stay(
        self, request: ShareGroupHeartbeatRequest, caller: Caller
    ) -> Outcome[ShareGroupHeartbeatResponse]:
        group = self._group_for(request)
        before = self._member_for(group, request)
        profile = requests.updated(before.profile, request, caller)
        member = replace(before, profile=profile)
        members = {**group.members, member.member_id: member}
        is_new = member.member_id not in group.members
        looks = is_new or profile != before.profile or group.topics_seen != self._topic_changes
        bump = is_new or profile.names != before.profile.names
        epochs = (
            self._move_group(group, members, bump=bump) if looks else rebalance.unchanged(group)
        )
        missing = self._missing(group, members) if looks else {}
        target = epochs.targets.get(member.member_id, NO_SLOTS)
        standing = before.standing.moved_to(epochs.assignment_epoch, target)
        member = replace(member, standing=standing)
        self._renew(group, member.member_id)
        return Outcome(
            self._response(request, before, member, self._interval_ms(group, missing)),
            _changes(group, before, member, epochs, missing),
            committed=lambda: self._begin(group.group_id, missing),
            refused=lambda _: group.look_again(),
        )

    def _move_group(self, group: ShareGroup, members: Members, *, bump: bool) -> ShareEpochs:
        """Return the epochs and the target after a heartbeat that changed something."""
        image = self._image()
        group.topics_seen = self._topic_changes
        epochs = rebalance.new_epoch(group, members, image, bump=bump)
        if epochs.group_epoch > group.epoch:
            self._counts.rebalances += 1
        if epochs.group_epoch <= group.assignment_epoch:
            return epochs
        return rebalance.new_targets(group, epochs, members, image, self._scheduler.wall_ms)

    def _missing(self, group: ShareGroup, members: Members) -> Parts:
        """Return the subscribed partitions that must be initialized now."""
        found = group.states.missing(rebalance.subscribed(members), self._image())
        altered = self.altering.is_under_way
        return {key: part for key, part in found.items() if not altered(group.group_id, key)}

    def _begin(self, group_id: str, missing: Parts) -> None:
        group = self._groups.get(group_id)
        if missing and isinstance(group, ShareGroup):
            group.asked_ms = self._scheduler.now_ms
            self._settling.initialize(group, missing)

    def _interval_ms(self, group: ShareGroup, missing: Parts) -> int:
        interval_ms = self._config(group).heartbeat_interval_ms
        waits = bool(missing)
        if group.states.initializing and group.asked_ms is not None:
            waits = waits or self._scheduler.now_ms - group.asked_ms < IMPATIENT_MS
        return min(interval_ms, UNSETTLED_MS) if waits else interval_ms

    def _leave(self, request: ShareGroupHeartbeatRequest) -> Outcome[ShareGroupHeartbeatResponse]:
        group = existing(self._groups, request.group_id)
        member = group.member(request.member_id)
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )
        return self._remove(group, member, response)

    def _expire(self, group_id: str, member_id: str) -> Outcome[None]:
        """Remove a member that is silent."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup) or member_id not in group.members:
            return Outcome(None)
        return self._remove(group, group.members[member_id], None)

    def _remove(self, group: ShareGroup, member: ShareMember, response: R) -> Outcome[R]:
        """Remove a member: its partitions must be assigned again."""
        group_id = group.group_id
        members = {name: other for name, other in group.members.items() if other is not member}
        epochs = rebalance.new_epoch(group, members, self._image(), bump=True)
        self._counts.rebalances += 1
        self._sessions.forget(group_id, member.member_id)
        group.look_again()
        return Outcome(
            response,
            [*records.end_of_members(group_id, [member.member_id]), *epochs.records],
            refused=lambda _: self._renew(group, member.member_id),
        )

    def _renew(self, group: ShareGroup, member_id: str) -> None:
        timeout_ms = self._config(group).session_timeout_ms
        self._sessions.renew(group.group_id, member_id, timeout_ms)

    def _config(self, group: ShareGroup) -> ShareGroupConfig:
        configs = self._image().group_configs.get(group.group_id)
        return self._default_config if configs is None else resolve(configs, self._settings)

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        """Return the group, or a new one for a member that joins."""
        if request.member_epoch == JOINING and request.group_id not in self._groups:
            return ShareGroup(request.group_id)
        return existing(self._groups, request.group_id)

    def _member_for(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
        """Return the member that sent a heartbeat, or a new one; raise if it is refused."""
        member_id, limit = request.member_id, self._settings.max_size
        if len(group.members) >= limit and member_id not in group.members:
            message = f"share group {group.group_id} has {limit} members, which is the maximum"
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
        if request.member_epoch == JOINING:
            return group.members.get(member_id) or ShareMember(member_id)
        member = group.member(member_id)
        _check_epoch(member, request.member_epoch)
        return member

    def _response(
        self,
        request: ShareGroupHeartbeatRequest,
        before: ShareMember,
        member: ShareMember,
        interval_ms: int,
    ) -> ShareGroupHeartbeatResponse:
        """Return the response to a member, with its assignment only if that may be new to it."""
        is_full = request.subscribed_topic_names is not None
        is_behind = request.member_epoch != before.standing.epoch
        changed = member.standing.assigned != before.standing.assigned
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.standing.epoch,
            heartbeat_interval_ms=interval_ms,
        )
        if is_full or is_behind or changed:
            response.assignment = Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=numbers)
                    for topic_id, numbers in by_topic(member.standing.assigned).items()
                ]
            )
        return response


def _changes(
    group: ShareGroup,
    before: ShareMember,
    member: ShareMember,
    epochs: ShareEpochs,
    missing: Parts,
) -> list[CoordinatorRecord]:
    """Return the records of a heartbeat."""
    group_id, is_new = group.group_id, member.member_id not in group.members
    changes: list[CoordinatorRecord] = []
    if is_new or member.profile != before.profile:
        changes.append(records.profile(group_id, member))
    changes += epochs.records
    if is_new or member.standing != before.standing:
        changes.append(records.standing(group_id, member))
    if missing:
        changes.append(records.partition_states(group_id, group.states.begun(missing)))
    return changes


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Raise FENCED_MEMBER_EPOCH if a member must join again.

    The previous epoch is accepted: the response with the new one may have been lost.
    """
    standing = member.standing
    if epoch not in {standing.epoch, standing.previous_epoch} or epoch > standing.epoch:
        message = f"the member epoch is {standing.epoch}, not {epoch}; give up all and rejoin"
        raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, message)
