"""Tests the assignor of share groups: all partitions and all members are busy, evenly."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.consumer.assignors.spec import Share, Slots
from barnabas.groups.share.simple_assignor import assign
from barnabas.model.ids import TopicId

TOPICS = [TopicId(bytes([number]) * 16) for number in range(4)]
NAMES = st.text("abcdef", min_size=1, max_size=3)
NUMBERS = st.frozensets(st.integers(0, 9), max_size=6)
PARTITIONS = st.dictionaries(st.sampled_from(TOPICS), NUMBERS, max_size=3)
SUBSCRIPTIONS = st.dictionaries(NAMES, st.frozensets(st.sampled_from(TOPICS)), max_size=8)
PAST = st.dictionaries(
    NAMES, st.frozensets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 12)), max_size=8)
)


def shares(
    subscriptions: Mapping[str, frozenset[TopicId]], had: Mapping[str, Slots]
) -> dict[str, Share]:
    return {
        name: Share(topics, had.get(name, frozenset())) for name, topics in subscriptions.items()
    }


def readers_of(result: Mapping[str, Slots]) -> Counter[tuple[TopicId, int]]:
    return Counter(slot for slots in result.values() for slot in slots)


def spread(numbers: list[int]) -> int:
    return max(numbers, default=0) - min(numbers, default=0)


@given(SUBSCRIPTIONS, PARTITIONS, PAST)
def test_all_partitions_are_read_and_all_members_read(
    subscriptions: dict[str, frozenset[TopicId]],
    partitions: dict[TopicId, frozenset[int]],
    had: dict[str, Slots],
) -> None:
    result = assign(shares(subscriptions, had), partitions)
    assert result.keys() == subscriptions.keys()
    wanted = frozenset[TopicId]().union(*subscriptions.values())
    everything = {
        (topic, number) for topic in wanted & partitions.keys() for number in partitions[topic]
    }
    assert readers_of(result).keys() == everything
    for name, slots in result.items():
        readable = {topic for topic in subscriptions[name] if partitions.get(topic)}
        assert {topic for topic, _ in slots} <= readable
        assert bool(slots) == bool(readable)


@given(SUBSCRIPTIONS, PARTITIONS, PAST)
def test_a_member_that_shares_has_nothing_else_of_its_own(
    subscriptions: dict[str, frozenset[TopicId]],
    partitions: dict[TopicId, frozenset[int]],
    had: dict[str, Slots],
) -> None:
    result = assign(shares(subscriptions, had), partitions)
    readers = readers_of(result)
    for slot, count in readers.items():
        burdens = sorted(len(slots) for slots in result.values() if slot in slots)
        assert burdens[: count - 1] == [1] * (count - 1)


@given(st.frozensets(NAMES, min_size=1, max_size=8), PARTITIONS, PAST)
def test_equal_subscriptions_are_even(
    names: frozenset[str], partitions: dict[TopicId, frozenset[int]], had: dict[str, Slots]
) -> None:
    subscriptions = dict.fromkeys(names, frozenset(TOPICS))
    result = assign(shares(subscriptions, had), partitions)
    readers = readers_of(result)
    assert spread([len(slots) for slots in result.values()]) <= 1
    assert spread(list(readers.values())) <= 1
    if len(names) <= len(readers):
        assert set(readers.values()) <= {1}


@given(SUBSCRIPTIONS, PARTITIONS, PAST)
def test_nothing_moves_without_a_change(
    subscriptions: dict[str, frozenset[TopicId]],
    partitions: dict[TopicId, frozenset[int]],
    had: dict[str, Slots],
) -> None:
    first = assign(shares(subscriptions, had), partitions)
    again = assign(shares(subscriptions, first), partitions)
    assert again == first


@given(SUBSCRIPTIONS, PARTITIONS, PAST)
def test_the_order_of_the_arguments_does_not_matter(
    subscriptions: dict[str, frozenset[TopicId]],
    partitions: dict[TopicId, frozenset[int]],
    had: dict[str, Slots],
) -> None:
    backwards = dict(reversed(subscriptions.items()))
    turned = dict(reversed(partitions.items()))
    assert assign(shares(subscriptions, had), partitions) == assign(shares(backwards, had), turned)


@given(st.frozensets(NAMES, min_size=2, max_size=8), PARTITIONS, st.data())
def test_the_others_keep_what_they_read_if_a_member_leaves(
    names: frozenset[str], partitions: dict[TopicId, frozenset[int]], data: st.DataObject
) -> None:
    subscriptions = dict.fromkeys(names, frozenset(TOPICS))
    before = assign(shares(subscriptions, {}), partitions)
    leaver = data.draw(st.sampled_from(sorted(names)))
    del subscriptions[leaver]
    after = assign(shares(subscriptions, before), partitions)
    moved = sum(len(before[name] - after[name]) for name in subscriptions)
    # A helper may have to take over a partition that no member reads any more, or go where it is
    # needed more.
    assert moved <= 1


@given(st.frozensets(NAMES, min_size=1, max_size=7), PARTITIONS)
def test_a_newcomer_takes_no_more_than_its_share(
    names: frozenset[str], partitions: dict[TopicId, frozenset[int]]
) -> None:
    subscriptions = dict.fromkeys(names, frozenset(TOPICS))
    before = assign(shares(subscriptions, {}), partitions)
    subscriptions["new"] = frozenset(TOPICS)
    after = assign(shares(subscriptions, before), partitions)
    moved = sum(len(before[name] - after[name]) for name in names)
    assert moved <= len(after["new"])
