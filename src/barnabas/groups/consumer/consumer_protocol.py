"""The consumer groups of one coordinator: heartbeats in, responses and records out.

A member uses heartbeats to join, to show that it is alive, to report its partitions, and to leave.
The response has everything that it must know. Two timers run for each member: its session, which
every heartbeat renews, and, while it has partitions to revoke, the rebalance timeout that it asked
for. When either expires, the coordinator removes the member, and its partitions are free.

A heartbeat that requires it matches patterns and computes an assignment at once. Kafka matches
patterns in the background, and waits a little between two assignments of a group.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from barnabas.groups.consumer import consumer_membership as membership
from barnabas.groups.consumer import consumer_records as records
from barnabas.groups.consumer import rebalance, replaying, requests
from barnabas.groups.consumer.assignors.spec import NO_SLOTS
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.consumer.consumer_member import (
    JOINING,
    LEFT,
    LEFT_FOR_A_WHILE,
    Member,
    by_topic,
)
from barnabas.groups.consumer.consumer_membership import Seat
from barnabas.groups.consumer.describe import describe
from barnabas.groups.consumer.member_clocks import Sessions
from barnabas.groups.consumer.rebalance import Epochs, Matching, Occasion
from barnabas.groups.consumer.reconciliation import Target, reconcile
from barnabas.groups.directory import Directory, GroupType
from barnabas.groups.group_counts import GroupCounts
from barnabas.metadata.image import Image
from barnabas.model.coordination import Caller, CoordinatorRecord, Outcome, Scheduler
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import Stored
from barnabas.protocol.messages.consumer_group_describe import DescribedGroup
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

MEMBER_ID_BYTES = 16

R = TypeVar("R")

UNSETTLED_MS = 200
"""The heartbeat interval of a member whose partitions are not those of its target yet."""


class ConsumerProtocol:
    """The rules of KIP-848, on the groups of a directory that follow them."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        groups: Directory,
        image: Callable[[], Image],
        rng: Random,
        counts: GroupCounts,
    ) -> None:
        self._counts = counts
        self._settings = settings
        self._scheduler = scheduler
        self._groups = groups
        self._image = image
        self._rng = rng
        self._sessions = Sessions(scheduler, settings.consumer_session_timeout_ms, self._expire)
        self._topic_changes = 0
        self._is_loaded = False

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> Outcome[ConsumerGroupHeartbeatResponse]:
        """Handle a heartbeat; raise the `ApiError` with which it is refused."""
        requests.check(request, caller.version)
        if request.member_epoch in {LEFT, LEFT_FOR_A_WHILE}:
            return self._leave(request)
        return self._stay(request, caller)

    def describe(self, group_id: str) -> Outcome[DescribedGroup]:
        """Describe a group."""
        return Outcome(describe(self._existing(group_id), self._image()))

    def replay(self, stored: Stored) -> None:
        """Replay a record of a consumer group."""
        group = replaying.replay(self._groups, stored, self._image)
        if group is not None and self._is_loaded:
            group.note_emptiness(self._scheduler.wall_ms)

    def loaded(self) -> None:
        """Restart all sessions: members could not send heartbeats without a coordinator."""
        self._is_loaded = True
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._sessions.watch(group.group_id, member)

    def topics_changed(self) -> None:
        """Record that topics changed: groups check them with their next heartbeat."""
        self._topic_changes += 1

    def _stay(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> Outcome[ConsumerGroupHeartbeatResponse]:
        group, ended = self._group_for(request)
        self._check_room(group, request.member_id)
        owned = requests.owned_by(request)
        member_id = request.member_id or self._new_member_id()
        seat = membership.seat(group, member_id, request.instance_id, request.member_epoch, owned)
        profile = requests.updated(seat.member.profile, request, caller)
        member = replace(seat.member, profile=profile)
        epochs = self._move_group(group, seat, member, caller)
        target = Target(epochs.assignment_epoch, epochs.targets.get(member_id, NO_SLOTS))
        standing = reconcile(
            seat.member.standing, target, owned, lambda slot: group.owner(slot) in {None, member_id}
        )
        member = replace(member, standing=standing)
        changes = [*ended, *seat.taken_over(group)]
        if seat.is_new or profile != seat.member.profile:
            changes.append(records.profile(group.group_id, member))
        changes += epochs.records
        if seat.is_new or standing != seat.member.standing:
            changes.append(records.standing(group.group_id, member))
            self._sessions.watch_revocation(group.group_id, member)
        self._sessions.renew(group.group_id, member_id)
        settled = standing.is_reconciled_to(epochs.assignment_epoch)
        response = self._response(request, seat, member, settled=settled)
        return Outcome(response, changes, refused=lambda _: group.look_again())

    def _move_group(
        self, group: ConsumerGroup, seat: Seat, member: Member, caller: Caller
    ) -> Epochs:
        """Return the epochs and the target after a heartbeat; they rarely change."""
        bump = group.epoch == 0 or not member.profile.subscribes_as(seat.member.profile)
        stale = self._is_stale(group)
        targets = seat.moved(group.targets)
        if not (bump or stale or group.epoch > group.assignment_epoch):
            return Epochs(group.assignment_epoch, targets, [])
        members = {**seat.moved(group.members), member.member_id: member}
        image, now_ms = self._image(), self._scheduler.wall_ms
        matching = Matching(image, now_ms, caller.describes)
        regexes, changes = rebalance.refresh_regexes(group, members, matching, again=stale)
        moved_on = rebalance.new_group_epoch(
            group, members, regexes, image, bump=bump or bool(changes)
        )
        if stale:
            group.looked(self._topic_changes, self._scheduler.now_ms)
        if moved_on is not None:
            changes.append(moved_on)
            self._counts.rebalances += 1
        elif group.epoch <= group.assignment_epoch:
            return Epochs(group.assignment_epoch, targets, changes)
        epoch = group.epoch + (moved_on is not None)
        occasion = Occasion(members, targets, regexes, image, now_ms)
        epochs = rebalance.new_targets(group, epoch, occasion)
        return epochs._replace(records=[*changes, *epochs.records])

    def _is_stale(self, group: ConsumerGroup) -> bool:
        """Tell whether to check topics: they changed, or patterns are due again."""
        interval_ms = self._settings.consumer_regex_refresh_interval_ms
        due = bool(group.regexes) and self._scheduler.now_ms - group.looked_ms >= interval_ms
        return due or group.topics_seen != self._topic_changes

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> Outcome[ConsumerGroupHeartbeatResponse]:
        group = self._existing(request.group_id)
        member = membership.find(group, request.member_id, request.instance_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )
        if request.member_epoch == LEFT_FOR_A_WHILE:
            return Outcome(response, [records.standing(group.group_id, member.away())])
        return self._remove(group, member, response)

    def _expire(self, group_id: str, member_id: str, epoch: int | None) -> Outcome[None]:
        """Remove a member that is silent, or has not left an epoch in time."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return Outcome(None)
        member = group.members.get(member_id)
        if member is None or epoch not in {None, member.standing.epoch}:
            return Outcome(None)
        return self._remove(group, member, None)

    def _remove(self, group: ConsumerGroup, member: Member, response: R) -> Outcome[R]:
        """Remove a member: its partitions are free, and must be assigned again."""
        group_id = group.group_id
        members = {name: other for name, other in group.members.items() if other is not member}
        image, now_ms = self._image(), self._scheduler.wall_ms
        matching = Matching(image, now_ms)
        regexes, changes = rebalance.refresh_regexes(group, members, matching, again=False)
        epoch = rebalance.new_group_epoch(group, members, regexes, image, bump=True)
        assert epoch is not None
        self._counts.rebalances += 1
        self._sessions.forget(group_id, member.member_id)
        return Outcome(
            response,
            [*records.end_of_members(group_id, [member.member_id]), *changes, epoch],
            refused=lambda _: self._sessions.watch(group_id, member),
        )

    def _group_for(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
        """Return the group, or a new one for a member that joins; delete an empty classic group."""
        group = self._groups.get(request.group_id)
        if request.member_epoch != JOINING or isinstance(group, ConsumerGroup):
            return self._existing(request.group_id), []
        if group is None:
            return ConsumerGroup(request.group_id, self._image), []
        if group.is_empty and group.type is GroupType.CLASSIC:
            return ConsumerGroup(request.group_id, self._image), group.tombstones()
        return self._existing(request.group_id), []

    def _existing(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        message = f"Group {group_id} {'not found' if group is None else 'is not a consumer group'}."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def _check_room(self, group: ConsumerGroup, member_id: str) -> None:
        limit = self._settings.max_size
        if len(group.members) >= limit and member_id not in group.members:
            message = f"The consumer group has reached its maximum capacity of {limit} members."
            raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def _new_member_id(self) -> str:
        """Generate an id in Kafka's form, which never begins with a dash."""
        made_up = "-"
        while made_up.startswith("-"):
            made_up = urlsafe_b64encode(self._rng.randbytes(MEMBER_ID_BYTES)).decode().rstrip("=")
        return made_up

    def _response(
        self,
        request: ConsumerGroupHeartbeatRequest,
        seat: Seat,
        member: Member,
        *,
        settled: bool,
    ) -> ConsumerGroupHeartbeatResponse:
        """Return the response to a member, with its assignment only if that is new to it.

        A member that waits for partitions gets a short interval: others may revoke them soon.
        """
        interval_ms = self._settings.consumer_heartbeat_interval_ms
        assigned = member.standing.assigned
        changed = assigned.keys() != seat.member.standing.assigned.keys()
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.standing.epoch,
            heartbeat_interval_ms=interval_ms if settled else min(interval_ms, UNSETTLED_MS),
        )
        if changed or requests.is_full(request):
            response.assignment = Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=topic_id, partitions=numbers
                    )
                    for topic_id, numbers in by_topic(assigned).items()
                ]
            )
        return response
