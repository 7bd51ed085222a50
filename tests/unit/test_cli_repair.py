"""Tests which replicas `barnabas partition repair` finds missing, and where it puts them."""

from collections import Counter

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.replica_placement import Partitions, Seat, fill_up
from barnabas.admin.replication_factors import Factors
from barnabas.cli.partition.repair_command import shortages, split

OFFSETS = "__consumer_offsets"
CONFIGURED = {"default.replication.factor": 3, "offsets.topic.replication.factor": 3}
SEATS = [Seat(1), Seat(2), Seat(3)]


def short(
    partitions: Partitions,
    *topics: str,
    least: int = 1,
    recorded: dict[str, int] | None = None,
    factor: int | None = None,
    brokers: int = 4,
) -> dict[tuple[str, int], int]:
    factors = Factors(
        min_in_sync={topic: least for topic, _ in partitions},
        recorded=recorded or {},
        configured=CONFIGURED,
    )
    found = shortages(partitions, factors, topics, factor, brokers=brokers)
    return {each.place: each.wanted for each in found}


def test_the_brokers_own_topics_are_to_have_the_configured_factor() -> None:
    there = {(OFFSETS, 0): (1, 2), (OFFSETS, 1): (1, 2, 3)}
    assert short(there) == {(OFFSETS, 0): 3}


def test_a_lone_broker_lacks_nothing() -> None:
    assert short({(OFFSETS, 0): (1,)}, brokers=1) == {}


def test_a_recorded_factor_counts() -> None:
    assert short({("orders", 0): (1, 2)}, recorded={"orders": 4}) == {("orders", 0): 4}


def test_a_topic_that_is_left_with_too_few_gets_one_more_than_must_be_in_sync() -> None:
    assert short({("orders", 0): (1, 2)}, least=2) == {("orders", 0): 3}
    assert short({("orders", 0): (1, 2, 3)}, least=3) == {("orders", 0): 4}


def test_topics_that_chose_their_factor_are_left_alone_unless_they_are_named() -> None:
    there = {("one", 0): (1,), ("two", 0): (1, 2)}
    assert short(there) == {}
    assert short(there, "one") == {("one", 0): 3}
    assert short(there, "one", factor=2) == {("one", 0): 2}
    with pytest.raises(AdminError, match="There is no topic nope"):
        short(there, "nope")


def test_what_lacks_brokers_must_wait() -> None:
    there: Partitions = {("orders", 0): (1, 2), ("orders", 1): (1, 3)}
    found = shortages(there, Factors(recorded={"orders": 3}), brokers=3)
    possible, blocked = split(found, there, SEATS[:2])
    assert [each.place for each in possible] == [("orders", 1)], "broker 2 is free for it"
    assert [each.place for each in blocked] == [("orders", 0)]


def test_replicas_are_only_added_and_leaders_even() -> None:
    there: Partitions = {(OFFSETS, number): (1, 2) for number in range(9)}
    after = fill_up(there, SEATS, dict.fromkeys(there, 3))
    assert all(sorted(copies) == [1, 2, 3] for copies in after.values())
    assert len(after) == 9
    assert Counter(copies[0] for copies in after.values()) == {1: 3, 2: 3, 3: 3}


def test_a_replica_on_a_broker_that_is_down_stays() -> None:
    there: Partitions = {("orders", 0): (1, 4)}
    assert fill_up(there, SEATS, {("orders", 0): 3}) == {("orders", 0): (1, 4, 2)}


def test_a_new_replica_goes_to_another_rack() -> None:
    there: Partitions = {("orders", 0): (1, 2)}
    racks = [Seat(1, "a"), Seat(2, "a"), Seat(3, "a"), Seat(4, "b")]
    ((_, copies),) = fill_up(there, racks, {("orders", 0): 3}).items()
    assert sorted(copies) == [1, 2, 4]
