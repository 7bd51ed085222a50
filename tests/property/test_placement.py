"""Tests plans of `barnabas partition`: balanced, on distinct brokers, and with the fewest moves."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from barnabas.admin.preferred_leaders import Leadership
from barnabas.admin.replica_placement import Replicas, Seat, arrange, drain, moved
from barnabas.admin.scopes import Place

Layout = dict[Place, Replicas]


@st.composite
def layouts(draw: st.DrawFn, nodes: int, partitions_max: int = 30) -> Layout:
    """Draw partitions on brokers 1 to `nodes`, with a random replication factor per topic."""
    found: Layout = {}
    for topic in ("a", "b", "c"):
        count = draw(st.integers(1, nodes))
        for number in range(draw(st.integers(0, partitions_max // 3))):
            found[topic, number] = tuple(draw(st.permutations(range(1, nodes + 1)))[:count])
    return found


def after(before: Layout, changes: Layout) -> Layout:
    return {**before, **changes}


def held(layout: Layout, brokers: range | list[int]) -> list[int]:
    counts = Counter(node for copies in layout.values() for node in copies)
    return [counts[node] for node in brokers]


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


def seats(count: int, racks: int = 0) -> list[Seat]:
    return [Seat(node, f"rack-{node % racks}" if racks else None) for node in range(1, count + 1)]


@given(st.data(), st.integers(1, 6), st.integers(0, 3))
def test_without_racks_brokers_differ_by_one_copy_at_most(
    data: st.DataObject, nodes: int, joining: int
) -> None:
    before = data.draw(layouts(nodes))
    changes = arrange(before, seats(nodes + joining))
    layout = after(before, changes)
    assert spread(held(layout, range(1, nodes + joining + 1))) <= 1
    for place, copies in layout.items():
        assert len(set(copies)) == len(copies) == len(before[place])
    assert arrange(layout, seats(nodes + joining)) == {}


@given(st.data(), st.integers(1, 6), st.integers(0, 3))
def test_no_copy_moves_that_need_not(data: st.DataObject, nodes: int, joining: int) -> None:
    before = data.draw(layouts(nodes))
    changes = arrange(before, seats(nodes + joining))
    moves = sum(len(moved(before[place], copies)) for place, copies in changes.items())
    counts = sorted(held(before, range(1, nodes + joining + 1)), reverse=True)
    share, odd = divmod(sum(counts), len(counts))
    fewest = sum(max(0, count - share - (rank < odd)) for rank, count in enumerate(counts))
    assert moves == fewest


@given(st.data(), st.integers(2, 6), st.integers(2, 4))
def test_copies_cover_as_many_racks_as_they_can(
    data: st.DataObject, nodes: int, racks: int
) -> None:
    before = data.draw(layouts(nodes))
    brokers = seats(nodes, racks)
    rack_of = {each.id: each.rack for each in brokers}
    layout = after(before, arrange(before, brokers))
    for copies in layout.values():
        covered = {rack_of[node] for node in copies}
        assert len(covered) == min(len(copies), len(set(rack_of.values())))
    assert arrange(layout, brokers) == {}


@given(st.data(), st.integers(2, 6))
def test_a_drained_broker_holds_nothing_and_others_keep_what_they_have(
    data: st.DataObject, nodes: int
) -> None:
    before = {
        place: copies for place, copies in data.draw(layouts(nodes)).items() if len(copies) < nodes
    }
    leaving = data.draw(st.integers(1, nodes))
    changes = drain(before, seats(nodes), leaving)
    assert set(changes) == {place for place, copies in before.items() if leaving in copies}
    for place, copies in changes.items():
        assert leaving not in copies
        assert set(before[place]) - {leaving} < set(copies)
        assert len(set(copies)) == len(copies) == len(before[place])


@given(st.data(), st.integers(1, 4), st.integers(1, 4))
def test_any_number_of_copies_can_be_asked_for(
    data: st.DataObject, nodes: int, wanted: int
) -> None:
    before = data.draw(layouts(nodes))
    brokers = seats(max(nodes, wanted))
    layout = after(before, arrange(before, brokers, replication_factor=wanted))
    assert all(len(set(copies)) == len(copies) == wanted for copies in layout.values())
    for place, copies in layout.items():
        if len(before[place]) == wanted == nodes:
            assert set(copies) == set(before[place])


@given(st.data(), st.integers(1, 4))
def test_no_choice_of_leaders_is_more_even(data: st.DataObject, nodes: int) -> None:
    layout = data.draw(layouts(nodes, partitions_max=6))
    copies = {place: list(each) for place, each in layout.items()}
    Leadership(copies, range(1, nodes + 1), copies).even_out()

    def unevenness(leaders: tuple[int, ...]) -> int:
        return sum(count * count for count in Counter(leaders).values())

    chosen = unevenness(tuple(each[0] for each in copies.values()))
    assert chosen == min(map(unevenness, product(*layout.values())))
    assert {place: sorted(each) for place, each in copies.items()} == {
        place: sorted(each) for place, each in layout.items()
    }
