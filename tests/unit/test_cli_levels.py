"""Tests the output of `barnabas cluster upgrade` for the levels that brokers know."""

from barnabas.admin.feature_levels import BrokerLevels, ClusterLevels
from barnabas.cli.cluster.upgrade_command import _missing
from barnabas.controller.feature_decisions import FIRST_RELEASE, Levels

NEW = BrokerLevels(id=1, address="a:1", levels=Levels(1, 2))
OLD = BrokerLevels(id=2, address="b:2", levels=FIRST_RELEASE)
DOWN = BrokerLevels(id=3, address="c:3", levels=None, problem="it is not running")


def test_all_brokers_are_new() -> None:
    found = ClusterLevels(level=1, brokers=[NEW, NEW])
    assert (found.goal, found.missing) == (2, [])
    assert found.as_json()["ready"] is True


def test_a_broker_that_is_old_or_down_is_named() -> None:
    found = ClusterLevels(level=1, brokers=[NEW, OLD, DOWN])
    assert (found.goal, found.missing) == (2, [OLD, DOWN])
    said = _missing(found)
    assert "broker 2: level 1 (release 0.1.0), broker 3: it is not running" in said


def test_where_no_broker_knows_more_there_is_nothing_to_raise() -> None:
    found = ClusterLevels(level=1, brokers=[OLD, OLD])
    assert (found.goal, found.missing) == (1, [])


def test_json_says_what_is_not_known() -> None:
    assert DOWN.as_json() == {
        "id": 3,
        "address": "c:3",
        "lowest_level": None,
        "highest_level": None,
        "problem": "it is not running",
    }
