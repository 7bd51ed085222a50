"""Tests assignors: every partition has one owner, shares are balanced, and few partitions move."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.consumer.assignors import ASSIGNORS, uniform
from barnabas.groups.consumer.assignors import range as by_range
from barnabas.groups.consumer.assignors.spec import Assign, Share, Slots
from barnabas.model.ids import TopicId

TOPICS = [TopicId(bytes([number]) * 16) for number in range(5)]
NAMES = st.text("abcdef", min_size=1, max_size=3)
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), max_size=4)
SUBSCRIPTIONS = st.dictionaries(NAMES, st.frozensets(st.sampled_from(TOPICS)), max_size=6)


def moves(before: Mapping[str, Slots], after: Mapping[str, Slots]) -> int:
    """Count the partitions whose owner changed."""
    owner = {slot: name for name, slots in before.items() for slot in slots}
    return sum(owner.get(slot, name) != name for name, slots in after.items() for slot in slots)


def shares(
    subscriptions: Mapping[str, frozenset[TopicId]], had: Mapping[str, Slots]
) -> dict[str, Share]:
    return {
        name: Share(topics, had.get(name, frozenset())) for name, topics in subscriptions.items()
    }


def check(
    given_out: Mapping[str, Slots],
    subscriptions: Mapping[str, frozenset[TopicId]],
    counts: Mapping[TopicId, int],
) -> None:
    """Check that every subscribed partition has exactly one owner, which subscribes to it."""
    assert given_out.keys() == subscriptions.keys()
    for name, slots in given_out.items():
        assert {topic_id for topic_id, _ in slots} <= subscriptions[name]
    read = {topic_id for topics in subscriptions.values() for topic_id in topics} & counts.keys()
    everything = [(topic_id, number) for topic_id in read for number in range(counts[topic_id])]
    assert sorted(slot for slots in given_out.values() for slot in slots) == sorted(everything)


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)
@given(
    subscriptions=st.lists(SUBSCRIPTIONS, min_size=1, max_size=4),
    counts=st.lists(COUNTS, min_size=4, max_size=4),
)
def test_every_partition_has_one_reader_whatever_was_before(
    assign: Assign,
    subscriptions: list[dict[str, frozenset[TopicId]]],
    counts: list[dict[TopicId, int]],
) -> None:
    had: dict[str, Slots] = {}
    for wanted, there in zip(subscriptions, counts, strict=False):
        had = assign(shares(wanted, had), there)
        check(had, wanted, there)


@given(
    SUBSCRIPTIONS,
    COUNTS,
    st.dictionaries(NAMES, st.frozensets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 14)))),
)
def test_uniform_copes_with_any_past(
    subscriptions: dict[str, frozenset[TopicId]],
    counts: dict[TopicId, int],
    had: dict[str, Slots],
) -> None:
    check(uniform.assign(shares(subscriptions, had), counts), subscriptions, counts)


@given(SUBSCRIPTIONS, COUNTS)
def test_no_single_move_makes_uniform_more_even(
    subscriptions: dict[str, frozenset[TopicId]], counts: dict[TopicId, int]
) -> None:
    result = uniform.assign(shares(subscriptions, {}), counts)
    for slots in result.values():
        for topic_id in {topic_id for topic_id, _ in slots}:
            for taker, topics in subscriptions.items():
                if topic_id in topics:
                    assert len(slots) - len(result[taker]) < 2


@given(st.lists(NAMES, unique=True, min_size=1, max_size=8), COUNTS, st.data())
def test_uniform_is_even_and_moves_no_more_than_it_must(
    names: list[str], counts: dict[TopicId, int], data: st.DataObject
) -> None:
    had: dict[str, Slots] = {}
    present: set[str] = set()
    total = sum(counts.values())
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=8)):
        before = had
        present ^= {name}
        had = uniform.assign(shares(dict.fromkeys(present, frozenset(TOPICS)), before), counts)
        if not present:
            continue
        sizes = [len(slots) for slots in had.values()]
        assert max(sizes) - min(sizes) <= 1
        if name in present:
            assert moves(before, had) == (total // len(present) if before else 0)
        else:
            lost = before[name]
            assert moves({other: s for other, s in before.items() if other != name}, had) == 0
            assert lost <= frozenset().union(*had.values())


@given(st.lists(NAMES, unique=True, min_size=1, max_size=6), st.integers(1, 12))
def test_range_gives_the_same_numbers_of_equal_topics(names: list[str], count: int) -> None:
    counts = dict.fromkeys(TOPICS[:3], count)
    result = by_range.assign(shares(dict.fromkeys(names, frozenset(TOPICS)), {}), counts)
    for slots in result.values():
        numbers = {topic: sorted(n for t, n in slots if t == topic) for topic in counts}
        (one,) = {tuple(n) for n in numbers.values()}
        assert list(one) == list(range(one[0], one[0] + len(one))) if one else True
    sizes = [len(result[name]) for name in sorted(result)]
    assert sizes == sorted(sizes, reverse=True)


def test_range_keeps_the_place_of_a_static_member_that_comes_back() -> None:
    topics = frozenset(TOPICS[:1])
    counts = {TOPICS[0]: 5}
    before = by_range.assign(
        {"m": Share(topics), "z": Share(topics, instance_id="i"), "a": Share(topics)}, counts
    )
    after = by_range.assign(
        {"m": Share(topics), "b": Share(topics, instance_id="i"), "a": Share(topics)}, counts
    )
    assert before["z"] == after["b"] == {(TOPICS[0], 0), (TOPICS[0], 1)}
    assert before["a"] == after["a"]
    assert before["m"] == after["m"]
