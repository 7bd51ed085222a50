"""Moves a member from its current assignment to its target assignment.

A member first revokes the partitions that it must. Only its own heartbeat, which no longer reports
the partitions, completes that: then they are free, and their next owner gets them with its next
heartbeat. A member that neither loses nor gets a partition does not wait.

    state                  heartbeat comes, and ...                       then
    ---------------------  ---------------------------------------------  ---------------------
    STABLE                 its epoch is that of the target                stays as it is
    UNREVOKED_PARTITIONS   it still owns (or does not say) what is        stays as it is
                           pending
    any other case: keep the partitions that are also in the target, and ...
                           it still owns other partitions                 UNREVOKED_PARTITIONS
                           nothing to revoke, and all new partitions      STABLE, epoch of the
                           are free: it gets them now                     target
                           another member still has a new partition       UNRELEASED_PARTITIONS,
                                                                          epoch of the target

A member stays in its epoch until it has revoked everything, also if the target changes meanwhile
and there is more to revoke. The previous epoch is kept because the response with the new one may be
lost.

A target holds only topics that its member subscribes to: subscriptions and regular expressions
change in the same batch of records as the target that follows from them.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from barnabas.groups.consumer.assignors.spec import Slot, Slots
from barnabas.groups.consumer.consumer_member import Held, MemberState, Standing
from barnabas.model.errors import ApiError, ErrorCode

Owned = Collection[Slot] | None
"""The partitions that a member reports; None if it reports none, because nothing has changed."""


class Target(NamedTuple):
    """A member's target assignment, and its assignment epoch."""

    epoch: int
    slots: Slots


def reconcile(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    """Return a member's current assignment after a heartbeat."""
    match standing.state:
        case MemberState.STABLE:
            if standing.epoch == target.epoch:
                return standing
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_owns(owned, standing.pending_revocation):
                return standing
        case MemberState.UNRELEASED_PARTITIONS:
            pass
        case MemberState.UNKNOWN:
            if owned is None or owned:
                message = "where the member stands is not known; it must give up all and rejoin"
                raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return _towards(standing, target, owned, is_free)


def _towards(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    kept = {slot: since for slot, since in standing.assigned.items() if slot in target.slots}
    leaving = {slot: since for slot, since in standing.assigned.items() if slot not in kept}
    if leaving and _still_owns(owned, leaving):
        return Standing(
            epoch=standing.epoch,
            previous_epoch=standing.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=leaving,
        )
    coming = target.slots - kept.keys()
    free = {slot: target.epoch for slot in coming if is_free(slot)}
    all_free = len(free) == len(coming)
    return Standing(
        epoch=target.epoch,
        previous_epoch=standing.epoch,
        state=MemberState.STABLE if all_free else MemberState.UNRELEASED_PARTITIONS,
        assigned=kept | free,
    )


def _still_owns(owned: Owned, slots: Held) -> bool:
    return owned is None or any(slot in slots for slot in owned)
