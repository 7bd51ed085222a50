"""Checks after the faults that clients make progress, groups settle and transactions end."""

from barnabas.metadata.features import WANTED_FACTOR_LEVEL
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.node import Node
from barnabas.sim.clients.committers import Committer
from barnabas.sim.clients.idempotent_producer import IdempotentProducer
from barnabas.sim.clients.simulated_consumer_member import ConsumerMember
from barnabas.sim.clients.simulated_member import Member
from barnabas.sim.clients.transactional_producer import TransactionalProducer
from barnabas.sim.clients.transformer import Transformer
from barnabas.sim.scenario import FLOW, Scenario
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError
from barnabas.transactions.transaction_machine import Wanted


class SettledCheck:
    """Compares the progress of all clients with their progress at the end of the faults."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._before = self._progress()

    def __call__(self) -> bool:
        """Return whether every client has made progress since, and every group is settled."""
        cluster = self._scenario.cluster
        if len(cluster.nodes) < len(cluster.hosts):
            return False
        progress = self._progress()
        has_progress = all(progress[name] > before for name, before in self._before.items())
        return has_progress and self._groups_are_settled(cluster.nodes)

    def _progress(self) -> dict[str, int]:
        """Return the progress of each client; the members of a flow count as one."""
        scenario = self._scenario
        done = {p.name: p.answered for p in scenario.of(IdempotentProducer)}
        done |= {c.name: c.committed for c in scenario.of(Committer)}
        flow = scenario.of(Transformer)
        if flow:
            done[FLOW] = sum(transformer.ended for transformer in flow)
        for producer in scenario.of(TransactionalProducer):
            if producer not in flow and producer not in scenario.zombies:
                done[producer.name] = producer.ended
        return done

    def _groups_are_settled(self, nodes: list[Node]) -> bool:
        members = self._scenario.of(Member)
        if not all(member.settled for member in members):
            return False
        names = {member.group for member in members}
        try:
            states = {
                name: group.state
                for node in nodes
                for shard in node.coordinators.groups.all_shards()
                for name, group in shard.machine.groups.items()
            }
        except ApiError:
            return False  # a coordinator is still loading
        return (
            all(states.get(name) == "Stable" for name in names) and self._all_partitions_are_owned()
        )

    def _all_partitions_are_owned(self) -> bool:
        """Return whether every partition has an owner; classic leaders may not know the newest
        ones.
        """
        scenario = self._scenario
        consumers = scenario.of(ConsumerMember)
        flow = [member for member in scenario.of(Member) if member.group == FLOW]
        return _owned(consumers) in ([], sorted(scenario.shared)) and _owned(flow) in (
            [],
            sorted(scenario.input),
        )


def _owned(members: list[Member] | list[ConsumerMember]) -> list[TopicPartition]:
    return sorted(partition for member in members for partition in member.owned)


def is_idle(cluster: Cluster) -> bool:
    """Return whether no request, transaction or sync is unfinished."""
    logs_are_quiet = all(
        partition.last_stable_offset == partition.high_watermark == partition.log.end_offset
        for node in cluster.nodes
        for partition in node.partitions.values()
    )
    unanswered = any(not link.peer for host in cluster.hosts for link in host.links)
    return logs_are_quiet and not unanswered and not any(map(_has_open_transactions, cluster.nodes))


def all_in_sync(cluster: Cluster) -> bool:
    """Return whether all brokers are up, and every replica is in sync in the newest metadata.

    A topic whose replication factor still has to grow is not in sync yet.
    """
    if cluster.controller is None or cluster.controller.node is None:
        return False
    # The check below does not notice a broker without replicas.
    if len(cluster.nodes) < len(cluster.hosts):
        return False
    topics = cluster.controller.node.image.topics.values()
    if any(topic.replication_factor for topic in topics):
        return False
    placed = [partition for topic in topics for partition in topic.partitions]
    return all(
        sorted(one.isr) == sorted(one.replicas) and not one.adding and not one.removing
        for one in placed
    )


def check_factors(cluster: Cluster) -> None:
    """Check that every topic has the configured number of replicas, once all brokers are up.

    Topics that were created below the feature level that records their factor keep the replicas
    that they got: an operator repairs them (`barnabas partition repair`).
    """
    if cluster.controller is None or cluster.controller.node is None:
        raise InvariantError("no broker is the controller")
    if any(host.first_level < WANTED_FACTOR_LEVEL for host in cluster.hosts):
        return
    node = cluster.controller.node
    wanted = node.settings.replication.default_replication_factor
    for topic in node.image.topics.values():
        for number, placed in enumerate(topic.partitions):
            if len(placed.replicas) < wanted:
                raise InvariantError(
                    f"{topic.name}-{number} has only the replicas {placed.replicas}"
                )


def _has_open_transactions(node: Node) -> bool:
    """Return whether a transaction is open, or may be open because its coordinator is still
    loading.
    """
    try:
        shards = list(node.coordinators.transactions.all_shards())
    except ApiError:
        return True
    for shard in shards:
        found = shard.machine.find(Wanted()).response
        assert not isinstance(found, Pending)
        if any(transaction.partitions for transaction in found):
            return True
    return False
