"""Tests the benchmark of a cluster: its plans, its measurements and its report."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Self

import pytest

from bench import cluster_measure
from bench.__main__ import cluster_plan_of, parser, plan_of, saves, saves_group
from bench.brokers import Flush
from bench.cluster_faults import victim_among
from bench.cluster_measure import ClusterPlan
from bench.cluster_report import CLUSTER_TITLE, render_cluster, spliced
from bench.cluster_rows import CLUSTER_ROWS, EVERY_ROW, ClusterRow
from bench.cluster_running import Cluster, is_led, is_whole, metadata_bytes
from bench.cluster_sizes import ManyPartitions, Reassign
from bench.cluster_systems import (
    SYSTEMS,
    Node,
    Shape,
    System,
    barnabas_settings,
    directory_id,
    kafka_properties,
)
from bench.cluster_view import PartitionView, View
from bench.cluster_work import Pace, Press
from bench.loads import Figures
from bench.metrics import GAP
from bench.process import LoadError
from bench.results import Results, Sample
from bench.rows import ROWS

TITLES = {"barnabas": "Barnabas 0.1.0", "kafka": "Apache Kafka 4.3.0"}
NODES = [Node(n, 9090 + n, 9190 + n, Path("/data") / str(n)) for n in (1, 2, 3)]
PACE = Pace(seconds=1, warmup=1, incidents=1)


def plan(*words: str) -> ClusterPlan:
    return cluster_plan_of(parser().parse_args(words))


# --- systems -------------------------------------------------------------------------------------


def test_every_node_of_barnabas_is_given_the_same_voters() -> None:
    commands = [[str(w) for w in SYSTEMS["barnabas"].command(node, NODES)] for node in NODES]
    voters = {words[words.index("--voters") + 1] for words in commands}
    assert voters == {"1@127.0.0.1:9191,2@127.0.0.1:9192,3@127.0.0.1:9193"}
    assert [words[words.index("--node-id") + 1] for words in commands] == ["1", "2", "3"]


def test_a_broker_alone_has_no_voters() -> None:
    assert "--voters" not in SYSTEMS["barnabas"].command(NODES[0], NODES[:1])


def last_values(properties: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in properties.splitlines())


def test_both_systems_have_the_same_replication_and_timeouts() -> None:
    shape = Shape(session_ms=3000)
    ours, theirs = barnabas_settings(shape), last_values(kafka_properties(NODES[1], NODES, shape))
    assert "default_replication_factor: 3\n  min_insync_replicas: 2" in ours
    assert "broker_session_timeout: 3000ms\n  broker_heartbeat_interval: 500ms" in ours
    assert theirs["node.id"] == "2"
    assert theirs["default.replication.factor"] == "3"
    assert theirs["min.insync.replicas"] == "2"
    assert theirs["broker.session.timeout.ms"] == "3000"
    assert theirs["broker.heartbeat.interval.ms"] == "500"


def test_by_default_each_system_has_its_own_patience() -> None:
    assert "session" not in barnabas_settings(Shape())
    assert "session" not in kafka_properties(NODES[0], NODES, Shape())


def test_folders_of_kafka_have_ids_of_their_own() -> None:
    ids = {directory_id(node) for node in NODES}
    assert len(ids) == 3
    assert {len(name) for name in ids} == {22}


# --- reports of a cluster
# ---------------------------------------------------------------------------


def seen(*partitions: PartitionView) -> View:
    named = {("t", index): commands for index, commands in enumerate(partitions)}
    return View(frozenset({1, 2, 3}), named)


def test_a_partition_is_led_before_it_is_whole() -> None:
    led = seen(PartitionView(1, (1, 2, 3), (3, 2, 1)), PartitionView(2, (1, 2, 3), (1, 2)))
    assert is_led(led)
    assert not is_whole(led)
    assert not is_led(seen(PartitionView(-1, (1, 2, 3), (1, 2, 3))))
    assert is_whole(seen(PartitionView(1, (1, 2, 3), (3, 2, 1))))


def test_leaders_are_returned_by_partition() -> None:
    assert seen(PartitionView(3, (), ()), PartitionView(1, (), ())).leaders("t") == {0: 3, 1: 1}
    assert seen(PartitionView(3, (), ())).leaders("other") == {}


def test_the_victim_leads_partitions_and_not_the_quorum() -> None:
    assert victim_among([1, 2, 3], controller=1) == 2
    with pytest.raises(LoadError, match="only the controller"):
        victim_among([1, -1], controller=1)


def test_metadata_is_its_log_and_snapshots(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    sizes = {"1.log": 100, "2.checkpoint": 20, "1.index": 1000, "quorum-state": 7}
    for name, size in sizes.items():
        (folder / name).write_bytes(bytes(size))
    (tmp_path / "other-0").mkdir()
    (tmp_path / "other-0" / "1.log").write_bytes(bytes(5000))
    assert metadata_bytes(tmp_path) == 120


def test_each_move_removes_one_replica_and_adds_one() -> None:
    moves = [Reassign().placement(turn)[0] for turn in range(4)]
    for before, after in pairwise(moves):
        assert len(set(before) & set(after)) == 1
    assert all(len(set(nodes)) == 2 for nodes in moves)


def test_many_partitions_are_topics_of_a_hundred() -> None:
    assert len(ManyPartitions(partitions=1000).numbers()) == 10


# --- rows and plans ------------------------------------------------------------------------------


def test_row_keys_are_unique_and_belong_to_the_cluster() -> None:
    keys = [row.key for row in CLUSTER_ROWS]
    assert len(set(keys)) == len(keys)
    assert all(key.startswith("cluster-") for key in keys)
    assert not set(keys) & {row.key for row in ROWS}


def test_produce_and_latency_are_measured_under_both_flush_policies() -> None:
    policies = {row.key: row.work.flush for row in CLUSTER_ROWS if isinstance(row.work, Press)}
    flushed = {key for key in policies if key.endswith("-flush")}
    assert len(flushed) == 6
    for key in flushed:
        assert policies[key] is Flush.ACK
        assert policies[key.removesuffix("-flush")] is Flush.LATER


def test_a_run_without_words_measures_one_broker_and_three() -> None:
    assert plan_of(parser().parse_args([])).rows
    assert plan().rows == list(CLUSTER_ROWS)


def test_the_cluster_alone() -> None:
    assert not plan_of(parser().parse_args(["--only", "cluster"])).steps
    assert plan("--only", "cluster").rows == list(CLUSTER_ROWS)
    assert [row.key for row in plan("--only", "cluster-rolling").rows] == ["cluster-rolling"]
    assert not plan("--only", "ack-latency").steps


def test_a_quick_run_leaves_out_what_is_long_unless_it_is_named() -> None:
    quick = {row.key for row in plan("--quick").rows}
    assert "cluster-partitions-1000" in quick
    assert "cluster-partitions-10000" not in quick
    assert plan("--quick", "--only", "cluster-partitions-10000").steps == 2
    assert plan("--quick").pace.incidents == 1
    assert plan().pace.incidents >= 5


def test_rows_with_turns_of_their_own_are_left_to_the_first_round() -> None:
    both = plan("--only", "cluster-rolling", "--only", "cluster-ack-latency", "--rounds", "2")
    found = [(number, system, [row.key for row in rows]) for number, system, rows in both.visits]
    every = ["cluster-ack-latency", "cluster-rolling"]
    assert found == [
        (1, "barnabas", every),
        (1, "kafka", every),
        (2, "kafka", every[:1]),
        (2, "barnabas", every[:1]),
    ]
    assert both.steps == 6


def test_several_processes_are_a_row_of_our_own() -> None:
    scale = plan("--only", "cluster-scale-2", "--rounds", "1")
    assert [system for _, system, _ in scale.visits] == ["barnabas"]


@pytest.mark.parametrize(
    ("words", "single", "cluster"),
    [
        ([], True, True),
        (["--only", "cluster"], False, True),
        (["--only", "cluster-rolling"], False, False),
        (["--quick", "--only", "cluster"], False, False),
        (["--brokers", "kafka", "--only", "cluster"], False, False),
        (["--quick", "--save"], True, True),
    ],
)
def test_a_whole_run_of_the_cluster_replaces_its_part(
    words: list[str], single: bool, cluster: bool
) -> None:
    options = parser().parse_args(words)
    assert (saves(options), saves_group(options, EVERY_ROW)) == (single, cluster)


# --- the run -------------------------------------------------------------------------------------


class RecordingCluster(Cluster):
    """It starts no processes, and records its calls."""

    commands: list[str]

    def __init__(self, system: System, shape: Shape) -> None:
        self.system, self.shape = system, shape

    def __enter__(self) -> Self:
        self.commands.append(f"start {self.shape.nodes}")
        return self

    def __exit__(self, *_: object) -> None:
        self.commands.append("stop")


class Turns:
    """Run a number of rounds, and then fail if requested."""

    def __init__(self, count: int, failure: str = "") -> None:
        self._count, self._failure = count, failure

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        for turn in range(self._count):
            yield {"gap_ms": float(turn)}
        if self._failure:
            raise LoadError(self._failure)


def row(key: str, work: Turns) -> ClusterRow:
    return ClusterRow(key=key, section="s", title="t", work=work, metrics=(GAP,))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    recorded: list[str] = []
    monkeypatch.setattr(RecordingCluster, "commands", recorded, raising=False)
    monkeypatch.setattr(cluster_measure, "Cluster", RecordingCluster)
    return recorded


def samples(*rows: ClusterRow) -> list[Sample]:
    ours = ClusterPlan(rows=rows, systems=["barnabas"], rounds=1, pace=PACE)
    return list(cluster_measure.run(ours, lambda _: None, lambda: None))


def test_rows_of_one_shape_share_a_cluster_and_each_turn_is_a_sample(commands: list[str]) -> None:
    found = samples(row("a", Turns(2)), row("b", Turns(1)))
    assert [(s.row, s.figures) for s in found] == [
        ("a", {"gap_ms": 0.0}),
        ("a", {"gap_ms": 1.0}),
        ("b", {"gap_ms": 0.0}),
    ]
    assert commands == ["start 3", "stop"]


def test_another_shape_is_another_cluster(commands: list[str]) -> None:
    samples(row("a", Turns(1)), replace(row("b", Turns(1)), shape=Shape(nodes=1)))
    assert commands == ["start 3", "stop", "start 1", "stop"]


def test_a_row_that_spoils_its_cluster_leaves_none_behind(commands: list[str]) -> None:
    samples(replace(row("a", Turns(1)), spoils=True), row("b", Turns(1)))
    assert commands == ["start 3", "stop", "start 3", "stop"]


def test_after_a_failure_the_next_row_has_a_new_cluster(commands: list[str]) -> None:
    found = samples(row("a", Turns(1, "no ack")), row("b", Turns(1)))
    assert [(s.row, s.error) for s in found] == [("a", ""), ("a", "no ack"), ("b", "")]
    assert commands == ["start 3", "stop", "start 3", "stop"]


def test_a_run_that_is_closed_stops_its_cluster(commands: list[str]) -> None:
    ours = ClusterPlan(rows=[row("a", Turns(3))], systems=["barnabas"], rounds=1, pace=PACE)
    going = cluster_measure.run(ours, lambda _: None, lambda: None)
    next(going)
    going.close()
    assert commands == ["start 3", "stop"]


# --- the page ------------------------------------------------------------------------------------


def test_turns_of_a_row_are_shown_as_a_spread() -> None:
    figures = [("barnabas", 900.0), ("barnabas", 1000.0), ("barnabas", 1200.0), ("kafka", 2000.0)]
    taken = [
        Sample(row="cluster-stop-leader", broker=broker, round=1, figures={"gap_ms": value})
        for broker, value in figures
    ]
    page = render_cluster(Results(facts={"commit": "abc"}, titles=TITLES, samples=taken))
    (line,) = [line for line in page.splitlines() if "longest pause" in line]
    assert line.endswith("| 1,000 (900-1,200) | 2,000 | 0.50x | ≤ 1.0x | yes |")
    assert page.startswith(f"{CLUSTER_TITLE}\n")
    assert "| commit | abc |" in page


def test_a_part_that_was_measured_replaces_its_like_and_leaves_the_other() -> None:
    first = spliced("", single="# Benchmark results\n\nold\n")
    both = spliced(first, cluster=f"{CLUSTER_TITLE}\n\nthree\n")
    assert both == f"# Benchmark results\n\nold\n\n{CLUSTER_TITLE}\n\nthree\n"
    assert spliced(both, single="# Benchmark results\n\nnew\n") == both.replace("old", "new")
    assert spliced(both, cluster=f"{CLUSTER_TITLE}\n\n3\n") == both.replace("three", "3")
