"""States of a cluster without brokers, and a watcher that publishes them.

watcher = FakeWatcher(make_state(topics=["orders"], groups={"billing": {"orders": 5}}))
watcher.publish(make_state(...))
"""

from collections.abc import Callable, Iterable, Mapping

from barnabas.admin.cluster_overview import UP, Broker, Member, Overview, Partitions, Quorum
from barnabas.admin.health import verdict
from barnabas.monitor.states import (
    BrokerFigures,
    ClusterState,
    DiskState,
    GroupMember,
    GroupPartitionState,
    GroupState,
    GroupStatus,
    PartitionState,
    Series,
    TopicState,
)

TAKEN_MS = 1_800_000_000_000
INTERVAL_S = 10.0
BROKERS = (1, 2, 3)
POINTS = 3


class FakeWatcher:
    """Publishes the states that a test makes."""

    def __init__(self, state: ClusterState | None = None, failure: str | None = None) -> None:
        self.state = state
        self.failure = failure
        self.looks = 0
        self._subscribers: list[Callable[[ClusterState], None]] = []

    def publish(self, state: ClusterState) -> None:
        self.state = state
        for subscriber in self._subscribers:
            subscriber(state)

    def subscribe(self, subscriber: Callable[[ClusterState], None], /) -> object:
        self._subscribers.append(subscriber)
        return None

    def look(self) -> None:
        self.looks += 1

    def cluster_series(self) -> Series:
        return series("records_per_s", "bytes_in_per_s", "lag")

    def broker_series(self, broker: int, /) -> Series:
        return series("records_per_s")

    def topic_series(self, topic: str, /) -> Series:
        return series("records_per_s")

    def group_series(self, group: str, /) -> Series:
        return series("lag", "lag_s")


def series(*names: str) -> Series:
    times = [TAKEN_MS + each * 10_000 for each in range(POINTS)]
    return Series(times_ms=times, values={name: [None, 1.5, float("inf")] for name in names})


def make_state(  # noqa: PLR0913 - what tests vary
    topics: Iterable[str] = ("orders",),
    groups: Mapping[str, Mapping[str, int]] | None = None,
    *,
    partitions: int = 2,
    taken_ms: int = TAKEN_MS,
    brokers: Iterable[Broker] | None = None,
    under_replicated: Iterable[tuple[str, int]] = (),
    offline: Iterable[tuple[str, int]] = (),
    at_min_isr: Iterable[tuple[str, int]] = (),
    status: GroupStatus = GroupStatus.BEHIND,
    controller: int | None = 1,
) -> ClusterState:
    """Return a state; `groups` says how far each group is behind in each topic."""
    made = {name: make_topic(name, partitions, index) for index, name in enumerate(topics)}
    found = Overview(
        cluster_id="abc",
        brokers=list(brokers) if brokers is not None else [make_broker(each) for each in BROKERS],
        quorum=make_quorum(controller),
        partitions=Partitions(
            total=sum(len(each.partitions) for each in made.values()),
            under_replicated=list(under_replicated),
            under_min_isr=[],
            at_min_isr=list(at_min_isr),
            replicas_at_min_isr=[],
            below_replication_factor=[],
            offline=list(offline),
            reassigning=[],
            not_led_as_preferred=[],
        ),
        troubles=[],
        feature_level=2,
    )
    return ClusterState(
        taken_ms=taken_ms,
        took_ms=12,
        interval_s=INTERVAL_S,
        overview=found,
        health=verdict(found),
        topics=made,
        groups={name: make_group(name, lags, status) for name, lags in (groups or {}).items()},
        records_per_s=1234.5,
        bytes_per_s=99.0,
        bytes_in_per_s=1000.0,
        produce_p99_s=0.0041,
        disks={1: DiskState(total_bytes=1000, free_bytes=400, full_in_s=float("inf"))},
        figures={
            1: BrokerFigures(
                address="127.0.0.1:9", version="0.2.0", connections=7, slow_requests=()
            )
        },
    )


def make_broker(number: int, state: str = UP, disk_free: float | None = 0.4) -> Broker:
    return Broker(
        id=number,
        address=f"127.0.0.1:{9090 + number}",
        rack=None,
        state=state,
        silence=None,
        leaders=1,
        replicas=2,
        in_sync=2,
        disk_free=disk_free,
    )


def make_quorum(controller: int | None) -> Quorum:
    voters = [Member(id=each, directory=bytes(16), lag=0, last_contact_ms=0) for each in BROKERS]
    return Quorum(
        leader=controller, epoch=3, high_watermark=10, voters=voters, observers=[], addresses={}
    )


def make_topic(name: str, partitions: int, index: int = 0) -> TopicState:
    parts = tuple(
        PartitionState(
            topic=name,
            number=number,
            leader=1 + number % 3,
            replicas=(1 + number % 3, 1 + (number + 1) % 3),
            in_sync=(1 + number % 3, 1 + (number + 1) % 3),
            start=0,
            end=100 + index,
            size_bytes=1000 * (index + 1) + number,
            records_per_s=float(index),
            bytes_per_s=None,
        )
        for number in range(partitions)
    )
    return TopicState(
        name=name,
        is_internal=name.startswith("__"),
        partitions=parts,
        replication_factor=2,
        records=(100 + index) * partitions,
        size_bytes=sum(each.size_bytes or 0 for each in parts),
        records_per_s=float(index * partitions),
        bytes_per_s=None,
        groups=("billing",),
    )


def make_group(name: str, lags: Mapping[str, int], status: GroupStatus) -> GroupState:
    parts = tuple(
        GroupPartitionState(
            topic=topic,
            number=0,
            committed=100 - lag,
            end=100,
            lag=lag,
            lag_s=lag * 10.0,
            read_per_s=1.0,
            retention_margin_s=None,
            lost_records=0,
            status=status,
            member_id="m-1",
            client_id="app",
            host="/127.0.0.1",
        )
        for topic, lag in lags.items()
    )
    member = GroupMember(
        member_id="m-1",
        client_id="app",
        instance_id=None,
        host="/127.0.0.1",
        partitions=[(topic, 0) for topic in lags],
    )
    return GroupState(
        name=name,
        type="consumer",
        state="Stable",
        assignor="range",
        coordinator=1,
        members=[member],
        partitions=parts,
        lag=sum(lags.values()),
        lag_s=max((lag * 10.0 for lag in lags.values()), default=None),
        read_per_s=1.0,
        eta_s=float("inf"),
        retention_margin_s=None,
        status=status,
        lag_trend=[1, 2, 3],
    )
