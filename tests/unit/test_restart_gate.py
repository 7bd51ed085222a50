"""Tests the verdict on a restart: which partitions and voters a broker leaves behind."""

from barnabas.health.cluster_facts import Member, Quorum
from barnabas.health.restart_gate import NO_CONTROLLER, RestartSafety

ME = 1


def quorum(*lags: int | None, leader: int | None = 1) -> Quorum:
    """Return a quorum whose voters lack so many records; None is one without contact."""
    voters = [
        Member(
            id=number,
            directory=bytes([number]) * 16,
            lag=0 if lag is None else lag,
            last_contact_ms=None if lag is None else 0,
        )
        for number, lag in enumerate(lags, 1)
    ]
    return Quorum(
        leader=leader, epoch=1, high_watermark=10, voters=voters, observers=[], addresses={}
    )


def reasons(*isr: int, replicas: int = 3, min_isr: int = 2) -> list[str]:
    safety = RestartSafety(ME)
    safety.add(("orders", 0), range(1, replicas + 1), isr, min_isr)
    return safety.reasons(quorum(0, 0, 0))


def test_a_healthy_cluster_of_three() -> None:
    assert reasons(1, 2, 3) == []


def test_a_partition_that_this_broker_is_not_in_sync_in() -> None:
    assert reasons(2) == []


def test_acks_all_would_be_rejected() -> None:
    (reason,) = reasons(1, 2)
    assert reason.startswith("1 partition (orders-0) that would reject acks=all")


def test_nobody_else_is_in_sync() -> None:
    assert reasons(1, min_isr=1) == ["1 partition (orders-0) with no other replica in sync"]


def test_there_is_no_other_replica() -> None:
    assert reasons(1, replicas=1, min_isr=1) == ["1 partition (orders-0) with no other replica"]


def test_min_isr_above_the_number_of_replicas_counts_as_all_of_them() -> None:
    assert len(reasons(1, 2, replicas=2, min_isr=3)) == 1
    assert reasons(1, 2, replicas=2, min_isr=1) == []


def test_voters() -> None:
    safety = RestartSafety(ME)
    assert safety.reasons(quorum(0, 0, 0)) == []
    assert safety.reasons(quorum(0, 0, None)) == [
        "without this broker 1 voter of 3 would be in contact, and the metadata quorum needs 2"
    ]
    assert safety.reasons(quorum(None, 0, 0)) == [], "this voter does not count anyway"
    assert safety.reasons(quorum(0, 0, 5_000)) != [], "a voter far behind cannot lead"
    assert RestartSafety(9).reasons(quorum(0, None, None)) == [], "it is no voter"
    assert safety.reasons(None) == safety.reasons(quorum(0, 0, 0, leader=None)) == [NO_CONTROLLER]


def test_many_partitions_are_named_in_part() -> None:
    safety = RestartSafety(ME)
    for number in range(2_000):
        safety.add(("orders", number), [1], [1], 1)
    (reason,) = safety.reasons(quorum(0, 0, 0))
    assert reason == ("2,000 partitions (orders-0, orders-1, orders-2, ...) with no other replica")
