"""Schedules faults at moments that random faults rarely hit.

The moments lie between a decision and its effect: a leader has proposed another ISR, or the
controller has just changed a leader or an ISR. The brokers concerned are then cut off, paused or
killed.
"""

from collections.abc import Callable

from barnabas.effects import Ask
from barnabas.metadata.image import PartitionImage
from barnabas.model.ids import TopicId
from barnabas.protocol.codec import decode_exact
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import World

ALTER_PARTITION = 56
CUT_MS = (300, 3_000)
NO_CONTROLLER_MS = (2_000, 5_000)
STOP_AFTER_MS = (0, 2_500)
"""How long after the moment a leader is killed."""

Kill = Callable[[Host], None]
CutLinks = Callable[[list[tuple[str, str]], int], None]


class TriggeredFaults:
    """Triggers faults at a fraction of the critical moments."""

    def __init__(self, world: World, cluster: Cluster, kill: Kill, spoil: CutLinks) -> None:
        self._world = world
        self._rng = world.rng
        self._cluster = cluster
        self._kill = kill
        self._cut_links = spoil
        self.chance = 0.0

    def asked(self, host: Host, ask: Ask) -> None:
        """Handle the ISR proposal of a leader."""
        if not self.chance or ask.api_key != ALTER_PARTITION or self._rng.random() >= self.chance:
            return
        joining = self._joining(host, ask)
        self._world.note("trigger", f"{host.name} proposes to add {joining} to the ISR")
        if joining:
            others = [self._cluster.by_id[node_id].name for node_id in joining]
            self._isolate_from(host, self._rng.choice(others))
        if self._rng.random() < 0.5:
            self._cut_from_controller(host)
        if self._rng.random() < 0.8:
            self._stop_soon(host)

    def changed(self, before: PartitionImage | None, after: PartitionImage) -> None:
        """Handle a committed change of a partition."""
        if not self.chance or before is None or self._rng.random() >= self.chance:
            return
        leader, last = (self._cluster.by_id.get(each.leader) for each in (after, before))
        if leader is None:
            return
        if last is not None and last is not leader and self._rng.random() < 0.5:
            self._world.note(
                "trigger", f"{last.name} lost leadership in epoch {after.leader_epoch}"
            )
            self._cut_from_controller(last, NO_CONTROLLER_MS)
            return
        self._world.note(
            "trigger", f"{leader.name} leads {after.isr} in epoch {after.leader_epoch}"
        )
        self._rng.choice(
            (self._stop_now, self._stop_soon, self._cut_from_controller, self._isolate)
        )(leader)

    def _joining(self, leader: Host, ask: Ask) -> list[int]:
        """Return the brokers that would join the ISR of the first partition of a proposal."""
        request = decode_exact(AlterPartitionRequest, ask.api_version, ask.body)
        topic = request.topics[0]
        wanted = topic.partitions[0]
        assert leader.node is not None
        replicas = leader.node.by_topic_id.get(TopicId(topic.topic_id), {})
        replica = replicas.get(wanted.partition_index)
        if replica is None:
            return []  # the broker deleted it at the same moment
        members = [member.broker_id for member in wanted.new_isr_with_epochs]
        return [member for member in members if member not in replica.isr]

    def _stop_now(self, host: Host) -> None:
        self._world.after(0, lambda: self._kill(host))

    def _stop_soon(self, host: Host) -> None:
        self._world.after(self._rng.randint(*STOP_AFTER_MS), lambda: self._kill(host))

    def _cut_from_controller(self, host: Host, duration_ms: tuple[int, int] = CUT_MS) -> None:
        """Cut a broker off from the controller, so that it acts on outdated metadata."""
        controller = self._cluster.controller
        if controller is not None and controller is not host:
            self._cut_links([(controller.name, host.name)], self._rng.randint(*duration_ms))

    def _isolate(self, leader: Host) -> None:
        """Cut a leader off from one of the others."""
        others = [host.name for host in self._cluster.hosts if host is not leader]
        self._isolate_from(leader, self._rng.choice(others))

    def _isolate_from(self, leader: Host, other: str) -> None:
        ways = [(leader.name, other), (other, leader.name)]
        self._cut_links(ways[: self._rng.choice((1, 2))], self._rng.randint(*CUT_MS))
