"""Tests a watcher and the exporter while brokers of a cluster die and return."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.admin.health import Verdict
from barnabas.monitor.states import ClusterState
from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.waiting import eventually

pytestmark = pytest.mark.chaos

PATIENCE_S = 90.0
TOPIC, GROUPS, PARTITIONS = "orders", 12, 6
RECORDS = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path) as running:
        fill(running.bootstrap)
        yield running


def fill(bootstrap: str) -> None:
    """Send records, and commit the same offset for several groups, at several coordinators."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=3)
    admin.create_topics([topic])[TOPIC].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    places = [TopicPartition(TOPIC, number, 4) for number in range(PARTITIONS)]
    for number in range(GROUPS):
        eventually(lambda group=f"group-{number}": commit(admin, group, places), PATIENCE_S)  # type: ignore[misc]


def commit(admin: AdminClient, group: str, places: list[TopicPartition]) -> bool:
    """Commit offsets for a group; return whether the coordinator took them.

    A coordinator whose metadata does not have the offsets topic yet refuses them, and librdkafka's
    admin client does not try again.
    """
    request = [ConsumerGroupTopicPartitions(group, places)]
    answers = admin.alter_consumer_group_offsets(request, request_timeout=60)
    return all(each.error is None for each in answers[group].result().topic_partitions)


def is_whole(state: ClusterState) -> bool:
    """Return whether everything is known: all groups with their lag, and all offsets."""
    lags = [each.lag for name, each in state.groups.items() if name.startswith("group-")]
    return lags == [RECORDS - 4 * PARTITIONS] * GROUPS


def test_a_killed_broker_takes_nothing_from_the_state(cluster: ClusterProcesses) -> None:
    """No state after the first lacks a group or an offset, and all follow the new leaders."""
    settings = WatchSettings(
        properties={"bootstrap.servers": cluster.nodes[1].bootstrap}, interval_s=0.2
    )
    seen: list[ClusterState] = []
    with Watcher(settings) as watcher:
        eventually(lambda: (state := watcher.state) and is_whole(state), PATIENCE_S)
        watcher.subscribe(seen.append)
        for number in (2, 1):  # then the one that was named
            cluster.nodes[number].kill()
            eventually(lambda: seen and seen[-1].health.verdict is not Verdict.HEALTHY, PATIENCE_S)
            assert any(f"broker {number}" in each for each in seen[-1].health.reasons)
            cluster.wait_replaced(number)
            eventually(lambda: seen[-1].health.verdict is Verdict.DEGRADED, PATIENCE_S)
            cluster.nodes[number].spawn()
            cluster.nodes[number].wait_ready()
            cluster.wait_healthy()
            eventually(lambda: seen[-1].health.verdict is Verdict.HEALTHY, PATIENCE_S)
    assert len(seen) > 10
    assert all(is_whole(state) for state in seen)
    assert seen[-1].troubles == ()


def test_a_paused_broker_costs_one_time_out_a_collection(cluster: ClusterProcesses) -> None:
    settings = WatchSettings(
        properties={"bootstrap.servers": cluster.bootstrap}, interval_s=0.2, answer_timeout_s=1
    )
    with Watcher(settings) as watcher:
        eventually(lambda: (state := watcher.state) and is_whole(state), PATIENCE_S)
        cluster.nodes[3].pause()
        try:
            state = eventually(
                lambda: (found := watcher.state) and found.troubles and found, PATIENCE_S
            )
            assert isinstance(state, ClusterState)
            assert is_whole(state)
        finally:
            cluster.nodes[3].resume()
        eventually(lambda: (found := watcher.state) and not found.troubles, PATIENCE_S)


def test_all_brokers_die_and_return(cluster: ClusterProcesses) -> None:
    settings = WatchSettings(properties={"bootstrap.servers": cluster.bootstrap}, interval_s=0.2)
    with Watcher(settings) as watcher:
        before = eventually(
            lambda: (state := watcher.state) and is_whole(state) and state, PATIENCE_S
        )
        for node in cluster.nodes.values():
            node.kill()
        eventually(lambda: watcher.failure is not None, PATIENCE_S)
        state = watcher.state
        assert state is not None
        assert state.health.verdict is Verdict.UNAVAILABLE
        assert is_whole(state)
        for node in cluster.nodes.values():
            node.spawn()
        cluster.wait_healthy()
        eventually(
            lambda: (
                (found := watcher.state)
                and found.health.verdict is Verdict.HEALTHY
                and is_whole(found)
            ),
            PATIENCE_S,
        )
        assert isinstance(before, ClusterState)
