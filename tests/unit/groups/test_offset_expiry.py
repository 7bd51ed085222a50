"""Tests how long offsets are kept (KIP-211), and when a group is deleted."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.groups.directory import GroupType
from barnabas.groups.offsets import EXPIRED_MAX
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.settings import GroupSettings
from tests.support.talk.group_runner import GroupRunner
from tests.support.talk.offset_requests import (
    At,
    commit_request,
    fetch_group,
    positions,
    transactional_request,
)

SETTINGS = GroupSettings(offsets_retention_ms=1000, offsets_retention_check_ms=100)
Told = Callable[[str], Any]


@pytest.fixture
def runner() -> GroupRunner:
    return GroupRunner({"a": 3, "b": 1}, SETTINGS)


def commit(runner: GroupRunner, group: str, *places: At, **more: Any) -> None:
    request = commit_request(group, dict.fromkeys(places, 1), **more)
    runner.run(lambda machine: machine.offsets.commit(request, runner.caller(4)))


def left(runner: GroupRunner, group: str) -> set[At]:
    asked = fetch_group(group, None)
    return set(
        positions(runner.run(lambda machine: machine.offsets.fetch(asked, 9, require_stable=False)))
    )


def test_offsets_without_a_group_expire_by_their_commit(runner: GroupRunner) -> None:
    commit(runner, "g", ("a", 0), ("a", 1))
    runner.pass_time(500)
    commit(runner, "g", ("a", 1))
    runner.pass_time(499)
    assert left(runner, "g") == {("a", 0), ("a", 1)}
    runner.pass_time(1)
    assert left(runner, "g") == {("a", 1)}
    runner.pass_time(500)
    for _ in range(2):
        assert left(runner, "g") == set()
        assert runner.machine.groups == {}
        runner.reload()


def test_reloading_does_not_start_the_clock_again(runner: GroupRunner) -> None:
    commit(runner, "g", ("a", 0))
    runner.pass_time(900)
    runner.reload()
    assert left(runner, "g") == {("a", 0)}
    runner.pass_time(100)
    assert left(runner, "g") == set()


def test_an_explicit_time_holds_for_any_retention(runner: GroupRunner) -> None:
    commit(runner, "g", ("a", 0), retention_ms=250)
    commit(runner, "g", ("a", 1), retention_ms=5000)
    runner.pass_time(299)
    assert left(runner, "g") == {("a", 0), ("a", 1)}
    runner.pass_time(1)
    assert left(runner, "g") == {("a", 1)}
    runner.pass_time(4699)
    assert left(runner, "g") == {("a", 1)}
    runner.pass_time(1)
    assert left(runner, "g") == set()


def test_a_group_keeps_its_offsets_until_it_was_empty_for_long(
    runner: GroupRunner, controlled_group: Told
) -> None:
    group = controlled_group("g")
    commit(runner, "g", ("a", 0))
    group.protocol_type, group.topics = "connect", set()
    runner.pass_time(3000)
    assert left(runner, "g") == {("a", 0)}
    group.is_empty, group.state, group.empty_since_ms = True, "Empty", runner.wall_ms
    runner.pass_time(999)
    assert left(runner, "g") == {("a", 0)}
    runner.pass_time(1)
    assert left(runner, "g") == set()


def test_a_group_that_does_not_say_since_when_it_is_empty_counts_from_the_commit(
    runner: GroupRunner, controlled_group: Told
) -> None:
    group = controlled_group("g")
    commit(runner, "g", ("a", 0))
    group.is_empty, group.state, group.empty_since_ms = True, "Empty", None
    runner.pass_time(1000)
    assert left(runner, "g") == set()


@pytest.mark.parametrize(
    ("kind", "state", "expires"),
    [
        (GroupType.CLASSIC, "Stable", True),
        (GroupType.CLASSIC, "PreparingRebalance", False),
        (GroupType.CONSUMER, "Stable", True),
        (GroupType.CONSUMER, "Reconciling", True),
    ],
)
def test_offsets_that_no_member_needs_any_more(
    runner: GroupRunner, controlled_group: Told, kind: GroupType, state: str, expires: bool
) -> None:
    group = controlled_group("g")
    group.type, group.state, group.topics = kind, state, {"b"}
    commit(runner, "g", ("a", 0), ("b", 0))
    runner.pass_time(3000)
    assert left(runner, "g") == ({("b", 0)} if expires else {("a", 0), ("b", 0)})
    assert "g" in runner.machine.groups


def test_what_waits_for_a_transaction_stays_and_so_does_the_group(runner: GroupRunner) -> None:
    producer = ProducerIdAndEpoch(1, 0)
    commit(runner, "g", ("a", 0), ("a", 1))
    request = transactional_request("g", {("a", 0): 9}, producer)
    runner.run(lambda machine: machine.offsets.commit_in_transaction(request, runner.caller(5)))
    runner.pass_time(5000)
    assert left(runner, "g") == {("a", 0)}
    runner.end_transaction(producer, committed=False)
    runner.pass_time(100)
    assert left(runner, "g") == set()
    assert runner.machine.groups == {}


def test_an_aborted_transaction_leaves_no_group(runner: GroupRunner) -> None:
    producer = ProducerIdAndEpoch(1, 0)
    request = transactional_request("g", {("a", 0): 9}, producer)
    runner.run(lambda machine: machine.offsets.commit_in_transaction(request, runner.caller(5)))
    runner.pass_time(200)
    assert set(runner.machine.groups) == {"g"}
    runner.end_transaction(producer, committed=False)
    runner.pass_time(100)
    assert runner.machine.groups == {}


def test_very_many_expire_a_part_at_a_time(runner: GroupRunner) -> None:
    for number in range(EXPIRED_MAX):
        commit(runner, f"g{number}", ("a", 0))
    runner.pass_time(1000)
    assert max(len(written.records) for written in runner.log) == EXPIRED_MAX
    runner.pass_time(5)
    assert runner.machine.groups == {}
