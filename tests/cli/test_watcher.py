"""Tests the watcher against a broker: lag in time against the truth, and groups in every state."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.monitor.lag_rules import WINDOW
from barnabas.monitor.states import ClusterState, GroupStatus
from barnabas.monitor.watcher import Watcher, WatchSettings
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import eventually
from barnabas.wire.wire_failures import LinkError

pytestmark = [pytest.mark.compat, pytest.mark.usefixtures("group_support")]

PATIENCE_S = 60.0
SELDOM_S = 600.0
HOUR_MS = 3_600_000
ROUNDING_S = 0.05
"""Collections are timed by two clocks, in whole milliseconds."""

Look = Callable[[], ClusterState]


@pytest.fixture
def watcher(bootstrap: str) -> Iterator[Watcher]:
    """A watcher that collects only when it is told to."""
    settings = WatchSettings(
        properties={"bootstrap.servers": bootstrap}, interval_s=SELDOM_S, answer_timeout_s=30
    )
    with Watcher(settings) as running:
        running.wait(PATIENCE_S)
        yield running


@pytest.fixture
def look(watcher: Watcher) -> Look:
    """Collects once more."""

    def collect() -> ClusterState:
        before = watcher.collections
        watcher.look()
        return watcher.wait(PATIENCE_S, after=before)

    return collect


@pytest.fixture
def send(bootstrap: str) -> Callable[..., None]:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def produce(topic: str, count: int, *, partition: int = 0, timestamp: int = 0) -> None:
        for number in range(count):
            producer.produce(topic, f"v{number}", partition=partition, timestamp=timestamp)
        assert producer.flush(PATIENCE_S) == 0

    return produce


def commit(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    """Set the offset of a group without members."""
    request = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])]
    admin.alter_consumer_group_offsets(request, request_timeout=PATIENCE_S)[group].result()


def joined(bootstrap: str, group: str, topic: str, **properties: str) -> Consumer:
    """Return a member that is assigned the topic."""
    member = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **properties,
        }
    )
    member.subscribe([topic])

    def is_assigned() -> bool:
        member.poll(0.1)
        return bool(member.assignment())

    eventually(is_assigned, PATIENCE_S)
    return member


def test_lag_in_time_is_the_age_of_the_first_collection_that_saw_the_record(
    look: Look, send: Callable[..., None], admin: AdminClient, topic: str, group: str
) -> None:
    """The record was sent between two collections, so the lag is right within one interval."""
    commit(admin, group, topic, 0)
    eventually(lambda: group in look().groups, PATIENCE_S)  # its coordinator has been loaded
    before = look()
    assert before.groups[group].lag_s == 0
    sent_ms = time.time_ns() // 1_000_000
    send(topic, 3)
    first = look()
    for _ in range(3):  # producers have stopped
        state = look()
        found = state.groups[group]
        expected = (state.taken_ms - first.taken_ms) / 1000
        assert found.lag == 3
        assert found.lag_s is not None
        assert found.lag_s == pytest.approx(expected, abs=ROUNDING_S)
        truth = (state.taken_ms - sent_ms) / 1000
        interval = (first.taken_ms - before.taken_ms) / 1000
        assert found.lag_s <= truth + ROUNDING_S
        assert found.lag_s >= truth - interval - ROUNDING_S
    commit(admin, group, topic, 3)
    assert look().groups[group].lag_s == 0


def test_records_older_than_the_watcher_have_the_age_of_their_timestamp(
    look: Look, send: Callable[..., None], admin: AdminClient, topic: str, group: str
) -> None:
    now_ms = time.time_ns() // 1_000_000
    send(topic, 5, timestamp=now_ms - 2 * HOUR_MS)
    send(topic, 5, timestamp=now_ms - HOUR_MS)
    commit(admin, group, topic, 2)
    state = look()
    age_s = (state.taken_ms - now_ms) / 1000
    assert state.groups[group].lag_s == pytest.approx(2 * 3600 + age_s, abs=ROUNDING_S)
    commit(admin, group, topic, 7)
    state = look()
    age_s = (state.taken_ms - now_ms) / 1000
    assert state.groups[group].lag_s == pytest.approx(3600 + age_s, abs=ROUNDING_S)


def test_groups_in_every_state(
    look: Look, send: Callable[..., None], admin: AdminClient, topic: str, bootstrap: str
) -> None:
    names = {word: f"{word}-{uuid4().hex}" for word in ("ok", "behind", "stalled", "stopped")}
    rewound = f"rewound-{uuid4().hex}"
    with ExitStack() as stack:
        ok, behind, stalled = (
            stack.enter_context(closing(joined(bootstrap, names[word], topic)))
            for word in ("ok", "behind", "stalled")
        )
        for at in range(1, WINDOW + 2):
            send(topic, 10)
            ok.commit(offsets=[TopicPartition(topic, 0, 10 * at)], asynchronous=False)
            behind.commit(offsets=[TopicPartition(topic, 0, at)], asynchronous=False)
            stalled.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
            commit(admin, names["stopped"], topic, 5)
            commit(admin, rewound, topic, 10 * at if at <= WINDOW else 0)
            state = look()
    for word, name in names.items():
        assert state.groups[name].status == GroupStatus(word), word
    assert state.groups[rewound].status is GroupStatus.REWOUND
    assert [each.client_id for each in state.groups[names["stalled"]].members] == ["rdkafka"]
    assert state.groups[names["stopped"]].state == "Empty"
    assert set(names.values()) <= set(state.topics[topic].groups)
    assert state.troubles == ()


def test_members_of_both_protocols(
    look: Look, send: Callable[..., None], topic: str, bootstrap: str
) -> None:
    send(topic, 4)
    kinds = {"classic": {}, "consumer": {"group.protocol": "consumer"}}
    with ExitStack() as stack:
        groups = {kind: f"{kind}-{uuid4().hex}" for kind in kinds}
        for kind, properties in kinds.items():
            member = joined(bootstrap, groups[kind], topic, **properties)
            stack.enter_context(closing(member))
            member.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        state = look()
    for kind, name in groups.items():
        found = state.groups[name]
        assert (found.type, found.state, found.lag) == (kind, "Stable", 3)
        assert sorted(found.members[0].partitions) == [(topic, 0), (topic, 1)]
        assert found.partitions[0].member_id == found.members[0].member_id
        assert found.coordinator is not None


def test_deleted_topics_and_lost_records(
    look: Look, send: Callable[..., None], admin: AdminClient, topic: str, group: str
) -> None:
    send(topic, 10)
    commit(admin, group, topic, 2)
    look()
    (cut,) = admin.delete_records([TopicPartition(topic, 0, 7)]).values()
    cut.result(PATIENCE_S)
    found = look().groups[group].partitions[0]
    assert (found.lag, found.lost_records, found.retention_margin_s) == (8, 5, 0.0)
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    eventually(lambda: topic not in look().topics, PATIENCE_S)


def test_no_broker() -> None:
    settings = WatchSettings(properties={"bootstrap.servers": "127.0.0.1:1"}, interval_s=SELDOM_S)
    with Watcher(settings) as running, pytest.raises(LinkError, match="No broker answered"):
        running.wait(PATIENCE_S)
    assert running.state is None


def test_figures_of_a_broker_that_serves_metrics() -> None:
    """The address alone is enough: the page says which broker it is of."""
    with Broker(settings={"observability.http_listen": "127.0.0.1:0"}) as broker:
        assert broker.http_address is not None
        host, port = broker.http_address
        settings = WatchSettings(
            properties={"bootstrap.servers": broker.bootstrap},
            interval_s=0.2,
            metrics=[f"{host}:{port}", "127.0.0.1:1"],
        )
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        with Watcher(settings) as running:

            def has_rates() -> bool:
                producer.produce("orders", b"x" * 1000)
                producer.flush(PATIENCE_S)
                state = running.wait(PATIENCE_S, after=running.collections)
                return bool(state.bytes_in_per_s and state.produce_p99_s)

            eventually(has_rates, PATIENCE_S)
            state = running.state
            assert state is not None
            assert list(state.figures) == [1]
            assert state.figures[1].version
            assert state.figures[1].connections
            assert any("127.0.0.1:1" in each for each in state.troubles)
            assert any(running.broker_series(1).values["bytes_in_per_s"])
