"""Tests how brokers' responses become a description of the cluster, and its health."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from barnabas.admin.cluster_overview import Answers, Overview, overview
from barnabas.admin.health import Verdict, verdict
from barnabas.admin.replication_factors import Factors, replicated
from barnabas.cli.cluster.status_view import draw_status
from barnabas.health.quorum_margin import SILENCE_MS
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

NOW_MS = 1_000_000
DISK = [DescribeLogDirsResult(total_bytes=100, usable_bytes=50)]
ADDRESSES = {number: f"10.0.0.{number}:9192" for number in (1, 2, 3)}


def broker(number: int, *, fenced: bool = False) -> DescribeClusterBroker:
    return DescribeClusterBroker(
        broker_id=number, host="h", port=9000 + number, rack=f"r{number}", is_fenced=fenced
    )


def partition(
    number: int, leader: int, replicas: Sequence[int], isr: Sequence[int] | None = None
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=number,
        leader_id=leader,
        replica_nodes=list(replicas),
        isr_nodes=list(replicas if isr is None else isr),
    )


def topic(*partitions: MetadataResponsePartition, name: str = "orders") -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, partitions=list(partitions))


def voter(number: int, *, end: int = 50, heard_ms: int = NOW_MS, disk: int = 1) -> ReplicaState:
    return ReplicaState(
        replica_id=number,
        replica_directory_id=bytes([disk]) * 16,
        log_end_offset=end,
        last_fetch_timestamp=heard_ms,
    )


def quorum(
    *voters: ReplicaState, leader: int = 1, observers: Sequence[ReplicaState] = ()
) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        leader_id=leader,
        leader_epoch=7,
        high_watermark=50,
        current_voters=list(voters) or [voter(1), voter(2), voter(3)],
        observers=list(observers),
    )


def seen(
    *topics: MetadataResponseTopic,
    brokers: Sequence[DescribeClusterBroker] | None = None,
    decided_by: DescribeQuorumResponsePartitionData | None = None,
    moving: Sequence[OngoingTopicReassignment] = (),
    least: int = 2,
    disks: dict[int, Sequence[DescribeLogDirsResult] | str] | None = None,
    recorded: dict[str, int] | None = None,
    configured: dict[str, int] | None = None,
    now_ms: int = NOW_MS,
) -> Overview:
    answers = Answers(
        cluster=DescribeClusterResponse(
            cluster_id="castle", brokers=list(brokers or map(broker, (1, 2, 3)))
        ),
        topics=topics,
        quorum=quorum() if decided_by is None else decided_by,
        reassignments=moving,
        factors=Factors(
            min_in_sync={each.name or "": least for each in topics},
            recorded=recorded or {},
            configured=configured or {},
        ),
        disks=disks or {},
        voter_addresses=ADDRESSES,
    )
    return overview(answers, now_ms)


FINE = topic(partition(0, 1, (1, 2, 3)), partition(1, 2, (2, 3, 1)))


def test_a_cluster_without_fault_is_healthy() -> None:
    found = seen(FINE, disks={1: DISK, 2: DISK, 3: DISK})
    assert (verdict(found).verdict, verdict(found).reasons) == (Verdict.HEALTHY, [])
    assert [(each.leaders, each.replicas, each.in_sync) for each in found.brokers] == [
        (1, 2, 2),
        (1, 2, 2),
        (0, 2, 2),
    ]
    assert found.as_json()["controller"] == 1
    assert found.brokers[0].disk_free == 0.5


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        (
            seen(topic(partition(0, 1, (1, 2, 3), (1, 2)))),
            Verdict.DEGRADED,
            "1 partition (orders-0) with replicas out of sync",
        ),
        (
            seen(topic(partition(0, 1, (1, 2, 3), (1,)))),
            Verdict.UNAVAILABLE,
            "1 partition (orders-0) rejecting acks=all: fewer in-sync replicas than "
            "min.insync.replicas",
        ),
        (
            seen(topic(partition(0, -1, (1, 2, 3), (1,))), least=1),
            Verdict.UNAVAILABLE,
            "1 partition (orders-0) without a leader; start a broker that has a replica",
        ),
        (
            seen(FINE, brokers=[broker(1), broker(2), broker(3, fenced=True)]),
            Verdict.DEGRADED,
            "broker 3 at h:9003 is fenced",
        ),
        (
            seen(FINE, disks={3: "nobody answers"}),
            Verdict.DEGRADED,
            "broker 3 at h:9003 is silent: nobody answers",
        ),
        (
            seen(FINE, disks={2: "nobody answers"}),
            Verdict.UNAVAILABLE,
            "broker 2 at h:9002 leads 1 partition and does not answer: nobody answers",
        ),
        (
            seen(FINE, disks={1: [DescribeLogDirsResult(total_bytes=1000, usable_bytes=49)]}),
            Verdict.DEGRADED,
            "broker 1 has 4.9% of its disk left",
        ),
        (
            seen(FINE, decided_by=quorum(leader=-1)),
            Verdict.UNAVAILABLE,
            "no controller: metadata cannot change; start enough voters for a majority",
        ),
        (
            seen(
                FINE,
                decided_by=quorum(
                    voter(1), voter(2, heard_ms=NOW_MS - SILENCE_MS - 8_000), voter(3)
                ),
            ),
            Verdict.DEGRADED,
            "voter 2 has not fetched from the controller for 13s",
        ),
        (
            seen(FINE, decided_by=quorum(voter(1), voter(2, heard_ms=-1), voter(3))),
            Verdict.DEGRADED,
            "voter 2 has not fetched from the controller since its election",
        ),
        (
            seen(FINE, decided_by=quorum(voter(1, end=5000), voter(2), voter(3, end=5000))),
            Verdict.DEGRADED,
            "voter 2 is 4,950 records behind",
        ),
    ],
)
def test_what_is_wrong_is_reported(found: Overview, expected: Verdict, reason: str) -> None:
    health = verdict(found)
    assert health.verdict is expected
    assert reason in health.reasons


def test_the_worst_comes_first_and_exit_codes_follow() -> None:
    found = seen(
        topic(partition(0, -1, (3,), (3,))), brokers=[broker(1), broker(3, fenced=True)], least=1
    )
    assert "without a leader" in verdict(found).reasons[0]
    assert "fenced" in verdict(found).reasons[1]
    assert [each.exit_code for each in Verdict] == [0, 1, 2]


def test_min_insync_replicas_above_the_replication_factor_means_all() -> None:
    found = seen(topic(partition(0, 1, (1,))), least=2)
    assert verdict(found).verdict is Verdict.HEALTHY


def test_a_replica_that_is_being_created_is_not_missed() -> None:
    partitions = [
        OngoingPartitionReassignment(partition_index=0, adding_replicas=[3], removing_replicas=[1])
    ]
    moving = [OngoingTopicReassignment(name="orders", partitions=partitions)]
    found = seen(topic(partition(0, 1, (3, 1, 2), (1, 2))), moving=moving, least=1)
    assert found.partitions.reassigning == [("orders", 0)]
    assert found.partitions.not_led_as_preferred == []
    assert verdict(found).verdict is Verdict.HEALTHY


def test_leaders_that_are_not_the_preferred_ones_are_counted_and_no_fault() -> None:
    found = seen(topic(partition(0, 2, (1, 2, 3)), partition(1, -1, (1, 2, 3))))
    assert found.partitions.not_led_as_preferred == [("orders", 0)]


def test_contact_is_measured_by_the_leaders_clock() -> None:
    answer = quorum(voter(1, heard_ms=NOW_MS), voter(2, heard_ms=NOW_MS - 300))
    found = seen(FINE, decided_by=answer, now_ms=NOW_MS + 3_600_000)
    assert found.quorum is not None
    assert [each.last_contact_ms for each in found.quorum.voters] == [0, 300]


def test_user_topics_with_one_replica_are_not_asked_about() -> None:
    single = topic(partition(0, 1, (1,)), name="single")
    offsets = topic(partition(0, 1, (1,)), name="__consumer_offsets")
    assert replicated([FINE, single, offsets]) == ["orders", "__consumer_offsets"]


def test_as_many_replicas_as_must_be_in_sync_are_too_few() -> None:
    found = seen(topic(partition(0, 1, (1, 2)), partition(1, 1, (1, 2, 3))))
    assert found.partitions.replicas_at_min_isr == [("orders", 0)]
    assert found.partitions.at_min_isr == [("orders", 0)]
    health = verdict(found)
    assert health.verdict is Verdict.DEGRADED
    assert "1 partition (orders-0) with no more replicas than min.insync.replicas" in str(health)
    listed = found.partitions.as_json()
    assert listed["replicas_at_min_isr"] == ["orders-0"]


def test_one_replica_on_purpose_is_healthy() -> None:
    found = seen(topic(partition(0, 1, (1,))), configured={"default.replication.factor": 3})
    assert verdict(found).verdict is Verdict.HEALTHY
    assert found.partitions.at_min_isr == []


def test_a_topic_below_the_factor_it_is_to_have_is_not_healthy() -> None:
    found = seen(topic(partition(0, 1, (1, 2))), least=1, recorded={"orders": 3})
    assert found.partitions.below_replication_factor == [("orders", 0)]
    assert verdict(found).verdict is Verdict.DEGRADED
    assert "1 partition (orders-0) below the replication factor" in verdict(found).reasons[0]


def test_a_replica_that_is_still_being_added_is_missing() -> None:
    partitions = [OngoingPartitionReassignment(partition_index=0, adding_replicas=[3])]
    moving = [OngoingTopicReassignment(name="orders", partitions=partitions)]
    grows = topic(partition(0, 1, (1, 2, 3), (1, 2)))
    found = seen(grows, moving=moving, recorded={"orders": 3})
    assert found.partitions.below_replication_factor == [("orders", 0)]


def test_of_the_brokers_own_topics_the_configured_factor_counts() -> None:
    """Topics of an earlier release do not record their replication factor."""
    offsets = topic(partition(0, 1, (1, 2)), name="__consumer_offsets")
    configured = {"offsets.topic.replication.factor": 3}
    found = seen(offsets, least=1, configured=configured)
    assert found.partitions.below_replication_factor == [("__consumer_offsets", 0)]


def test_a_cluster_with_fewer_brokers_than_the_factor_has_what_it_can_have() -> None:
    configured = {"offsets.topic.replication.factor": 3}
    alone = topic(partition(0, 1, (1,)), name="__consumer_offsets")
    lone = seen(alone, brokers=[broker(1)], configured=configured, decided_by=quorum(voter(1)))
    assert verdict(lone).verdict is Verdict.HEALTHY


def test_the_table_lists_all_voters() -> None:
    screen = Console(record=True, width=120)
    screen.print(draw_status(seen(FINE, decided_by=quorum(observers=[voter(9)]))))
    text = screen.export_text()
    for word in ("healthy", "h:9001", "up, controller", "epoch 7", "observer", "offline"):
        assert word in text


GONE_MS = NOW_MS - 10 * SILENCE_MS
NEXT_LOSS = "if one more is lost, no controller can be elected"


def test_a_voter_that_came_back_with_an_empty_disk_is_named_with_what_gives_it_a_vote() -> None:
    decided_by = quorum(
        voter(1), voter(2, heard_ms=GONE_MS), voter(3), observers=[voter(2, disk=7)]
    )
    found = seen(FINE, decided_by=decided_by)
    health = verdict(found)
    assert (health.verdict, health.warnings) == (Verdict.DEGRADED, [])
    assert health.reasons == [
        f"2 of 3 voters can decide on metadata: {NEXT_LOSS}",
        "broker 2 came back with an empty disk and does not vote; to give it its vote again: "
        "`barnabas cluster demote 2`, then "
        "`barnabas cluster promote 2 --peer-listen 10.0.0.2:9192`",
    ]
    assert found.quorum is not None
    assert found.quorum.as_json()["votes"] == {
        "voters": [1, 2, 3],
        "caught_up": [1, 3],
        "returned": [2],
        "without_vote": [],
        "losses_left": 0,
    }


def test_a_lost_disk_no_longer_counts_though_it_is_remembered() -> None:
    decided_by = quorum(
        voter(1), voter(2), voter(3), observers=[voter(2, heard_ms=GONE_MS, disk=7)]
    )
    assert verdict(seen(FINE, decided_by=decided_by)).verdict is Verdict.HEALTHY


def test_a_voter_that_is_down_is_reported_with_the_next_loss_and_possible_voters() -> None:
    brokers = [broker(number) for number in (1, 2, 3, 4)]
    decided_by = quorum(voter(1), voter(2), voter(3, heard_ms=GONE_MS), observers=[voter(4)])
    reasons = verdict(seen(FINE, brokers=brokers, decided_by=decided_by)).reasons
    assert reasons == [
        "voter 3 has not fetched from the controller for 50s",
        f"2 of 3 voters can decide on metadata: {NEXT_LOSS}",
        "broker 4 runs and does not vote; to give it a vote: "
        "`barnabas cluster promote 4 --peer-listen HOST:PORT`",
    ]


def test_a_quorum_that_survives_another_loss_shows_no_warning() -> None:
    voters = [voter(number) for number in (1, 2, 3, 4)]
    decided_by = quorum(*voters, voter(5, heard_ms=GONE_MS), observers=[voter(5, disk=7)])
    reasons = verdict(seen(FINE, decided_by=decided_by)).reasons
    assert len(reasons) == 1
    assert "broker 5 came back with an empty disk" in reasons[0]


@pytest.mark.parametrize(
    ("voters", "observers", "warned"),
    [
        ([1], [], False),
        ([1], [2], False),
        ([1], [2, 3], True),
        ([1, 2], [], False),
        ([1, 2], [3], True),
        ([1, 2, 3], [4, 5], False),
        ([1, 2, 3, 4], [], False),
    ],
)
def test_too_few_voters_are_a_warning_where_other_brokers_could_vote(
    voters: list[int], observers: list[int], warned: bool
) -> None:
    decided_by = quorum(*map(voter, voters), observers=[voter(each) for each in observers])
    health = verdict(seen(FINE, decided_by=decided_by))
    assert (health.verdict, health.reasons) == (Verdict.HEALTHY, [])
    assert [NEXT_LOSS in each for each in health.warnings[:1]] == [True] * warned
    assert len(health.warnings) == (1 + len(observers) if warned else 0)
    assert health.as_json()["warnings"] == health.warnings


def test_status_says_how_many_losses_the_quorum_survives() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(draw_status(seen(FINE)))
    assert "3 of 3 voters caught up, stands the loss of 1" in console.export_text()
