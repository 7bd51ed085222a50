"""Moves a member from its current assignment to its target assignment.

A member first gives up what it must. Only its own heartbeat, in which the partitions are no longer
among those it owns, ends that: then they are free, and their next owner gets them with its next
heartbeat. A member that neither gives up nor gets a partition does not wait.

    state                  heartbeat comes, and ...                       then
    ---------------------  ---------------------------------------------  ---------------------
    STABLE                 its epoch is that of the target                stays as it is
    UNREVOKED_PARTITIONS   it still owns (or does not say) what is        stays as it is
                           pending
    any other case: hold what the target and it have in common, and ...
                           it still owns something else                   UNREVOKED_PARTITIONS
                           nothing to give up, all that is to come is     STABLE, epoch of the
                           free, and its own now                          target
                           something that is to come is another's still   UNRELEASED_PARTITIONS,
                                                                          epoch of the target

A member stays in its epoch until it has given everything up, also where the target changes
meanwhile and there is more to give up. The previous epoch is kept because the response that told of
a new one may be lost.

A target holds only topics that its member subscribes to: subscriptions and regular expressions
change in the same batch of records as the target that follows from them.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from barnabas.groups.consumer.assignors.spec import Slot, Slots
from barnabas.groups.consumer.consumer_member import Held, MemberState, Standing
from barnabas.model.errors import ApiError, ErrorCode

Owned = Collection[Slot] | None
"""What a member says that it owns; None where it says nothing, because nothing has changed."""


class Target(NamedTuple):
    """What a member is to have, and the assignment epoch from which on."""

    epoch: int
    slots: Slots


def reconcile(
    standing: Standing, target: Target, owned: Owned, is_free: Callable[[Slot], bool]
) -> Standing:
    """Return where a member stands after a heartbeat."""
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
