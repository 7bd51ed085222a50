"""Tests the table of `groups/consumer/reconciliation.py`, line by line."""

import pytest

from barnabas.groups.consumer.assignors.spec import Slot
from barnabas.groups.consumer.consumer_member import MemberState, Standing
from barnabas.groups.consumer.reconciliation import Target, reconcile
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId

A, B, C, D = ((TopicId(bytes(16)), number) for number in range(4))
STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def target(epoch: int, *slots: Slot) -> Target:
    return Target(epoch, frozenset(slots))


def all_free(slot: Slot) -> bool:
    return True


def test_nothing_changes_in_the_epoch_of_the_target() -> None:
    here = Standing(epoch=3, previous_epoch=2, assigned={A: 2})
    assert reconcile(here, target(3, A, B), {A}, all_free) is here


def test_what_is_free_is_given_at_once_and_the_epoch_of_each_is_kept() -> None:
    here = Standing(epoch=3, previous_epoch=2, assigned={A: 2})
    there = reconcile(here, target(5, A, B), None, all_free)
    assert there == Standing(epoch=5, previous_epoch=3, assigned={A: 2, B: 5})


def test_what_another_holds_is_waited_for() -> None:
    here = Standing(epoch=3, previous_epoch=2, assigned={A: 2})
    waiting = reconcile(here, target(5, A, B, C), None, lambda slot: slot == C)
    assert waiting == Standing(epoch=5, previous_epoch=3, state=UNRELEASED, assigned={A: 2, C: 5})
    still = reconcile(waiting, target(5, A, B, C), None, lambda slot: False)
    assert still == Standing(epoch=5, previous_epoch=5, state=UNRELEASED, assigned={A: 2, C: 5})
    done = reconcile(still, target(5, A, B, C), None, all_free)
    assert done == Standing(epoch=5, previous_epoch=5, assigned={A: 2, C: 5, B: 5})


def test_what_must_go_goes_before_anything_comes() -> None:
    here = Standing(epoch=3, previous_epoch=2, assigned={A: 2, B: 3})
    asked = reconcile(here, target(5, A, C), {A, B}, all_free)
    revoking = Standing(
        epoch=3, previous_epoch=3, state=UNREVOKED, assigned={A: 2}, pending_revocation={B: 3}
    )
    assert asked == revoking
    for owned in (None, {A, B}, {B}):
        assert reconcile(asked, target(5, A, C), owned, all_free) is asked
    done = reconcile(asked, target(5, A, C), {A}, all_free)
    assert done == Standing(epoch=5, previous_epoch=3, assigned={A: 2, C: 5})


def test_silence_about_what_it_owns_is_no_revocation() -> None:
    here = Standing(epoch=3, previous_epoch=2, assigned={A: 2})
    assert reconcile(here, target(4), None, all_free).state is UNREVOKED


def test_an_assignment_that_was_never_taken_need_not_be_revoked() -> None:
    here = Standing(epoch=3, previous_epoch=2, assigned={A: 2, B: 3})
    assert reconcile(here, target(5, A), {A}, all_free) == Standing(
        epoch=5, previous_epoch=3, assigned={A: 2}
    )


def test_a_target_that_changed_meanwhile_may_ask_for_more() -> None:
    here = Standing(
        epoch=3, previous_epoch=3, state=UNREVOKED, assigned={A: 2, C: 2}, pending_revocation={B: 3}
    )
    there = reconcile(here, target(9, A), {A, C}, all_free)
    assert there.state is UNREVOKED
    assert there.pending_revocation == {C: 2}
    assert (there.epoch, there.previous_epoch) == (3, 3)


def test_a_waiting_member_gives_up_first_as_well() -> None:
    here = Standing(epoch=5, previous_epoch=5, state=UNRELEASED, assigned={A: 2, B: 5})
    there = reconcile(here, target(6, A, D), {A, B}, all_free)
    assert there.state is UNREVOKED
    assert there.assigned == {A: 2}


def test_a_state_of_a_later_version_fences_unless_nothing_is_owned() -> None:
    here = Standing(epoch=5, state=MemberState.UNKNOWN, assigned={A: 2})
    for owned in (None, {A}):
        with pytest.raises(ApiError) as refused:
            reconcile(here, target(6, A), owned, all_free)
        assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(here, target(6, A), set(), all_free).state is STABLE
