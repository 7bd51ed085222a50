"""Tests how answers become states: rates, lag in time, groups, and what stays when answers lack."""

import math

import pytest

from barnabas.admin.health import Verdict
from barnabas.monitor.group_observing import READS_MAX
from barnabas.monitor.lag_rules import WINDOW
from barnabas.monitor.states import GroupStatus
from tests.support.watched_cluster import INTERVAL_MS, ORDERS, WatchedCluster, group, member

INTERVAL_S = INTERVAL_MS / 1000


@pytest.fixture
def cluster() -> WatchedCluster:
    return WatchedCluster()


def test_one_sample_is_not_enough_for_rates(cluster: WatchedCluster) -> None:
    state = cluster.tick()
    assert state.records_per_s is None
    assert state.topics["orders"].partitions[0].records_per_s is None
    assert state.health.verdict is Verdict.HEALTHY


def test_rates_and_sums(cluster: WatchedCluster) -> None:
    cluster.topics = {"orders": 2}
    for number in range(3):
        cluster.ends = {ORDERS: 100 * number, ("orders", 1): 300 * number}
        cluster.starts = {ORDERS: 0, ("orders", 1): 0}
        cluster.sizes = {ORDERS: 1000 * number, ("orders", 1): 5000 * number}
        state = cluster.tick()
    topic = state.topics["orders"]
    assert [each.records_per_s for each in topic.partitions] == [10.0, 30.0]
    assert topic.records_per_s == state.records_per_s == 40.0
    assert topic.bytes_per_s == state.bytes_per_s == 600.0
    assert topic.records == 800
    assert topic.size_bytes == 12_000


def test_retention_does_not_make_a_log_grow_backwards(cluster: WatchedCluster) -> None:
    cluster.ends, cluster.sizes = {ORDERS: 1000}, {ORDERS: 100_000}
    cluster.tick()
    cluster.ends, cluster.starts, cluster.sizes = {ORDERS: 1100}, {ORDERS: 600}, {ORDERS: 50_000}
    state = cluster.tick()
    assert state.topics["orders"].bytes_per_s == 10.0 * 100


def test_lag_in_time_is_right_within_one_interval_when_producers_stop(
    cluster: WatchedCluster,
) -> None:
    cluster.commit("billing", {ORDERS: 0})
    cluster.tick()
    cluster.ends = {ORDERS: 50}
    ages = [cluster.tick().groups["billing"].lag_s for _ in range(5)]
    assert ages == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_lag_in_time_follows_the_commit(cluster: WatchedCluster) -> None:
    for end in (0, 10, 20, 30, 40):
        cluster.ends = {ORDERS: end}
        cluster.commit("billing", {ORDERS: max(0, end - 25)})
        state = cluster.tick()
    assert state.groups["billing"].lag == 25
    assert state.groups["billing"].lag_s == 20.0
    cluster.commit("billing", {ORDERS: 40})
    state = cluster.tick()
    assert (state.groups["billing"].lag, state.groups["billing"].lag_s) == (0, 0.0)


def test_a_record_older_than_all_samples_is_asked_for_once(cluster: WatchedCluster) -> None:
    cluster.ends = {ORDERS: 100}
    cluster.commit("billing", {ORDERS: 40})
    wanted = cluster.observer.unread(cluster.collected())
    assert wanted == {(ORDERS, 40): 1}
    cluster.written_ms = {(ORDERS, 40): cluster.wall_ms - 3_600_000}
    assert cluster.tick().groups["billing"].lag_s == 3600 + INTERVAL_S
    cluster.written_ms = {}
    assert cluster.observer.unread(cluster.collected()) == {}
    assert cluster.tick().groups["billing"].lag_s == 3600 + 2 * INTERVAL_S


def test_a_record_that_cannot_be_read_leaves_the_time_unknown(cluster: WatchedCluster) -> None:
    cluster.ends = {ORDERS: 100}
    cluster.commit("billing", {ORDERS: 40})
    state = cluster.tick()
    assert state.groups["billing"].lag == 60
    assert state.groups["billing"].lag_s is None


def test_deleted_records_are_not_asked_for(cluster: WatchedCluster) -> None:
    cluster.ends, cluster.starts = {ORDERS: 100}, {ORDERS: 70}
    cluster.commit("billing", {ORDERS: 40})
    assert list(cluster.observer.unread(cluster.collected())) == [(ORDERS, 70)]


def test_records_are_asked_for_in_turn(cluster: WatchedCluster) -> None:
    places = [("orders", number) for number in range(READS_MAX + 200)]
    cluster.topics = {"orders": len(places)}
    cluster.ends = dict.fromkeys(places, 10)
    cluster.commit("billing", dict.fromkeys(places, 5))
    first = set(cluster.observer.unread(cluster.collected()))
    second = set(cluster.observer.unread(cluster.collected()))
    assert len(first) == len(second) == READS_MAX
    assert len(first | second) == len(places)


def run_groups(cluster: WatchedCluster, ticks: int = WINDOW) -> None:
    """Let groups do what they are named after, while producers send 100 records an interval."""
    for tick in range(1, ticks + 1):
        cluster.ends = {ORDERS: 100 * tick}
        cluster.commit("ok", {ORDERS: 100 * tick})
        cluster.commit("behind", {ORDERS: 50 * tick})
        cluster.commit("stalled", {ORDERS: 10})
        cluster.commit("stopped", {ORDERS: 10}, has_member=False)
        cluster.commit("rewound", {ORDERS: 100 * tick if tick < ticks else 0})
        cluster.commit("catching-up", {ORDERS: min(100 * tick, 150 * tick - 500)})
        cluster.tick()


def test_each_status(cluster: WatchedCluster) -> None:
    run_groups(cluster)
    state = cluster.observer.state
    assert state is not None
    found = {name: each.status for name, each in state.groups.items()}
    assert found == {
        "ok": GroupStatus.OK,
        "behind": GroupStatus.BEHIND,
        "stalled": GroupStatus.STALLED,
        "stopped": GroupStatus.STOPPED,
        "rewound": GroupStatus.REWOUND,
        "catching-up": GroupStatus.OK,
    }
    assert state.groups["behind"].eta_s == math.inf
    assert state.groups["ok"].eta_s == 0.0
    assert state.groups["stopped"].lag_trend == tuple(100 * tick - 10 for tick in range(1, 11))


def test_no_status_before_the_window_is_full(cluster: WatchedCluster) -> None:
    run_groups(cluster, WINDOW - 1)
    state = cluster.observer.state
    assert state is not None
    assert state.groups["stopped"].status is GroupStatus.UNKNOWN
    assert state.groups["stalled"].status is GroupStatus.UNKNOWN
    assert state.groups["ok"].status is GroupStatus.OK


def test_eta_is_that_of_the_partition_that_takes_longest(cluster: WatchedCluster) -> None:
    cluster.topics = {"orders": 2}
    other = ("orders", 1)
    cluster.starts = {ORDERS: 0, other: 0}
    for tick in range(3):
        cluster.ends = {ORDERS: 1000 + 100 * tick, other: 1000}
        cluster.commit("billing", {ORDERS: 200 * tick, other: 50 * tick})
        state = cluster.tick()
    assert state.groups["billing"].eta_s == 900 / 5.0


def test_a_group_without_commits_has_no_lag(cluster: WatchedCluster) -> None:
    cluster.groups["new"] = group("new", {}, [member(ORDERS)])
    found = cluster.tick().groups["new"]
    assert (found.lag, found.lag_s, found.eta_s) == (None, None, None)
    assert found.status is GroupStatus.UNKNOWN
    assert found.partitions[0].client_id == "app"


def test_a_commit_beyond_the_end_is_no_negative_lag(cluster: WatchedCluster) -> None:
    cluster.commit("billing", {ORDERS: 500})
    found = cluster.tick().groups["billing"].partitions[0]
    assert (found.lag, found.lag_s) == (0, 0.0)


def test_a_deleted_topic_leaves_its_commits_without_lag(cluster: WatchedCluster) -> None:
    cluster.commit("billing", {ORDERS: 5})
    cluster.ends = {ORDERS: 10}
    cluster.tick()
    cluster.topics, cluster.ends, cluster.starts = {}, {}, {}
    state = cluster.tick()
    assert state.topics == {}
    assert state.groups["billing"].partitions[0].committed == 5
    assert state.groups["billing"].lag is None


def test_a_topic_that_is_created_anew_begins_anew(cluster: WatchedCluster) -> None:
    for end in (1000, 2000):
        cluster.ends = {ORDERS: end}
        cluster.commit("billing", {ORDERS: end})
        cluster.tick()
    cluster.ends = {ORDERS: 3}
    cluster.commit("billing", {ORDERS: 0})
    found = cluster.tick().groups["billing"]
    assert found.lag == 3
    assert found.status is GroupStatus.REWOUND


def test_lost_records_and_the_margin_to_retention(cluster: WatchedCluster) -> None:
    for tick in range(4):
        cluster.ends = {ORDERS: 1000 + 100 * tick}
        cluster.starts = {ORDERS: 50 * tick}
        cluster.commit("billing", {ORDERS: 180 + 20 * tick})
        state = cluster.tick()
    found = state.groups["billing"]
    assert found.retention_margin_s == pytest.approx((240 - 150) / (5.0 - 2.0))
    cluster.starts = {ORDERS: 400}
    found = cluster.tick().groups["billing"]
    assert found.partitions[0].lost_records == 160
    assert found.retention_margin_s == 0.0
    assert cluster.tick().groups["billing"].partitions[0].lost_records == 160


def test_a_partition_that_is_not_answered_keeps_its_values(cluster: WatchedCluster) -> None:
    cluster.ends = {ORDERS: 10}
    cluster.commit("billing", {ORDERS: 0})
    cluster.tick()
    cluster.ends, cluster.starts, cluster.troubles = {}, {}, ["broker 1 does not answer: why"]
    state = cluster.tick()
    assert state.topics["orders"].partitions[0].end == 10
    assert state.groups["billing"].lag == 10
    assert state.troubles == ("broker 1 does not answer: why",)


def test_groups_that_are_not_answered_keep_their_values(cluster: WatchedCluster) -> None:
    cluster.ends = {ORDERS: 10}
    cluster.commit("billing", {ORDERS: 4})
    before = cluster.tick().groups["billing"]
    cluster.without_answers_of_groups()
    found = cluster.tick().groups["billing"]
    assert found.lag == 6
    assert found.members == before.members
    cluster.groups, cluster.has_all_groups = {}, False
    assert cluster.tick().groups["billing"].lag == 6
    cluster.has_all_groups = True
    assert cluster.tick().groups == {}


def test_a_group_that_returns_soon_keeps_its_samples(cluster: WatchedCluster) -> None:
    run_groups(cluster)
    groups, cluster.groups = cluster.groups, {}
    cluster.tick()
    cluster.groups = groups
    assert cluster.tick().groups["stopped"].status is GroupStatus.STOPPED


def test_without_any_answer_the_last_state_stays(cluster: WatchedCluster) -> None:
    assert cluster.observer.failed("no broker answers") is None
    before = cluster.tick()
    state = cluster.observer.failed("no broker answers")
    assert state is not None
    assert state.health.verdict is Verdict.UNAVAILABLE
    assert state.health.reasons == ["no broker answers"]
    assert (state.taken_ms, state.topics) == (before.taken_ms, before.topics)


def test_a_topic_names_the_groups_that_use_it(cluster: WatchedCluster) -> None:
    cluster.commit("billing", {ORDERS: 0})
    cluster.groups["audit"] = group("audit", {}, [member(ORDERS)])
    cluster.groups["other"] = group("other", {})
    assert cluster.tick().topics["orders"].groups == ("audit", "billing")


def test_series(cluster: WatchedCluster) -> None:
    for end in (0, 100, 100, 400):
        cluster.ends = {ORDERS: end}
        cluster.commit("billing", {ORDERS: 0})
        cluster.tick()
    charts, observer = cluster.observer.charts, cluster.observer
    assert charts.topic([ORDERS]).values["records_per_s"] == [None, 10.0, 0.0, 30.0]
    assert charts.group(observer.group_track("billing")).values["lag"] == [0, 100, 100, 400]
    assert charts.group(None).values["lag"] == [None] * 4
    whole = charts.cluster()
    assert list(whole.values["lag"]) == [0, 100, 100, 400]
    assert whole.times_ms == [cluster.wall_ms - INTERVAL_MS * back for back in (3, 2, 1, 0)]


def test_disks_and_when_they_are_full(cluster: WatchedCluster) -> None:
    assert cluster.tick().disks[1].full_in_s is None
    for _ in range(6):
        state = cluster.tick()
    assert state.disks[1].full_in_s == math.inf
    assert state.disks[1].free_bytes == 40 << 30
