"""Tests the exporter's page with the parser of a Prometheus client."""

import math
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from barnabas.exporter.cluster_series import families
from barnabas.exporter.probing import BOUNDS, NAME, Latencies
from barnabas.exporter.series_text import Family, page
from barnabas.monitor.states import ClusterState
from tests.support.metric_names import KNOWN
from tests.support.watched_cluster import ORDERS, WatchedCluster, group, member

Labels = Mapping[str, str]


def values(text: str, name: str) -> list[tuple[Labels, float]]:
    found = [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    ]
    assert found, f"{name} is not on the page"
    return found


def watched() -> ClusterState:
    cluster = WatchedCluster(topics={"orders": 1, 'quo"te\\back\nline': 1})
    hostile = ('quo"te\\back\nline', 0)
    for end in (0, 100, 100):
        cluster.ends, cluster.starts = {ORDERS: end, hostile: end}, {ORDERS: 0, hostile: 0}
        cluster.groups["billing"] = group("billing", {ORDERS: 40, hostile: 500}, [member(ORDERS)])
        cluster.groups["new"] = group("new", {}, [member(ORDERS)])
        cluster.brokers[3] = False
        state = cluster.tick()
    return state


TEXT = page(families(watched(), "prod"))


def test_every_family_has_type_and_help_and_begins_once() -> None:
    names = [line.split()[2] for line in TEXT.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    assert {line.split()[2] for line in TEXT.splitlines() if line.startswith("# HELP")} == {*names}
    assert TEXT.endswith("\n")


def test_rules_and_dashboards_know_every_series() -> None:
    names = {line.split()[2] for line in TEXT.splitlines() if line.startswith("# TYPE")}
    assert names - KNOWN == set()


def test_brokers_and_topics() -> None:
    assert values(TEXT, "kafka_brokers") == [({}, 2)]
    assert ({"id": "1", "address": "h:9001"}, 1) in values(TEXT, "kafka_broker_info")
    assert ({"topic": "orders"}, 1) in values(TEXT, "kafka_topic_partitions")
    at = {"topic": "orders", "partition": "0"}
    prefix = "kafka_topic_partition_"
    expected = {
        "current_offset": 100,
        "oldest_offset": 0,
        "in_sync_replica": 2,
        "leader": 1,
        "leader_is_preferred": 1,
        "replicas": 3,
        "under_replicated_partition": 1,
    }
    for name, value in expected.items():
        assert (at, value) in values(TEXT, prefix + name), name


def test_groups() -> None:
    at = {"consumergroup": "billing", "topic": "orders", "partition": "0"}
    assert (at, 40) in values(TEXT, "kafka_consumergroup_current_offset")
    assert (at, 60) in values(TEXT, "kafka_consumergroup_lag")
    summed = {"consumergroup": "billing", "topic": "orders"}
    assert (summed, 60) in values(TEXT, "kafka_consumergroup_lag_sum")
    assert (summed, 40) in values(TEXT, "kafka_consumergroup_current_offset_sum")
    assert ({"consumergroup": "new"}, 1) in values(TEXT, "kafka_consumergroup_members")
    most = values(TEXT, "kafka_consumergroup_group_max_lag_seconds")
    assert most == [({"cluster_name": "prod", "group": "billing"}, 10.0)]
    assert ({"group": "billing"}, math.inf) in values(TEXT, "barnabas_group_eta_seconds")
    statuses = values(TEXT, "barnabas_group_status")
    assert ({"group": "new", "status": "unknown"}, 1) in statuses
    assert len(statuses) == 2, "a group has one status"


def test_no_negative_lag_and_no_value_for_what_is_unknown() -> None:
    for name in ("kafka_consumergroup_lag", "kafka_consumergroup_lag_sum"):
        assert all(value >= 0 for _, value in values(TEXT, name))
    offsets = values(TEXT, "kafka_consumergroup_current_offset")
    assert all(labels["consumergroup"] != "new" for labels, _ in offsets)
    assert all(value >= 0 for _, value in offsets)


def test_hostile_names_come_back_unchanged() -> None:
    topics = {labels["topic"] for labels, _ in values(TEXT, "kafka_topic_partitions")}
    assert topics == {"orders", 'quo"te\\back\nline'}


def test_families_without_series_are_left_out() -> None:
    assert page([Family("a", "gauge", "none."), Family("b", "gauge", "one.", (), [((), 1)])]) == (
        "# HELP b one.\n# TYPE b gauge\nb 1\n"
    )


def test_the_histogram_of_probes() -> None:
    found = Latencies()
    assert found.text() == ""
    for leader, seconds in ((1, 0.0004), (1, 0.004), (1, 99.0), (2, 0.001)):
        found.add(leader, seconds)
    buckets = values(found.text(), f"{NAME}_bucket")
    assert len(buckets) == 2 * (len(BOUNDS) + 1)
    assert ({"leader": "1", "le": "0.005"}, 2) in buckets
    assert ({"leader": "1", "le": "+Inf"}, 3) in buckets
    assert ({"leader": "2", "le": "0.001"}, 1) in buckets
    assert ({"leader": "1"}, 3) in values(found.text(), f"{NAME}_count")
