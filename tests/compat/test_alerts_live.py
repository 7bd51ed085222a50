"""Provokes alerts: a broker hangs or is cut off, a disk fills, a group stops, a transaction hangs.

Each time a real Prometheus must show the alert of that cause and no other, also long after it fired
and while it clears. Rules act ten times faster than the shipped ones; otherwise they are the same.
It needs Debian's package prometheus, and for disks and networks root and nftables.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_ground import DISKS, NETWORK, Ground
from tests.support.prometheus_server import (
    OF_A_BUSY_MACHINE,
    PATIENCE_S,
    Prometheus,
    Watch,
    found_prometheus,
    scraping,
)

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(900)]

NODES = (1, 2, 3)
FACTOR = 10
HELD = 60
"""For how many seconds an alert must have fired: as long as ten minutes of the shipped rules."""
DISK_BYTES = 1 << 30
PARTITIONS = 6
SOCKET_TIMEOUT_MS = 60_000 // FACTOR
"""A client that waits for a broker that hangs does so for a minute by default."""
TRANSACTION_MS = 900_000
OF_AUDIT = 'kafka_consumergroup_lag{consumergroup="audit"}'


class Scene:
    """A cluster that can be broken, its load, and the Prometheus that watches it."""

    def __init__(
        self, ground: Ground, cluster: ClusterProcesses, prometheus: Prometheus, load: "Load"
    ) -> None:
        self.ground = ground
        self.cluster = cluster
        self.prometheus = prometheus
        self.load = load

    def victim(self) -> int:
        """Return a broker that leads partitions and is not the controller."""
        controller = self.cluster.controller()
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        partitions = [TopicPartition("orders", number) for number in range(PARTITIONS)]
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result(PATIENCE_S)
        eventually(lambda: self._leaders() == set(NODES), PATIENCE_S)
        return next(number for number in NODES if number != controller)

    def _leaders(self) -> set[int]:
        return {self.cluster.leader_of("orders", number) for number in range(PARTITIONS)}


class Reader:
    """A consumer of a group, which commits twice a second."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "socket.timeout.ms": SOCKET_TIMEOUT_MS,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._consumer.consume(1000, 0.1)
        self._consumer.close()


class Load:
    """A producer that never stops, and a group that reads its topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._stopping = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()
        self._reader = self._new_reader()

    @contextmanager
    def without_consumer(self) -> Iterator[None]:
        """Close the consumer, and start another one afterwards."""
        self._reader.stop()
        try:
            yield
        finally:
            self._reader = self._new_reader()

    def stop(self) -> None:
        self._stopping.set()
        self._writer.join(PATIENCE_S)
        self._reader.stop()

    def _new_reader(self) -> Reader:
        return Reader(self._bootstrap, self._topic, "billing")

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        while not self._stopping.wait(0.05):
            for _ in range(20):
                producer.produce(self._topic, bytes(100))
            producer.poll(0)
        producer.flush(PATIENCE_S)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    found_prometheus()
    folder = tmp_path_factory.mktemp("alerts")
    with Ground(folder / "ground", NODES, DISK_BYTES) as ground:
        hosts = {number: ground.place.client_address(number)[0] for number in NODES}
        pages = {number: f"{host}:{free_port()}" for number, host in hosts.items()}
        cluster = ClusterProcesses(
            folder,
            place=ground.place,
            data={number: ground.data(number) for number in NODES},
            environments={
                number: {"BARNABAS_OBSERVABILITY_HTTP_LISTEN": page}
                for number, page in pages.items()
            },
        )
        with cluster:
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            made = admin.create_topics(
                [NewTopic("orders", PARTITIONS, 3), NewTopic("payments", 1, 3)]
            )
            for each in made.values():
                each.result()
            load = Load(cluster.bootstrap, "orders")
            bootstrap = cluster.bootstrap
            with scraping(folder, bootstrap, list(pages.values()), factor=FACTOR) as prometheus:
                found = Scene(ground, cluster, prometheus, load)
                eventually(partial(is_calm, prometheus), PATIENCE_S)
                yield found
                load.stop()


def is_calm(prometheus: Prometheus) -> bool:
    """Tell whether all targets and the group are well, and no alert is near."""
    well = 'count(up == 1) == 4 and on () barnabas_group_status{group="billing",status="ok"}'
    alerts = prometheus.alerts("firing") | prometheus.alerts("pending")
    return bool(prometheus.ask(well)) and alerts <= OF_A_BUSY_MACHINE


@contextmanager
def watched(scene: Scene, *expected: str) -> Iterator[None]:
    """Check that exactly these alerts fire during the block, and that they clear after it."""
    watch = Watch(scene.prometheus)
    yield
    scene.cluster.wait_healthy()
    eventually(partial(is_calm, scene.prometheus), PATIENCE_S)
    assert watch.fired() - OF_A_BUSY_MACHINE == set(expected)


def fires(scene: Scene, alert: str) -> None:
    """Wait until an alert fires, and has done so for long."""
    eventually(lambda: scene.prometheus.fired_for(alert) >= HELD, 3 * PATIENCE_S)


def test_a_broker_that_hangs_is_down(scene: Scene) -> None:
    """The controller fences it, its replicas are out of sync: BrokerDown says it all."""
    node = scene.cluster.nodes[scene.victim()]
    with watched(scene, "BrokerDown"):
        node.pause()
        try:
            fires(scene, "BrokerDown")
            assert fenced_brokers(scene) == 1
        finally:
            node.resume()


def test_a_broker_that_is_cut_off_is_fenced(scene: Scene) -> None:
    """Prometheus reaches it, the other brokers do not."""
    network = scene.ground.network
    if network is None:
        pytest.skip(scene.ground.missing[NETWORK])
    victim = scene.victim()
    with watched(scene, "BrokerFenced"):
        network.cut(victim, [number for number in NODES if number != victim])
        try:
            fires(scene, "BrokerFenced")
            assert scene.prometheus.ask('count(up{job="barnabas"} == 1) == 3')
        finally:
            network.heal(victim)


def test_a_disk_that_is_full_is_critical(scene: Scene) -> None:
    """The broker rejects appends and falls out of sync: DiskCritical says why."""
    if DISKS in scene.ground.missing:
        pytest.skip(scene.ground.missing[DISKS])
    victim = scene.victim()
    node = scene.cluster.nodes[victim]
    with watched(scene, "DiskCritical"):
        scene.ground.fill_disk(victim)
        try:
            fires(scene, "DiskCritical")
            assert node.log_lines("the disk refused an append")
        finally:
            scene.ground.empty_disk(victim)


def test_a_group_whose_consumer_stopped_stands_still(scene: Scene) -> None:
    """Its lag grows in records and in time: GroupStopped says why."""
    with watched(scene, "GroupStopped"), scene.load.without_consumer():
        fires(scene, "GroupStopped")
        assert lag_of(scene, "billing") > 1000


def test_a_transaction_that_hangs(scene: Scene) -> None:
    """It stays open for its timeout of 15 minutes; the runbook's command ends it.

    GroupStopped names the group that waits behind it.
    """
    bootstrap = scene.cluster.bootstrap
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    plain.produce("payments", b"zero")
    assert plain.flush(PATIENCE_S) == 0
    reader = Reader(bootstrap, "payments", "audit")
    eventually(lambda: scene.prometheus.ask(f"{OF_AUDIT} == 0"), PATIENCE_S)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "payments-1",
            "transaction.timeout.ms": TRANSACTION_MS,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    with watched(scene, "HangingTransaction", "GroupStopped"):
        producer.begin_transaction()
        producer.produce("payments", b"one")
        assert producer.flush(PATIENCE_S) == 0
        try:
            fires(scene, "HangingTransaction")
            assert scene.prometheus.ask(f"{OF_AUDIT} == 1")
            assert not scene.prometheus.ask('ALERTS{alertname="GroupStopped",group="billing"}')
        finally:
            barnabas = [sys.executable, "-m", "barnabas.cli"]
            subprocess.run(
                [*barnabas, "txn", "abort", "payments-1", "--bootstrap", bootstrap],
                check=True,
                stdout=subprocess.DEVNULL,
            )
    reader.stop()


def fenced_brokers(scene: Scene) -> int:
    return value(scene, "max(kafka_controller_kafkacontroller_fencedbrokercount)")


def lag_of(scene: Scene, group: str) -> int:
    return value(scene, f'sum(kafka_consumergroup_lag_sum{{consumergroup="{group}"}})')


def value(scene: Scene, expr: str) -> int:
    (found,) = scene.prometheus.ask(expr)
    return int(found["value"][1])
