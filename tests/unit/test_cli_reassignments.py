"""Tests reassignment plans: as files, their cost, their progress, and their errors."""

import json
from pathlib import Path

import pytest

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.placement_planning import Scene
from barnabas.admin.reassignments import (
    current_partitions,
    make_plan,
    parse_plan,
    read_plan,
    sizes_of,
    standing,
)
from barnabas.admin.replica_placement import Seat, arrange, drain
from barnabas.cli.partition.moving import format_bytes
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

PLACE = ("orders", 0)
CLUSTER = DescribeClusterResponse(
    brokers=[DescribeClusterBroker(broker_id=number) for number in (1, 2, 3)]
)


def moving(*, adding: list[int], removing: list[int]) -> list[OngoingTopicReassignment]:
    ongoing = OngoingPartitionReassignment(
        partition_index=0, adding_replicas=adding, removing_replicas=removing
    )
    return [OngoingTopicReassignment(name="orders", partitions=[ongoing])]


def test_a_plan_costs_what_brokers_have_to_copy() -> None:
    sizes = {1: {PLACE: 700}, 2: {PLACE: 650}}
    plan = make_plan({PLACE: (1, 2)}, {PLACE: (3, 4)}, sizes)
    assert (plan.moves, plan.bytes_to_move) == (2, 1400)
    reordered = make_plan({PLACE: (1, 2)}, {PLACE: (2, 1)}, sizes)
    assert (len(reordered.changes), reordered.moves, reordered.bytes_to_move) == (1, 0, 0)
    assert make_plan({PLACE: (1, 2)}, {PLACE: (1, 2)}, sizes).changes == []


def test_what_json_prints_is_a_plan_again() -> None:
    plan = make_plan({PLACE: (1, 2)}, {PLACE: (2, 3)}, {})
    assert parse_plan(json.dumps(plan.as_json()), "a file") == {PLACE: (2, 3)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"partitions": 5}',
        '{"partitions": [{"topic": "orders"}]}',
        '{"partitions": [{"topic": "orders", "partition": 0, "replicas": ["a"]}]}',
    ],
)
def test_what_is_not_a_plan_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AdminError, match=r"is not a plan.*replicas"):
        parse_plan(text, "plan.json")


@pytest.mark.parametrize(
    ("topic", "replicas", "complaint"),
    [
        ("orders", [], "name each broker once"),
        ("orders", [1, 1], "name each broker once"),
        ("orders", [1, 9], "broker 9, which does not exist; the cluster has 1, 2, 3"),
        ("nope", [1], "nope-0, which does not exist"),
    ],
)
def test_plans_are_checked_against_the_cluster(
    tmp_path: Path, topic: str, replicas: list[int], complaint: str
) -> None:
    path = tmp_path / "plan.json"
    entry = {"topic": topic, "partition": 0, "replicas": replicas}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    with pytest.raises(AdminError, match=complaint):
        read_plan(path, {PLACE: (1, 2)}, CLUSTER)


def test_a_partition_that_moves_counts_where_it_will_be() -> None:
    partition = MetadataResponsePartition(partition_index=0, replica_nodes=[3, 1, 2])
    topics = [MetadataResponseTopic(name="orders", partitions=[partition])]
    assert current_partitions(topics) == {PLACE: (3, 1, 2)}
    assert current_partitions(topics, moving(adding=[3], removing=[1])) == {PLACE: (3, 2)}


def test_progress_counts_replicas_and_bytes() -> None:
    plan = make_plan({PLACE: (1, 2)}, {PLACE: (3, 4)}, {1: {PLACE: 100}})
    begun = standing(plan, moving(adding=[3, 4], removing=[1, 2]), {3: {PLACE: 40}, 4: {}})
    assert (begun.partitions_left, begun.copies_left, begun.bytes_copied) == (1, 2, 40)
    half = standing(plan, moving(adding=[4], removing=[1, 2]), {4: {PLACE: 250}})
    assert (half.partitions_left, half.copies_left, half.bytes_copied) == (1, 1, 200)
    done = standing(plan, [], {})
    assert (done.partitions_left, done.copies_left, done.bytes_copied) == (0, 0, 200)


def test_sizes_come_from_the_brokers_that_answer() -> None:
    there = DescribeLogDirsPartition(partition_index=0, partition_size=5)
    future = DescribeLogDirsPartition(partition_index=1, partition_size=9, is_future_key=True)
    result = DescribeLogDirsResult(
        topics=[DescribeLogDirsTopic(name="orders", partitions=[there, future])]
    )
    assert sizes_of({1: [result], 2: "nobody answers"}) == {1: {PLACE: 5}}


def test_what_moves_already_is_left_alone() -> None:
    scene = Scene(
        cluster=CLUSTER, moving=moving(adding=[3], removing=[]), partitions={PLACE: (1, 2)}
    )
    scene.require_at_rest([("orders", 1)])
    with pytest.raises(AdminError, match=r"already being reassigned.*--cancel"):
        scene.require_at_rest([PLACE])


def test_fewer_brokers_than_replicas_is_reported_with_the_partition() -> None:
    seats = [Seat(1), Seat(2), Seat(3)]
    with pytest.raises(AdminError, match="orders-0 has 3 replicas, and there are only 2 brokers"):
        drain({PLACE: (1, 2, 3)}, seats, 3)
    with pytest.raises(AdminError, match=r"4 replicas.*only 3 brokers"):
        arrange({PLACE: (1, 2, 3)}, seats, replication_factor=4)


def test_a_replica_on_a_broker_that_is_down_waits_for_it_while_another_is_drained() -> None:
    assert drain({PLACE: (1, 9)}, [Seat(1), Seat(2), Seat(3)], 1) == {PLACE: (9, 2)}


def test_a_drained_leader_is_followed_by_one_that_has_the_records() -> None:
    (copies,) = drain({PLACE: (1, 2)}, [Seat(1), Seat(2), Seat(3)], 1).values()
    assert copies == (2, 3)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (25_000_000, "25 MB"), (3e15, "3,000.0 TB")],
)
def test_bytes_for_people(count: float, text: str) -> None:
    assert format_bytes(count) == text
