"""Tests the part of a state that a user of the brokers may see."""

from barnabas.console.login.sight import FRESH_S, Sight, Visible
from tests.support.console.made_states import make_state


def visible(topics: set[str], groups: set[str]) -> Visible:
    return Visible(frozenset(topics), frozenset(groups))


def test_topics_groups_and_what_they_say_of_each_other_are_left_out() -> None:
    state = make_state(["orders", "salaries"], {"billing": {"orders": 1, "salaries": 2}})
    part = Sight(lambda: visible({"orders"}, {"billing"})).of(state)
    assert set(part.topics) == {"orders"}
    assert [each.topic for each in part.groups["billing"].partitions] == ["orders"]
    assert part.topics["orders"].groups == ("billing",)
    hidden = Sight(lambda: visible({"orders"}, set())).of(state)
    assert hidden.topics["orders"].groups == ()
    assert hidden.groups == {}


def test_the_brokers_are_asked_again_after_a_while() -> None:
    now, asked = [0.0], []

    def ask() -> Visible:
        asked.append(now[0])
        return visible({"orders"} if now[0] else set(), set())

    sight, state = Sight(ask, lambda: now[0]), make_state()
    assert set(sight.of(state).topics) == set()
    assert sight.of(state) is sight.of(state)
    now[0] = FRESH_S
    assert set(sight.of(state).topics) == {"orders"}
    assert asked == [0.0, FRESH_S]
