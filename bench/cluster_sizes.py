"""Loads of size: many partitions, and large amounts of data to move between brokers."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka.admin import NewTopic

from bench.brokers import Flush
from bench.cluster_running import Cluster, is_led, is_whole
from bench.cluster_view import is_reassigning, reassign
from bench.cluster_work import CALM_S, Pace, idleness, target
from bench.loads import Figures, load
from bench.machine import warm_memory
from bench.process import LoadError

TOPIC_PARTITIONS = 100
TOPICS_AT_ONCE = 5
"""Partitions per request: Kafka refuses more than 10,000 metadata records in one."""


@dataclass(frozen=True, kw_only=True)
class ManyPartitions:
    """Topics are created, then all nodes are stopped and started again."""

    partitions: int

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Run once."""
        del pace
        began = time.monotonic()
        topics = [self._topic(cluster, number) for number in self.numbers()]
        for start in range(0, len(topics), TOPICS_AT_ONCE):
            cluster.create(topics[start : start + TOPICS_AT_ONCE])
        cluster.wait("made", lambda: cluster.holds(None, self.partitions, is_whole))
        figures = {"create_s": time.monotonic() - began}
        time.sleep(CALM_S)
        figures |= idleness(cluster) | {"metadata_kb": cluster.metadata_bytes() / 1e3}
        cluster.stop_all()
        figures["led_s"] = cluster.start_all(
            lambda: cluster.holds(None, self.partitions, is_led) and cluster.is_healthy()
        )
        yield figures

    def numbers(self) -> range:
        """The number of topics."""
        return range(self.partitions // TOPIC_PARTITIONS)

    def _topic(self, cluster: Cluster, number: int) -> NewTopic:
        return NewTopic(f"many-{number}", TOPIC_PARTITIONS, cluster.shape.replicas)


@dataclass(frozen=True, kw_only=True)
class Reassign:
    """A topic with two replicas, one of which moves to the node that has none."""

    gigabytes: int = 1
    partitions: int = 6
    size: int = 1024
    turns: int = 3

    def run(self, cluster: Cluster, pace: Pace) -> Iterator[Figures]:
        """Fill the topic, then move one replica of each partition, to each node in turn."""
        warm_memory(self.gigabytes * 3)
        with cluster.topic(self.partitions, Flush.LATER, replicas=2) as topic:
            first = self.placement(0)
            self._move(cluster, topic, first)
            self._fill(cluster, topic, pace)
            for turn in range(1, self.turns + 1):
                yield {"reassign_s": self._move(cluster, topic, self.placement(turn))}

    def placement(self, turn: int) -> dict[int, list[int]]:
        """The replicas of each turn: one leaves a node and one joins another."""
        nodes = [turn % 3 + 1, (turn + 1) % 3 + 1]
        return dict.fromkeys(range(self.partitions), nodes)

    def _move(self, cluster: Cluster, topic: str, wanted: dict[int, list[int]]) -> float:
        """Seconds from the request until no reassignment is in progress and all replicas are in
        sync.
        """
        port = cluster.nodes[0].port
        began = time.monotonic()
        reassign(port, topic, wanted)
        cluster.wait("reassignment", lambda: not is_reassigning(port))
        took = time.monotonic() - began
        cluster.wait_whole([topic], self.partitions)
        return took

    def _fill(self, cluster: Cluster, topic: str, pace: Pace) -> None:
        messages = int(self.gigabytes * 1e9 / self.size)
        where = target(cluster, topic, self.partitions, pace)
        sent = load("produce", where, self.size, "--messages", str(messages))["messages"]
        if sent < messages:
            raise LoadError(f"only {sent:.0f} of {messages} messages were written")
