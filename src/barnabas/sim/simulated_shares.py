"""The share groups of a run: their configs, their checks, and the brokers' part that they use.

All of it is drawn by a generator of its own, so that runs without share groups stay as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from barnabas.metadata.share_group_config import EARLIEST
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.share_state import SharePartitionKey
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.first_offsets import first_offset
from barnabas.node.share.share_rules import GroupRules
from barnabas.node.share.share_sessions import Place
from barnabas.node.share.sharing import Sharing
from barnabas.sim.checks.share_checks import ShareChecks
from barnabas.sim.checks.share_state_checks import ShareStateChecks, WatchedStates
from barnabas.sim.checks.share_window_checks import ShareWindowChecks
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError

QUEUE = "queue"
QUEUE_PARTITIONS = 2
SESSIONS_MAX = 100


@dataclass(eq=False)
class ShareGroup:
    """A group and what it reads."""

    group_id: str
    topic: str
    rules: GroupRules
    first: int
    """The start offset that its state is initialized with; -1 leaves it to the rules."""
    places: dict[Place, TopicPartition]
    """Its partitions, once they are initialized."""
    is_ready: bool = False
    """Whether all its partitions are initialized, so that members may begin."""


class ShareGroups:
    """All share groups of a run."""

    def __init__(self, seed: int, cluster: Cluster, topics: tuple[str, ...]) -> None:
        self.rng = Random(f"{seed} share groups")
        self.cluster = cluster
        self.checks = ShareChecks()
        self.states = ShareStateChecks()
        self.groups: dict[str, ShareGroup] = {}
        for number, topic in enumerate(self.rng.choice([[t] for t in topics] + [list(topics)])):
            self._draw(f"s{number}", topic)
        limits = {each: group.rules.deliveries_max for each, group in self.groups.items()}
        locks = {each: group.rules.locks_max for each, group in self.groups.items()}
        self.windows = {
            host.settings.broker.node_id: ShareWindowChecks(limits, locks) for host in cluster.hosts
        }
        for host in cluster.hosts:
            self._install(host)

    def leader_epoch(self, host: Host, place: Place) -> int | None:
        """Return the epoch in which a machine leads a partition; None if it does not."""
        node = host.node
        found = None if node is None else self._led(node, place)
        return None if found is None else found.leader_epoch

    def start(self, host: Host, group_id: str, place: Place) -> int | None:
        """Return the start offset of a share partition; None if a machine has no window of it."""
        node = host.node
        if node is None:
            return None
        found = node.sharing.partitions.get(SharePartitionKey(group_id, *place))
        return None if found is None or found.window is None else found.window.start

    def rest(self) -> list[str]:
        """Return what is left to do for members: offsets that are not complete."""
        return [
            f"{group.group_id} has {left}"
            for group in self.groups.values()
            for place, partition in group.places.items()
            if (left := self._left(group, place, partition)) is not None
        ]

    def check_skipped(self, shown: Mapping[tuple[TopicPartition, bool], dict[int, str]]) -> None:
        """Check that no offset with a record was passed over.

        The records of each partition are those at an isolation level: committed only, or all.
        """
        for windows in self.windows.values():
            for (key, offset), how in windows.skipped.items():
                group = self.groups[key.group_id]
                partition = group.places[Place(key.topic_id, key.partition)]
                value = shown.get((partition, group.rules.reads_committed), {}).get(offset)
                if value is not None:
                    raise InvariantError(
                        f"{key} has passed {offset} {how}, but the record {value} is there"
                    )

    def _draw(self, name: str, topic: str) -> None:
        rng = self.rng
        rules = GroupRules(
            lock_duration_ms=rng.choice((300, 1_200, 4_000)),
            deliveries_max=rng.choice((2, 3, 5)),
            locks_max=rng.choice((4, 15, 200)),
            reads_committed=rng.random() < 0.5,
            can_renew=rng.random() < 0.8,
            reset=EARLIEST,
        )
        first = rng.choice((-1, 0))
        self.groups[name] = ShareGroup(name, topic, rules, first, {})

    def _install(self, host: Host) -> None:
        windows = self.windows[host.settings.broker.node_id]

        def rules(group_id: str) -> GroupRules:
            return self.groups[group_id].rules

        def prepare(node: Node) -> None:
            def begin(group_id: str, partition: Partition) -> Pending[int]:
                reset = rules(group_id).reset
                return first_offset(reset, partition, node.timers.wall_ms, node.outbox)

            states = WatchedStates(node.share_states, self.states, windows, node.node_id)
            node.sharing = Sharing(node.find, states, node.timers, rules, begin, SESSIONS_MAX)

        host.prepare = prepare
        host.invariants += [windows.check, self.states.check]

    def _led(self, node: Node, place: Place) -> Partition | None:
        partitions = node.by_topic_id.get(place.topic_id, {})
        found = partitions.get(place.partition)
        return found if found is not None and found.leads else None

    def _left(self, group: ShareGroup, place: Place, partition: TopicPartition) -> str | None:
        host = self.cluster.leader_of(partition)
        led = None if host is None or host.node is None else self._led(host.node, place)
        if host is None or led is None:
            return f"no leader of {partition}"
        start = self.start(host, group.group_id, place)
        end = led.last_stable_offset if group.rules.reads_committed else led.high_watermark
        if start is None or start < end:
            return f"{partition} done up to {start} of {end}"
        return None
