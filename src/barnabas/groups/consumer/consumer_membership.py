"""Finds the member that a heartbeat comes from, and fences members with a wrong epoch.

A member is fenced if its epoch differs from the coordinator's: it must give up all its partitions
and join again. There is one exception. If a response was lost, the member still has the previous
epoch; if all partitions that it owns are still its own, its heartbeat is accepted. A heartbeat that
joins is always accepted, even that of a member: it owns nothing, and continues from its state.

A static member (one with an instance id) that leaves temporarily keeps its partitions. It returns
under a new member id, and replaces the one that left. While the old one has not left, no other
member gets its instance id. In that case Kafka even refuses the old member itself, if it was fenced
and joins again, until its session is over; here it joins again like any other member.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from barnabas.groups.consumer import consumer_records as records
from barnabas.groups.consumer.consumer_group import ConsumerGroup
from barnabas.groups.consumer.consumer_member import JOINING, Member
from barnabas.groups.consumer.reconciliation import Owned
from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import ApiError, ErrorCode

V = TypeVar("V")


class Seat(NamedTuple):
    """A member and its group before the heartbeat."""

    member: Member
    is_new: bool = False
    replaces: Member | None = None
    """The static member that it replaces."""

    def moved(self, kept: Mapping[str, V]) -> Mapping[str, V]:
        """Return state that is kept by member id, with the new id of a static member."""
        if self.replaces is None or self.replaces.member_id not in kept:
            return kept
        others = {name: value for name, value in kept.items() if name != self.replaces.member_id}
        return {**others, self.member.member_id: kept[self.replaces.member_id]}

    def taken_over(self, group: ConsumerGroup) -> list[CoordinatorRecord]:
        """Return the records that replace a static member's earlier instance."""
        if self.replaces is None:
            return []
        former, group_id = self.replaces.member_id, group.group_id
        return [
            *records.end_of_members(group_id, [former]),
            records.profile(group_id, self.member),
            records.target(group_id, self.member.member_id, group.target_of(former)),
            records.standing(group_id, self.member),
        ]


def seat(
    group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, owned: Owned
) -> Seat:
    """Find the member that sent a heartbeat, or add a new one; raise if it is refused."""
    if epoch != JOINING:
        member = find(group, member_id, instance_id)
        _check_epoch(member, epoch, owned)
        return Seat(member)
    resident = None if instance_id is None else group.static_member(instance_id)
    if resident is not None and not (resident.member_id == member_id and resident.is_here):
        return _take_over(resident, member_id)
    known = group.members.get(member_id)
    return Seat(Member(member_id), is_new=True) if known is None else Seat(known)


def find(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """Return a member of the group; raise if its instance id does not match."""
    if instance_id is None:
        return group.member(member_id)
    resident = group.static_member(instance_id)
    if resident is None:
        message = f"instance id {instance_id} is unknown"
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    if resident.member_id != member_id:
        message = f"instance id {instance_id} belongs to member {resident.member_id}"
        raise ApiError(ErrorCode.FENCED_INSTANCE_ID, message)
    return resident


def _take_over(resident: Member, member_id: str) -> Seat:
    if resident.is_here:
        message = f"instance id {resident.profile.instance_id} is in use by {resident.member_id}"
        raise ApiError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return Seat(resident.returned_as(member_id), replaces=resident)


def _check_epoch(member: Member, epoch: int, owned: Owned) -> None:
    standing = member.standing
    if epoch == standing.epoch:
        return
    # The response with the new epoch may have been lost.
    lost = epoch == standing.previous_epoch and epoch < standing.epoch
    if lost and owned is not None and all(slot in standing.assigned for slot in owned):
        return
    message = f"the member epoch is {standing.epoch}, not {epoch}; give up all and rejoin"
    raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, message)
