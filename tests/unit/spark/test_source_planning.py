"""Tests the plan of a batch: shares of a limit, ranges, splits, and deleted records."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import DataLossError, OptionError
from barnabas.spark.source.data_loss import report
from barnabas.spark.source.split_planning import (
    OffsetRange,
    admitted,
    covered,
    gathered,
    ranges_between,
    resolved,
    shared,
    splits,
)

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))

sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=12)


@given(sizes, st.integers(1, 20_000))
@example([1, 2, 0, 33], 32)
def test_a_limit_is_used_up_and_never_passed(waiting: list[int], limit: int) -> None:
    start = {TopicPartition("t", n): 5 for n in range(len(waiting))}
    latest = {TopicPartition("t", n): 5 + size for n, size in enumerate(waiting)}
    end = admitted(start, latest, {}, limit)
    taken = {place: end[place] - start[place] for place in end}
    assert sum(taken.values()) == min(limit, sum(waiting))
    assert all(0 <= count <= latest[place] - 5 for place, count in taken.items())


@given(sizes, st.integers(12, 20_000))
def test_no_partition_starves_beside_a_large_one(waiting: list[int], limit: int) -> None:
    start = {TopicPartition("t", n): 0 for n in range(len(waiting))}
    latest = {TopicPartition("t", n): size for n, size in enumerate(waiting)}
    end = admitted(start, latest, {}, limit)
    assert all(end[place] > 0 for place, size in latest.items() if size)


def test_shares_are_in_proportion() -> None:
    end = admitted({P0: 0, P1: 0}, {P0: 9_000, P1: 1_000}, {}, 100)
    assert end == {P0: 90, P1: 10}


def test_a_new_partition_is_admitted_from_its_earliest_offset() -> None:
    end = admitted({P0: 0}, {P0: 0, P1: 50}, {P1: 20}, 10)
    assert end == {P0: 0, P1: 30}


def test_ranges_lie_between_two_positions() -> None:
    plan = ranges_between({P0: 3, P1: 7}, {P0: 5, P1: 7}, {P0: 0, P1: 0})
    assert plan.ranges == [OffsetRange(P0, 3, 5)]
    assert plan.losses == []


def test_a_new_partition_starts_at_its_earliest_offset() -> None:
    plan = ranges_between({P0: 3}, {P0: 3, P1: 7}, {P0: 0, P1: 0})
    assert plan.ranges == [OffsetRange(P1, 0, 7)]
    assert plan.losses == []


def test_a_new_partition_that_has_lost_records_already_is_a_loss() -> None:
    plan = ranges_between({}, {P1: 7}, {P1: 2})
    assert plan.ranges == [OffsetRange(P1, 2, 7)]
    assert "t-1: offsets 0 to 1 (2 offsets)" in plan.losses[0]


def test_deleted_records_are_named() -> None:
    plan = ranges_between({P0: 3}, {P0: 20}, {P0: 10})
    assert plan.ranges == [OffsetRange(P0, 10, 20)]
    assert "t-0: offsets 3 to 9 (7 offsets) were deleted" in plan.losses[0]


def test_a_range_that_is_gone_as_a_whole_is_named_and_not_passed() -> None:
    plan = ranges_between({P0: 3}, {P0: 8}, {P0: 100})
    assert plan.ranges == []
    assert "offsets 3 to 7 (5 offsets)" in plan.losses[0]


def test_a_deleted_partition_is_named() -> None:
    planned = ranges_between({P0: 3, P1: 4}, {P0: 5, P1: 9}, {P0: 0})
    assert planned.ranges == [OffsetRange(P0, 3, 5)]
    assert planned.losses == ["t-1: the partition does not exist any more; offsets 4 to 8 are gone"]
    unplanned = ranges_between({P0: 3, P1: 4}, {P0: 5}, {P0: 0})
    assert unplanned.losses == ["t-1: the partition does not exist any more; offsets 4 on are gone"]


def test_a_recreated_topic_is_read_from_its_start() -> None:
    plan = ranges_between({P0: 100}, {P0: 4}, {P0: 0})
    assert plan.ranges == [OffsetRange(P0, 0, 4)]
    assert "the log ends at offset 4, but offsets 4 to 99 are expected" in plan.losses[0]


def test_a_log_that_was_cut_is_read_on_from_its_end() -> None:
    plan = ranges_between({P0: 100}, {P0: 4}, {P0: 0}, same={"t"})
    assert plan.ranges == []
    assert "the log ends at offset 4, but offsets 4 to 99 are expected" in plan.losses[0]


def test_losses_stop_a_query_or_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match=r"failOnDataLoss to false.*; two\."):
        report(["one", "two"], fail=True)
    report(["one", "two"], fail=False)
    assert [record.args for record in caplog.records] == [("one",), ("two",)]
    report([], fail=True)


ranges = st.lists(st.integers(0, 500), min_size=1, max_size=6).map(
    lambda counts: [
        OffsetRange(TopicPartition("t", n), 7, 7 + size) for n, size in enumerate(counts)
    ]
)


@given(ranges, st.none() | st.integers(1, 40), st.none() | st.integers(1, 100))
def test_splits_cover_every_offset_once(
    whole: list[OffsetRange], min_partitions: int | None, max_records: int | None
) -> None:
    pieces = splits(whole, min_partitions, max_records)
    offsets = [(each.place, n) for each in pieces for n in range(each.start, each.end)]
    assert offsets == [(each.place, n) for each in whole for n in range(each.start, each.end)]
    assert all(each.size for each in pieces)
    if max_records is not None:
        assert all(each.size <= max_records for each in pieces)
    if min_partitions is not None:
        assert len(pieces) >= min(min_partitions, len(offsets))


def test_without_options_there_is_one_split_a_partition() -> None:
    whole = [OffsetRange(P0, 0, 10), OffsetRange(P1, 0, 0), OffsetRange(P2, 5, 9)]
    assert splits(whole, None, None) == [whole[0], whole[2]]


@given(sizes, st.integers(1, 9))
@example([5, 0, 7], 10**12)
@example([], 2)
def test_tasks_at_the_most_hold_about_the_same(found: list[int], most: int) -> None:
    pieces = [OffsetRange(TopicPartition("t", n), 3, 4 + size) for n, size in enumerate(found)]
    tasks = gathered(pieces, most)
    assert sorted(piece for task in tasks for piece in task) == pieces
    assert len(tasks) == min(most, len(pieces))
    assert all(task == sorted(task) for task in tasks)
    held = [sum(piece.size for piece in task) for task in tasks]
    largest = max((piece.size for piece in pieces), default=0)
    assert all(size <= sum(held) / len(held) + largest for size in held)


@given(sizes, st.integers(1, 5_000))
def test_a_task_holds_one_split_or_several_that_are_small(found: list[int], most: int) -> None:
    pieces = [OffsetRange(TopicPartition("t", n), 3, 4 + size) for n, size in enumerate(found)]
    tasks = shared(pieces, most)
    assert [piece for task in tasks for piece in task] == pieces
    assert all(len(task) == 1 or sum(piece.size for piece in task) <= most for task in tasks)
    for task, following in pairwise(tasks):
        assert sum(piece.size for piece in [*task, following[0]]) > most


def test_offsets_must_name_all_partitions_and_no_others() -> None:
    covered("startingOffsets", {P0: 1}, [P0])
    with pytest.raises(OptionError, match="startingOffsets leaves out t-1"):
        covered("startingOffsets", {P0: 1}, [P0, P1])
    with pytest.raises(OptionError, match="startingOffsets names t-1"):
        covered("startingOffsets", {P0: 1, P1: 1}, [P0])


def test_marks_for_earliest_and_latest_become_offsets() -> None:
    given_offsets = {P0: -2, P1: -1, P2: 5}
    earliest, latest = dict.fromkeys((P0, P1, P2), 3), dict.fromkeys((P0, P1, P2), 9)
    assert resolved(given_offsets, earliest, latest) == {P0: 3, P1: 9, P2: 5}
