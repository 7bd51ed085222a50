"""Checks every replica of every partition after every event.

- Two brokers never lead the same partition in the same epoch.
- The leader of the newest epoch and every in-sync replica have all committed records.
- While a broker runs, no high watermark and no leader epoch decreases, and no high watermark of a
  leader is ahead of what its disk has synced.
- No replica starts at a later offset than the partition, unless it knows that it lacks records, or
  the records of the topic are deleted: those of share coordinators, and those of share groups' own.
- Committed records are the same in every replica (`sim/checks/history_checks.py`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from barnabas.metadata.image import SHARE_STATE_TOPIC
from barnabas.model.ids import TopicId
from barnabas.node.node import Node
from barnabas.node.partitions.partition import Partition
from barnabas.sim.checks.history_checks import History, headers_in
from barnabas.sim.host import Host
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.simulated_shares import QUEUE
from barnabas.sim.world import InvariantError

Place = tuple[TopicId, int]
DELETED_FROM = (SHARE_STATE_TOPIC, QUEUE)
"""The topics whose oldest records are deleted in the simulation."""


@dataclass(slots=True)
class Seen:
    """A replica as of the last check."""

    high_watermark: int = -1
    leader_epoch: int = -1
    leads: bool = False
    compared: int = 0
    """The offset up to which the replica was compared with the history."""


class ReplicaChecks:
    """Compares the replicas of all brokers."""

    def __init__(self) -> None:
        self.histories: dict[Place, History] = {}
        self._leaders: dict[tuple[TopicId, int, int], str] = {}
        self._newest: dict[Place, int] = {}
        self._seen: dict[str, dict[Partition, Seen]] = {}
        self._lives: dict[str, int] = {}
        self.in_sync: Callable[[TopicId, int], Iterable[tuple[int, Partition]]] = lambda *_: ()
        """Returns the in-sync replicas of a partition in committed metadata, with broker ids."""

    def check(self, host: Host, node: Node) -> None:
        """Check what changed at a broker."""
        if self._lives.get(host.name) != host.life:
            self._lives[host.name] = host.life
            self._seen[host.name] = {}
        seen = self._seen[host.name]
        for partition in node.partitions.values():
            before = seen.get(partition)
            if before is None:
                before = seen[partition] = Seen()
            if (
                partition.high_watermark != before.high_watermark
                or partition.leader_epoch != before.leader_epoch
                or partition.leads != before.leads
            ):
                self._check_replica(host.name, partition, before, damaged=host.damaged)

    def check_joined(self, topic_id: bytes, number: int, joined: list[int]) -> None:
        """Check brokers that joined an ISR."""
        in_sync = self.in_sync(TopicId(topic_id), number)
        self._check_in_sync(replica for broker, replica in in_sync if broker in joined)

    def compare_all(self, cluster: Cluster) -> None:
        """Compare all replicas completely at the end."""
        for host in cluster.hosts:
            assert host.node is not None
            for partition in [] if host.damaged else host.node.partitions.values():
                history = self._history(partition)
                upto = partition.high_watermark
                history.compare(host.name, headers_in(partition.log, 0, upto))
                if partition.high_watermark != history.end_offset:
                    raise InvariantError(
                        f"{host.name} has {partition.name} up to {partition.high_watermark}, "
                        f"but {history.end_offset} was committed"
                    )

    def _check_replica(
        self, who: str, partition: Partition, before: Seen, *, damaged: bool
    ) -> None:
        high_watermark, epoch = partition.high_watermark, partition.leader_epoch
        went_back = high_watermark < before.high_watermark or epoch < before.leader_epoch
        knows_damage = partition.health.lost_records or partition.health.damaged_at is not None
        lacks = knows_damage and not partition.config.flush_on_ack  # with flush=ack none is lost
        # A follower may lose power when it has deleted what it has not synced yet.
        lacks = lacks or (partition.name.topic in DELETED_FROM and not partition.leads)
        # A replica that is damaged, or knows that it lacks records, discards its log.
        if went_back and not damaged and not lacks:
            raise InvariantError(
                f"{partition.name} at {who} went back to {high_watermark} in {epoch}: {before}"
            )
        synced = not partition.config.flush_on_ack or high_watermark <= partition.log.flushed_offset
        if partition.leads and not synced:
            raise InvariantError(
                f"high watermark {high_watermark} of {partition.name} at {who} is ahead of the disk"
            )
        if partition.log.start_offset and not lacks and partition.name.topic not in DELETED_FROM:
            raise InvariantError(
                f"{partition.name} at {who} starts at {partition.log.start_offset}, but no client "
                "deleted records"
            )
        history = self._history(partition)
        # A broker must find damage before it serves the records.
        if not damaged:
            history.compare(who, headers_in(partition.log, before.compared, high_watermark))
            before.compared = max(before.compared, high_watermark)
        if partition.leads and (epoch != before.leader_epoch or not before.leads):
            self._record_leader(who, partition, history)
        if partition.leads and high_watermark > before.high_watermark:
            in_sync = self.in_sync(partition.topic_id, partition.name.partition)
            self._check_in_sync(replica for _, replica in in_sync)
        before.high_watermark, before.leader_epoch = high_watermark, epoch
        before.leads = partition.leads

    def _record_leader(self, who: str, partition: Partition, history: History) -> None:
        number, epoch = partition.name.partition, partition.leader_epoch
        leader = self._leaders.setdefault((partition.topic_id, number, epoch), who)
        if leader != who:
            raise InvariantError(f"{leader} and {who} both lead {partition.name} in epoch {epoch}")
        place = (partition.topic_id, number)
        newest = self._newest.get(place, -1)
        self._newest[place] = max(newest, epoch)
        if epoch >= newest and partition.log.end_offset < history.end_offset:
            raise InvariantError(
                f"{who} leads {partition.name} in epoch {epoch} from {partition.log.end_offset}, "
                f"but {history.end_offset} was committed"
            )

    def _check_in_sync(self, replicas: Iterable[Partition]) -> None:
        for replica in replicas:
            committed = self._history(replica).end_offset
            if replica.log.end_offset < committed:
                raise InvariantError(
                    f"an in-sync replica of {replica.name} ends at {replica.log.end_offset}, "
                    f"but {committed} was committed"
                )

    def _history(self, partition: Partition) -> History:
        place = (partition.topic_id, partition.name.partition)
        history = self.histories.get(place)
        if history is None:
            history = self.histories[place] = History(str(partition.name))
        return history
