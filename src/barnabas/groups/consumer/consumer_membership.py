"""Finds the member that a heartbeat comes from, and fences members with a wrong epoch.

A member is fenced where its epoch is not the coordinator's: it must give up all it has and join
again. There is one way out. Where a response was lost, the member still is in the epoch before;
if all that it owns is still its own, its heartbeat counts. A heartbeat that joins always counts,
even that of a member: it says that it owns nothing, and continues from its state.

A static member (one with an instance id) that leaves for a while keeps what it has. It comes back
under a new member id, and takes the place of the one that left. While the old one has not left,
no other member gets its instance id. Kafka then refuses even the old one itself, if it was fenced
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
    """A member's place in its group, as it was before the heartbeat."""

    member: Member
    is_new: bool = False
    replaces: Member | None = None
    """The static member whose place it takes."""

    def moved(self, kept: Mapping[str, V]) -> Mapping[str, V]:
        """Return what is kept by member id, with the id of a static member that came back."""
        if self.replaces is None or self.replaces.member_id not in kept:
            return kept
        others = {name: value for name, value in kept.items() if name != self.replaces.member_id}
        return {**others, self.member.member_id: kept[self.replaces.member_id]}

    def taken_over(self, group: ConsumerGroup) -> list[CoordinatorRecord]:
        """Return the records that put a static member in the place of its former self."""
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
    """Find the member that a heartbeat comes from, or make room for a new one; raise else."""
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
    """Return a member of the group, which must be who it says it is."""
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
    # The response that told of a new epoch may have been lost.
    lost = epoch == standing.previous_epoch and epoch < standing.epoch
    if lost and owned is not None and all(slot in standing.assigned for slot in owned):
        return
    message = f"the member epoch is {standing.epoch}, not {epoch}; give up all and rejoin"
    raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, message)
