"""Sets up the simulated brokers of a run: a single one, or several that form a cluster."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from barnabas.effects import Address
from barnabas.metadata.image import GROUPS_TOPIC
from barnabas.model.callers import Principal
from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.ids import NodeId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.security_settings import SecuritySettings
from barnabas.model.settings import (
    ClusterSettings,
    ReplicationSettings,
    Settings,
)
from barnabas.node.node import Node
from barnabas.protocol.message import Message
from barnabas.sim.faults.cut_links import LinkFaults
from barnabas.sim.faults.fault_rates import Faults
from barnabas.sim.host import SETTINGS, Host
from barnabas.sim.world import World
from barnabas.transactions.state import State, Transaction
from barnabas.transactions.transaction_machine import TransactionMachine, Wanted

CLIENT_PORT, PEER_PORT = 9092, 9093
BROKER_SESSION_MS = 1_500
ELECTION_MS = 500
IMBALANCE_MS = 2_500
VOTERS_MAX = 3


class Cluster:
    """Connected machines, each with a broker."""

    def __init__(self, hosts: dict[int, Host], link_faults: LinkFaults) -> None:
        self.by_id = hosts
        self.link_faults = link_faults
        self.on_metadata: Callable[[Host, Any], None] = lambda *_: None
        """Called with every topic in a Metadata response to a client, and with its sender."""
        self.on_answer: Callable[[Host, Principal | None, Message, Any, int], None] = lambda *_: (
            None
        )
        """Called with every response to a client: its sender, as whom the client is connected, the
        request, the response, and when the request was sent."""
        self.operator: Principal | None = None
        """The super user of a cluster with an authorizer; None if everything is allowed."""

    @classmethod
    def lone(cls, world: World) -> "Cluster":
        """Return a single broker without a cluster."""
        host = Host(world, Faults())
        return cls({host.settings.broker.node_id: host}, host.link_faults)

    @classmethod
    def of(cls, world: World, count: int, operator: Principal | None = None) -> "Cluster":
        """Return a cluster of `count` brokers; the first few are voters.

        With an operator, a super user, it has an authorizer.
        """
        link_faults = LinkFaults(world)
        neighbours: dict[Address, Host] = {}
        hosts = {}
        for number in range(1, count + 1):
            host = Host(
                world,
                Faults(),
                name=f"b{number}",
                settings=_settings(number, count, operator),
                link_faults=link_faults,
                neighbours=neighbours,
            )
            neighbours[Address(host.name, PEER_PORT)] = host
            hosts[number] = host
        cluster = cls(hosts, link_faults)
        cluster.operator = operator
        return cluster

    @property
    def hosts(self) -> list[Host]:
        """Every machine, up or down."""
        return list(self.by_id.values())

    @property
    def is_lone(self) -> bool:
        """Whether there is only one broker."""
        return len(self.by_id) == 1

    @property
    def nodes(self) -> list[Node]:
        """The brokers that are up."""
        return [host.node for host in self.by_id.values() if host.node is not None]

    @property
    def controller(self) -> Host | None:
        """The machine of the active controller, as far as that broker knows."""
        active = [h for h in self.by_id.values() if h.node is not None and h.node.is_controller]
        return active[-1] if active else None

    def coordinates(self, host: Host, group: str) -> bool:
        """Return whether a machine coordinates a group, according to the newest metadata of all
        brokers.

        A broker that does not know its successor yet still answers requests that need no write,
        here as well as in Kafka: OffsetFetch and heartbeats. Its responses are outdated, and the
        checks expect no more of them.
        """
        if self.is_lone:
            return True
        numbers = {node.coordinators.groups.partition_for(group) for node in self.nodes}
        return all(
            self.leader_of(TopicPartition(GROUPS_TOPIC, number)) is host for number in numbers
        )

    def has_open(self, producer: ProducerIdAndEpoch) -> bool:
        """Return whether a producer's transaction is certainly open at its coordinator."""
        wanted = Wanted(frozenset({State.ONGOING}), frozenset({producer.producer_id}))
        return any(
            transaction.producer == producer
            for host in self.by_id.values()
            if host.node is not None
            for shard in host.node.coordinators.transactions.shards()
            if self.leader_of(shard.partition.name) is host
            for transaction in _found(shard.machine, wanted)
        )

    def leader_of(self, partition: TopicPartition) -> Host | None:
        """Return the leader of a partition in the newest metadata of all brokers."""
        newest = (-1, -1)
        for node in self.nodes:
            topic = node.image.topics.get(partition.topic)
            if topic is not None and partition.partition < len(topic.partitions):
                placed = topic.partitions[partition.partition]
                newest = max(newest, (placed.leader_epoch, placed.leader))
        return self.by_id.get(newest[1])


def _found(machine: TransactionMachine, wanted: Wanted) -> list[Transaction]:
    found = machine.find(wanted).response
    assert not isinstance(found, Pending)
    return found


def _settings(number: int, count: int, operator: Principal | None) -> Settings:
    security = SecuritySettings()
    if operator is not None:
        security = SecuritySettings(authorizer="acl", super_users=(str(operator),))
    voters = tuple(f"{n}@b{n}:{PEER_PORT}" for n in range(1, min(count, VOTERS_MAX) + 1))
    return replace(
        SETTINGS,
        security=security,
        broker=replace(
            SETTINGS.broker, node_id=NodeId(number), host=f"b{number}", port=CLIENT_PORT
        ),
        cluster=ClusterSettings(
            host=f"b{number}",
            port=PEER_PORT,
            voters=voters,
            election_timeout_ms=ELECTION_MS,
            fetch_timeout_ms=ELECTION_MS,
            broker_session_timeout_ms=BROKER_SESSION_MS,
            broker_heartbeat_interval_ms=BROKER_SESSION_MS // 4,
            snapshot_after_records=50,
            leader_imbalance_check_interval_ms=IMBALANCE_MS,
        ),
        replication=ReplicationSettings(
            default_replication_factor=3,
            min_insync_replicas=2,
            replica_lag_max_ms=BROKER_SESSION_MS,
        ),
    )
