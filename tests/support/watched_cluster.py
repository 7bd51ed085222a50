"""An imaginary cluster for tests of what watchers compute: offsets and commits at each interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from barnabas.admin.cluster_overview import Answers
from barnabas.admin.scopes import Place
from barnabas.monitor.cluster_answers import Collected, GroupAnswer, Scrape
from barnabas.monitor.observing import Observer
from barnabas.monitor.states import ClusterState, GroupMember
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from barnabas.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

INTERVAL_MS = 10_000
WALL_MS = 1_700_000_000_000
ORDERS: Place = ("orders", 0)
DISK = DescribeLogDirsResult(total_bytes=100 << 30, usable_bytes=40 << 30)


def member(*places: Place, name: str = "m-1", client: str = "app") -> GroupMember:
    return GroupMember(
        member_id=name, client_id=client, instance_id=None, host="/10.0.0.9", partitions=places
    )


def group(
    name: str,
    commits: Mapping[Place, int] | None,
    members: Sequence[GroupMember] | None = (),
    state: str = "",
) -> GroupAnswer:
    return GroupAnswer(
        name=name,
        type="classic",
        state=state or ("Stable" if members else "Empty"),
        assignor="range",
        coordinator=1,
        members=members,
        commits=commits,
    )


@dataclass
class WatchedCluster:
    """What brokers would answer; `tick` takes one collection."""

    topics: dict[str, int] = field(default_factory=lambda: {"orders": 1})
    ends: dict[Place, int] = field(default_factory=lambda: {ORDERS: 0})
    starts: dict[Place, int] = field(default_factory=lambda: {ORDERS: 0})
    sizes: dict[Place, int] = field(default_factory=dict)
    groups: dict[str, GroupAnswer] = field(default_factory=dict)
    has_all_groups: bool = True
    written_ms: dict[tuple[Place, int], int] = field(default_factory=dict)
    scrapes: dict[int, Scrape] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    brokers: dict[int, bool] = field(default_factory=lambda: {1: True, 2: True, 3: True})
    """Whether each broker is up."""
    at_ms: int = 0
    observer: Observer = field(default_factory=lambda: Observer(INTERVAL_MS / 1000))

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.at_ms

    def collected(self) -> Collected:
        return Collected(
            at_ms=self.at_ms,
            wall_ms=self.wall_ms,
            took_ms=12,
            answers=self._answers(),
            starts=dict(self.starts),
            ends=dict(self.ends),
            sizes=dict(self.sizes),
            groups=dict(self.groups),
            has_all_groups=self.has_all_groups,
            scrapes=dict(self.scrapes),
            written_ms=dict(self.written_ms),
            troubles=tuple(self.troubles),
        )

    def tick(self) -> ClusterState:
        """Take a collection one interval after the last."""
        self.at_ms += INTERVAL_MS
        return self.observer.observe(self.collected())

    def commit(self, name: str, commits: Mapping[Place, int], *, has_member: bool = True) -> None:
        members = (member(*commits),) if has_member else ()
        self.groups[name] = group(name, dict(commits), members)

    def without_answers_of_groups(self) -> None:
        self.groups = {
            name: replace(each, members=None, commits=None) for name, each in self.groups.items()
        }

    def _answers(self) -> Answers:
        up = [number for number, is_up in self.brokers.items() if is_up]
        voters = [
            ReplicaState(
                replica_id=number,
                replica_directory_id=bytes([number]) * 16,
                log_end_offset=50,
                last_fetch_timestamp=self.wall_ms,
            )
            for number in up
        ]
        return Answers(
            cluster=DescribeClusterResponse(
                cluster_id="prod-cluster",
                brokers=[
                    DescribeClusterBroker(
                        broker_id=number, host="h", port=9000 + number, is_fenced=not is_up
                    )
                    for number, is_up in self.brokers.items()
                ],
            ),
            topics=[self._topic(name, count, up) for name, count in self.topics.items()],
            quorum=DescribeQuorumResponsePartitionData(
                leader_id=up[0] if up else -1,
                leader_epoch=7,
                high_watermark=50,
                current_voters=voters,
            ),
            disks={number: [DISK] for number in up},
        )

    def _topic(self, name: str, count: int, up: Sequence[int]) -> MetadataResponseTopic:
        replicas = list(self.brokers)
        return MetadataResponseTopic(
            name=name,
            is_internal=name.startswith("__"),
            partitions=[
                MetadataResponsePartition(
                    partition_index=number,
                    leader_id=up[number % len(up)] if up else -1,
                    replica_nodes=replicas,
                    isr_nodes=list(up),
                )
                for number in range(count)
            ],
        )
