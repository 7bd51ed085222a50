"""Tests the frames of `barnabas top` as text: what they say, and that they fit any terminal."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.admin.scopes import Place
from barnabas.monitor.lag_rules import WINDOW
from barnabas.monitor.states import BrokerFigures, ClusterState
from barnabas.top.short_numbers import age, clean, rate, short, size, sparkline
from barnabas.top.top_frame import Canvas, frame
from barnabas.top.top_rows import Panel
from barnabas.top.top_view import Key, View, press
from tests.support.examples import examples
from tests.support.watched_cluster import WatchedCluster

HOSTILE = "\x1b[2Jgro\nup\x07"
LONG = "a-group-with-a-very-long-name-for-a-team-that-likes-words"
TOPICS = ("orders", "payments", "clicks", "audit", "shop.checkout.events.of.all.countries.v1")


def watched() -> ClusterState:
    """Return a cluster with a fenced broker and groups in several states."""
    cluster = WatchedCluster(topics=dict.fromkeys(TOPICS, 3))
    places: list[Place] = [(name, number) for name in TOPICS for number in range(3)]
    for tick in range(WINDOW + 1):
        cluster.starts = dict.fromkeys(places, 0)
        cluster.ends = {place: 1000 * tick * (1 + places.index(place)) for place in places}
        cluster.sizes = {place: 100 * end for place, end in cluster.ends.items()}
        cluster.commit("billing", {("orders", 0): 0}, has_member=False)
        cluster.commit(LONG, {("payments", 1): cluster.ends["payments", 1]})
        cluster.commit(HOSTILE, {("clicks", 2): cluster.ends["clicks", 2] // 2})
        cluster.brokers[3] = tick < WINDOW
        state = cluster.tick()
    figures = BrokerFigures(address="h:1", bytes_in_per_s=2048.0, loop_busy_ratio=0.25)
    return replace(state, figures={1: figures})


STATE = watched()
CANVAS = Canvas(width=80, height=24, now_ms=STATE.taken_ms + 3000)


def lines(view: View, canvas: Canvas = CANVAS, state: ClusterState | None = STATE) -> list[str]:
    return frame(state, view, canvas).plain.split("\n")


def typed(*keys: Key, view: View | None = None) -> View:
    view = view or View()
    for key in keys:
        view = press(view, key, STATE)
    return view


def test_the_first_page_says_what_is_wrong_and_who_is_behind() -> None:
    found = lines(View())
    assert "DEGRADED" in found[0]
    assert found[0].rstrip().endswith("3s ago")
    assert "Brokers 2 of 3 up" in found[1]
    assert "15 under-replicated" in found[3]
    assert "1 stopped, 1 behind, 1 ok" in found[3]
    assert "broker 3 at h:9003 is fenced" in found[4]
    groups = found[8:11]
    assert groups[0].split()[:4] == [">", "billing", "stopped", "1m"]
    assert "q quit" in found[-1]


def test_topics_are_sorted_by_their_rate() -> None:
    found = [line for line in lines(View()) if " 3 out of sync" in line]
    assert found[0].startswith("  shop")
    assert "3 out of sync" in found[0]


@given(
    width=st.integers(20, 220),
    height=st.integers(5, 70),
    keys=st.lists(st.sampled_from([key for key in Key if key is not Key.QUIT]), max_size=12),
    is_plain=st.booleans(),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_frame_fits_every_terminal_on_every_page(
    width: int, height: int, keys: list[Key], *, is_plain: bool
) -> None:
    canvas = replace(CANVAS, width=width, height=height, is_plain=is_plain)
    text = frame(STATE, typed(*keys), canvas)
    found = text.split("\n", allow_blank=True)
    assert len(found) == height
    assert all(line.cell_len <= width for line in found)
    assert "\x1b" not in text.plain
    assert "\x07" not in text.plain
    if is_plain:
        assert text.plain.isascii()


def test_enter_opens_a_group_and_escape_goes_back() -> None:
    opened = typed(Key.OPEN)
    found = lines(opened)
    assert any("Group billing  stopped" in line for line in found)
    assert any(line.startswith("> orders-0") for line in found)
    assert lines(typed(Key.BACK, view=opened)) == lines(View())


def test_topics_and_brokers_open_too() -> None:
    topic = "\n".join(lines(typed(Key.NEXT, Key.OPEN)))
    assert "Topic shop.checkout.events.of.all.countries.v1" in topic
    assert "replication factor 3" in topic
    broker = "\n".join(lines(typed(Key.BEFORE, Key.OPEN)))
    assert "Broker 1 h:9001, up" in broker
    assert "In 2.0 KB/s" in broker
    assert "Loop 25% busy" in broker


def test_the_selection_stays_with_its_row_when_rows_move() -> None:
    view = typed(Key.DOWN, Key.DOWN, Key.SORT)
    before, after = (
        next(line for line in lines(each) if line.startswith(">"))
        for each in (typed(Key.DOWN, Key.DOWN), view)
    )
    assert before == after


def test_sort_goes_round() -> None:
    names = [lines(typed(*[Key.SORT] * times))[7] for times in range(5)]
    assert len(set(names)) == 4
    assert names[0] == names[4]


def test_keys_stop_at_both_ends() -> None:
    assert typed(Key.UP).selected[Panel.GROUPS] == "billing"
    assert typed(Key.END).selected == typed(Key.PAGE_DOWN, Key.DOWN).selected


def test_help_closes_with_any_key() -> None:
    view = typed(Key.HELP)
    assert any("stalled" in line for line in lines(view))
    assert not typed(Key.DOWN, view=view).has_help
    assert typed(Key.QUIT, view=view).is_over


def test_what_is_gone_says_so() -> None:
    view = typed(Key.OPEN)
    gone = replace(STATE, groups={})
    assert any("Group billing is gone" in line for line in lines(view, state=gone))


def test_before_the_first_state_it_says_why() -> None:
    assert "Asking the brokers" in lines(View(), state=None)[0]
    assert "no broker" in frame(None, View(), CANVAS, "no broker answers").plain


def test_stale_values_and_pauses_are_marked() -> None:
    late = replace(CANVAS, now_ms=STATE.taken_ms + 125_000)
    assert lines(View(), late)[0].rstrip().endswith("2m 5s ago")
    assert "paused" in lines(typed(Key.PAUSE))[0]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (short(None), "-"),
        (short(0), "0"),
        (short(999), "999"),
        (short(1234), "1.2k"),
        (short(340_000), "340k"),
        (short(12_345_678), "12.3M"),
        (rate(0.0), "0"),
        (rate(0.25), "0.2"),
        (rate(31.4), "31"),
        (size(0), "0 B"),
        (size(1536), "1.5 KB"),
        (size(182 << 20), "182 MB"),
        (age(0.0), "0s"),
        (age(4.24), "4.2s"),
        (age(252.0), "4m 12s"),
        (age(float("inf")), "never"),
        (age(None), "-"),
        (clean(HOSTILE), "?[2Jgro?up?"),
        (sparkline([0, 5, 10], 8), "▁▄█"),
        (sparkline([0, 0], 8), "▁▁"),
        (sparkline([9, 0, 10], 2, is_plain=True), "_@"),
    ],
)
def test_short_forms(made: str, expected: str) -> None:
    assert made == expected
