"""Reassignment plans: read and write them as files, execute them, and follow their progress.

A plan has the format of Kafka's own tool, {"version": 1, "partitions": [{"topic", "partition",
"replicas"}]}, so that each tool can execute the plans of the other.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.replica_placement import Partitions, Replicas, Seat, moved
from barnabas.admin.scopes import Place
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsResult
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.list_partition_reassignments import OngoingTopicReassignment
from barnabas.protocol.messages.metadata import MetadataResponseTopic
from barnabas.wire.cluster_wire import Wire, settled

PREFERRED = 0
UNCLEAN = 1
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
PLAN_VERSION = 1

Sizes = Mapping[int, Mapping[Place, int]]
"""The bytes of each partition on each broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One partition whose replicas, or their order, change."""

    place: Place
    before: Replicas
    after: Replicas
    size: int
    """The bytes of one replica."""

    @property
    def bytes_to_move(self) -> int:
        """The bytes that brokers must replicate."""
        return self.size * len(moved(self.before, self.after))

    def as_json(self) -> dict[str, object]:
        """Return the value as a JSON object."""
        topic, number = self.place
        return {
            "topic": topic,
            "partition": number,
            "replicas": list(self.after),
            "before": list(self.before),
            "bytes_to_move": self.bytes_to_move,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The partitions to change."""

    changes: list[Change]

    @property
    def bytes_to_move(self) -> int:
        """The bytes that brokers must replicate."""
        return sum(each.bytes_to_move for each in self.changes)

    @property
    def moves(self) -> int:
        """The number of new replicas."""
        return sum(len(moved(each.before, each.after)) for each in self.changes)

    @property
    def after(self) -> dict[Place, Replicas]:
        """The replicas of each partition after the plan."""
        return {each.place: each.after for each in self.changes}

    def as_json(self) -> dict[str, object]:
        """Return the plan as a JSON object in Kafka's format."""
        return {
            "version": PLAN_VERSION,
            "partitions": [each.as_json() for each in self.changes],
            "moves": self.moves,
            "bytes_to_move": self.bytes_to_move,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The progress of a plan."""

    partitions_left: int
    copies_left: int
    bytes_copied: int


def make_plan(before: Partitions, after: Partitions, sizes: Sizes) -> Plan:
    """Return the changes between two placements, with their bytes."""
    changes = [
        Change(
            place=place,
            before=before[place],
            after=replicas,
            size=max((held.get(place, 0) for held in sizes.values()), default=0),
        )
        for place, replicas in sorted(after.items())
        if replicas != before[place]
    ]
    return Plan(changes=changes)


def read_plan(path: Path, there: Partitions, cluster: DescribeClusterResponse) -> Partitions:
    """Read a plan and check it with the cluster."""
    known = {each.broker_id for each in cluster.brokers}
    found = parse_plan(path.read_text(), str(path))
    for (topic, number), replicas in found.items():
        if (topic, number) not in there:
            raise AdminError(f"{path} names {topic}-{number}, which does not exist")
        strangers = [node for node in replicas if node not in known]
        if strangers:
            numbers = ", ".join(map(str, sorted(known)))
            raise AdminError(
                f"{path} puts {topic}-{number} on broker {strangers[0]}, which does not exist; "
                f"the cluster has {numbers}"
            )
    return found


def parse_plan(text: str, origin: str) -> dict[Place, Replicas]:
    """Read the JSON of a plan."""
    try:
        entries = json.loads(text)["partitions"]
        found = {
            (str(each["topic"]), int(each["partition"])): tuple(map(int, each["replicas"]))
            for each in entries
        }
    except (ValueError, KeyError, TypeError) as error:
        raise AdminError(
            f"{origin} is not a plan ({error!r}); write "
            '{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}'
        ) from error
    for (topic, number), replicas in found.items():
        if not replicas or len(set(replicas)) != len(replicas):
            raise AdminError(
                f"{origin} puts {topic}-{number} on {list(replicas)}; name each broker once"
            )
    return found


def current_partitions(
    topics: Iterable[MetadataResponseTopic], moving: Iterable[OngoingTopicReassignment] = ()
) -> dict[Place, Replicas]:
    """Return the replicas of every partition; of one that moves, its future replicas."""
    removing = {
        (topic.name, each.partition_index): each.removing_replicas
        for topic in moving
        for each in topic.partitions
    }
    found = {}
    for topic in topics:
        for each in topic.partitions:
            place = (topic.name or "", each.partition_index)
            leaving = removing.get(place, ())
            found[place] = tuple(node for node in each.replica_nodes if node not in leaving)
    return found


def seats(cluster: DescribeClusterResponse) -> list[Seat]:
    """Return the brokers that can get replicas: those that are not fenced."""
    return [Seat(each.broker_id, each.rack) for each in cluster.brokers if not each.is_fenced]


def sizes_of(disks: Mapping[int, Sequence[DescribeLogDirsResult] | str]) -> Sizes:
    """Return the bytes of partitions on each broker that answered."""
    return {
        node: {
            (topic.name, each.partition_index): each.partition_size
            for result in results
            for topic in result.topics
            for each in topic.partitions
            if not each.is_future_key
        }
        for node, results in disks.items()
        if not isinstance(results, str)
    }


def standing(plan: Plan, moving: Iterable[OngoingTopicReassignment], sizes: Sizes) -> Standing:
    """Return the progress of a plan."""
    left = {
        (topic.name, each.partition_index): set(each.adding_replicas)
        for topic in moving
        for each in topic.partitions
    }
    copied = 0
    for each in plan.changes:
        for node in moved(each.before, each.after):
            is_copying = node in left.get(each.place, ())
            there = sizes.get(node, {}).get(each.place, 0)
            copied += min(there, each.size) if is_copying else each.size
    unfinished = [left[each.place] for each in plan.changes if each.place in left]
    return Standing(
        partitions_left=len(unfinished),
        copies_left=sum(map(len, unfinished)),
        bytes_copied=copied,
    )


def submit(wire: Wire, wanted: Mapping[Place, Replicas | None]) -> list[str]:
    """Request reassignments, None to cancel one; return the errors as text."""
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(
                        partition_index=number,
                        replicas=None if replicas is None else list(replicas),
                    )
                    for number, replicas in numbers
                ],
            )
            for name, numbers in _by_topic(wanted).items()
        ]
    )

    def ask() -> tuple[int, AlterPartitionReassignmentsResponse]:
        answer = wire.ask_any(request, AlterPartitionReassignmentsResponse)
        return answer.error_code, answer

    answer = settled(ask, "The controller rejected the plan")
    return [
        f"{topic.name}-{each.partition_index}: {each.error_message or f'error {each.error_code}'}"
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code not in {ErrorCode.NONE, NO_REASSIGNMENT_IN_PROGRESS}
    ]


def elect(
    wire: Wire, places: Iterable[Place] | None, kind: int = PREFERRED
) -> tuple[list[Place], list[str]]:
    """Elect leaders, of all partitions if none are named; return elected partitions and errors."""
    named = None
    if places is not None:
        by_topic = _by_topic(dict.fromkeys(places, ()))
        named = [
            TopicPartitions(topic=name, partitions=[number for number, _ in numbers])
            for name, numbers in by_topic.items()
        ]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=named)

    def ask() -> tuple[int, ElectLeadersResponse]:
        answer = wire.ask_any(request, ElectLeadersResponse)
        return answer.error_code, answer

    answer = settled(ask, "No leaders were elected")
    results = [
        ((topic.topic, each.partition_id), each)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    ]
    elected = [place for place, each in results if each.error_code == ErrorCode.NONE]
    refused = [
        f"{topic}-{number}: {each.error_message or f'error {each.error_code}'}"
        for (topic, number), each in results
        if each.error_code not in {ErrorCode.NONE, ELECTION_NOT_NEEDED}
    ]
    return sorted(elected), refused


def _by_topic(
    wanted: Mapping[Place, Replicas | None],
) -> dict[str, list[tuple[int, Replicas | None]]]:
    found: dict[str, list[tuple[int, Replicas | None]]] = defaultdict(list)
    for (topic, number), replicas in sorted(wanted.items(), key=lambda pair: pair[0]):
        found[topic].append((number, replicas))
    return found
