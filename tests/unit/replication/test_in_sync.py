"""Tests the high watermark, and when a follower leaves the ISR or joins it."""

from dataclasses import dataclass

import pytest

from barnabas.replication.in_sync import InSync, LagLimits

ME, NEAR, FAR = 1, 2, 3
NOW_MS = 50_000
LAG_MAX_MS = 10_000


@dataclass
class Led:
    """A leader's view of its followers, with a log of a given length."""

    in_sync: InSync
    end: int = 0
    high_watermark: int = 0
    now_ms: int = NOW_MS

    def fetch(self, replica: int, offset: int, broker_epoch: int = 7) -> bool:
        return self.in_sync.fetched(replica, broker_epoch, offset, self.end, self.now_ms)

    def proposal(
        self, epochs: dict[int, int] | None = None, *, lag_max_records: int = 0
    ) -> list[int] | None:
        known = {ME: 7, NEAR: 7, FAR: 7} if epochs is None else epochs
        limits = LagLimits(LAG_MAX_MS, lag_max_records)
        return self.in_sync.proposal(self.high_watermark, self.end, self.now_ms, limits, known.get)


def led(isr: list[int], *, epoch_start: int = 0, end: int = 0, min_isr: int = 2) -> Led:
    in_sync = InSync(ME, epoch_start)
    in_sync.place([ME, NEAR, FAR], isr, 0, NOW_MS)
    in_sync.min_isr = min_isr
    return Led(in_sync, end)


def test_the_high_watermark_is_what_every_in_sync_replica_has() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    assert leader.in_sync.high_watermark(20) == -1, "no follower has reported its offset yet"
    leader.fetch(NEAR, 15)
    leader.fetch(FAR, 12)
    assert leader.in_sync.high_watermark(20) == 12
    assert leader.in_sync.high_watermark(9) == 9, "it must not pass what is synced here"


def test_a_replica_out_of_sync_does_not_hold_it_up() -> None:
    leader = led([ME, NEAR], end=20)
    leader.fetch(NEAR, 15)
    assert leader.in_sync.high_watermark(20) == 15


def test_it_does_not_move_while_too_few_are_in_sync() -> None:
    leader = led([ME], end=20, min_isr=2)
    assert leader.in_sync.is_under_min_isr
    assert leader.in_sync.high_watermark(20) == -1
    leader.in_sync.min_isr = 1
    assert leader.in_sync.high_watermark(20) == 20


def test_never_must_more_be_in_sync_than_there_are() -> None:
    leader = led([ME, NEAR, FAR], min_isr=5)
    assert (leader.in_sync.effective_min_isr, leader.in_sync.is_under_min_isr) == (3, False)


def test_a_proposed_member_counts_before_it_is_known_to_be_one() -> None:
    leader = led([ME, NEAR], end=20)
    leader.fetch(NEAR, 20)
    leader.fetch(FAR, 10)
    leader.in_sync.proposed = [ME, NEAR, FAR]
    assert leader.in_sync.high_watermark(20) == 10


def test_one_proposed_to_leave_counts_until_it_is_known_to_have_left() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    leader.fetch(NEAR, 20)
    leader.fetch(FAR, 10)
    leader.in_sync.proposed = [ME, NEAR]
    assert leader.in_sync.high_watermark(20) == 10
    leader.in_sync.place([ME, NEAR, FAR], [ME, NEAR], 1, NOW_MS)
    assert list(leader.in_sync.maximal_isr) == [ME, NEAR]
    assert leader.in_sync.high_watermark(20) == 20


def test_an_older_decision_changes_nothing() -> None:
    leader = led([ME, NEAR, FAR])
    leader.in_sync.place([ME, NEAR, FAR], [ME, NEAR], 5, NOW_MS)
    leader.in_sync.place([ME, NEAR, FAR], [ME], 4, NOW_MS)
    assert (list(leader.in_sync.isr), leader.in_sync.partition_epoch) == ([ME, NEAR], 5)


def test_one_joins_that_has_everything_acknowledged() -> None:
    leader = led([ME, NEAR], end=30)
    leader.high_watermark = 20
    leader.fetch(FAR, 19)
    assert leader.proposal() is None
    leader.fetch(FAR, 20)
    assert leader.proposal() == [ME, NEAR, FAR]


def test_the_high_watermark_a_new_leader_knows_is_not_enough() -> None:
    leader = led([ME, NEAR], epoch_start=25, end=25)
    leader.high_watermark = 20
    leader.fetch(FAR, 24)
    assert leader.proposal() is None
    leader.fetch(FAR, 25)
    assert leader.proposal() == [ME, NEAR, FAR]


def test_one_that_has_not_fetched_in_this_epoch_does_not_join() -> None:
    assert led([ME, NEAR]).proposal() is None


@pytest.mark.parametrize("epochs", [{ME: 7, NEAR: 7}, {ME: 7, NEAR: 7, FAR: 8}])
def test_a_fenced_or_restarted_broker_does_not_join(epochs: dict[int, int]) -> None:
    leader = led([ME, NEAR])
    leader.fetch(FAR, 0, broker_epoch=7)
    assert leader.proposal(epochs) is None
    assert leader.proposal() == [ME, NEAR, FAR]


def test_a_fetch_of_an_earlier_process_does_not_count() -> None:
    leader = led([ME, NEAR], end=20)
    assert leader.fetch(FAR, 5, broker_epoch=8)
    assert not leader.fetch(FAR, 20, broker_epoch=7)
    assert leader.in_sync.followers[FAR].end_offset == 5
    assert not leader.fetch(9, 20), "nor one of an unknown broker"


def test_one_leaves_that_was_behind_for_too_long() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    leader.fetch(NEAR, 20)
    leader.fetch(FAR, 10)
    leader.now_ms += LAG_MAX_MS
    assert leader.proposal() is None
    leader.now_ms += 1
    assert leader.proposal() == [ME, NEAR]


def test_one_leaves_that_is_behind_by_too_many_records() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    leader.fetch(NEAR, 20)
    assert leader.proposal(lag_max_records=9) is None, "one that has not fetched yet may be close"
    leader.fetch(FAR, 10)
    assert leader.proposal(lag_max_records=10) is None
    assert leader.proposal(lag_max_records=9) == [ME, NEAR]


def test_one_that_keeps_pace_stays_though_it_never_has_the_very_last() -> None:
    leader = led([ME, NEAR, FAR])
    leader.fetch(NEAR, 0)
    for _ in range(5):
        leader.end += 10
        leader.fetch(FAR, leader.end - 10)
        leader.now_ms += LAG_MAX_MS // 2
        leader.in_sync.followers[NEAR].caught_up_ms = leader.now_ms
        assert leader.proposal() is None


def test_a_follower_with_all_records_stays_in_sync_without_traffic() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    leader.fetch(NEAR, 20)
    leader.fetch(FAR, 20)
    leader.now_ms += 100 * LAG_MAX_MS
    assert leader.proposal() is None
    leader.in_sync.look(leader.end, leader.now_ms)
    leader.end += 1  # and is not at once too late for later records
    assert leader.proposal() is None


def test_one_that_lost_what_was_committed_leaves_at_once() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    leader.fetch(NEAR, 20)
    leader.fetch(FAR, 20)
    leader.high_watermark = 20
    leader.fetch(FAR, 3)
    assert leader.proposal() == [ME, NEAR]


def test_the_leader_never_proposes_to_leave_nor_twice_at_once() -> None:
    leader = led([ME, NEAR, FAR], end=20)
    leader.now_ms += LAG_MAX_MS + 1
    wanted = leader.proposal()
    assert wanted == [ME]
    leader.in_sync.propose(wanted)
    assert leader.proposal() is None


def test_members_are_named_with_the_life_in_which_they_fetched() -> None:
    leader = led([ME, NEAR])
    leader.fetch(FAR, 0, broker_epoch=9)
    leader.in_sync.propose([ME, NEAR, FAR])
    assert leader.in_sync.seen == [(ME, -1), (NEAR, -1), (FAR, 9)]


def test_a_life_that_began_after_the_proposal_is_not_the_one_proposed() -> None:
    leader = led([ME, NEAR])
    leader.fetch(FAR, 0, broker_epoch=9)
    leader.in_sync.propose([ME, FAR])
    leader.fetch(FAR, 0, broker_epoch=10)
    assert leader.in_sync.seen == [(ME, -1), (FAR, 9)]
