"""Requests about share groups: their members, start offsets and lag, and changes of these.

with Wire(properties) as wire:
    members = describe(wire, "jobs").members
    offsets = start_offsets(wire, "jobs", {"jobs": [0, 1]})
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages import alter_share_group_offsets as altering
from barnabas.protocol.messages import delete_share_group_offsets as deleting
from barnabas.protocol.messages import describe_share_group_offsets as describing
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.wire.cluster_wire import Kind, Node, Wire, require, settled

GROUP_RESOURCE = 32
SHARE = "share"
SET = 0
EARLIEST, LATEST = -2, -1
UNKNOWN = -1

TopicPlace = tuple[str, int]
"""A topic and the number of a partition."""


class Progress(NamedTuple):
    """How far a share group is in one partition; None for what the broker does not know yet."""

    start: int | None
    """The first offset that is not done."""
    lag: int | None
    """How many records are not done, those in flight included."""


def listings(wire: Wire) -> dict[str, str]:
    """Return the state of every share group, by its name."""
    request = ListGroupsRequest(types_filter=[SHARE])
    found: dict[str, str] = {}
    for node in wire.nodes():
        answer = wire.ask(node, request, ListGroupsResponse)
        require(answer.error_code, f"The groups of broker {node.id}")
        found |= {
            each.group_id: each.group_state
            for each in answer.groups
            if each.group_type.lower() == SHARE
        }
    return found


def describe(wire: Wire, group: str) -> DescribedGroup:
    """Return the state and the members of a group; raise `RefusedError` if there is none."""

    def asked() -> tuple[int, DescribedGroup]:
        request = ShareGroupDescribeRequest(group_ids=[group])
        answer = wire.ask(_coordinator(wire, group), request, ShareGroupDescribeResponse)
        return answer.groups[0].error_code, answer.groups[0]

    return settled(asked, f"Share group {group}")


def start_offsets(
    wire: Wire, group: str, topics: Mapping[str, Sequence[int]] | None = None
) -> dict[TopicPlace, Progress]:
    """Return the progress of a group in some partitions; in all that it has read without names."""
    named = describing.DescribeShareGroupOffsetsRequestTopic
    wanted = None
    if topics is not None:
        wanted = [named(topic_name=name, partitions=list(topics[name])) for name in topics]
    part = describing.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=wanted)
    request = describing.DescribeShareGroupOffsetsRequest(groups=[part])

    def asked() -> tuple[int, describing.DescribeShareGroupOffsetsResponseGroup]:
        answer = wire.ask(
            _coordinator(wire, group), request, describing.DescribeShareGroupOffsetsResponse
        )
        return answer.groups[0].error_code, answer.groups[0]

    return {
        (topic.topic_name, each.partition_index): Progress(
            _known(each.start_offset), _known(each.lag)
        )
        for topic in settled(asked, f"Share group {group}").topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE
    }


def alter_start_offsets(wire: Wire, group: str, offsets: Mapping[TopicPlace, int]) -> None:
    """Set where a group without members goes on; records before count as done."""
    topics: dict[str, list[altering.AlterShareGroupOffsetsRequestPartition]] = defaultdict(list)
    for (topic, number), offset in offsets.items():
        topics[topic].append(
            altering.AlterShareGroupOffsetsRequestPartition(
                partition_index=number, start_offset=offset
            )
        )
    request = altering.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            altering.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )

    def asked() -> tuple[int, altering.AlterShareGroupOffsetsResponse]:
        answer = wire.ask(
            _coordinator(wire, group), request, altering.AlterShareGroupOffsetsResponse
        )
        return answer.error_code, answer

    for topic_answer in settled(asked, f"Share group {group}").responses:
        for each in topic_answer.partitions:
            place = f"{topic_answer.topic_name}:{each.partition_index}"
            require(each.error_code, f"Share group {group}, {place}")


def delete_offsets(wire: Wire, group: str, topics: Iterable[str]) -> None:
    """Forget the progress of a group without members in some topics."""
    named = [deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    request = deleting.DeleteShareGroupOffsetsRequest(group_id=group, topics=named)

    def asked() -> tuple[int, deleting.DeleteShareGroupOffsetsResponse]:
        answer = wire.ask(
            _coordinator(wire, group), request, deleting.DeleteShareGroupOffsetsResponse
        )
        return answer.error_code, answer

    for each in settled(asked, f"Share group {group}").responses:
        require(each.error_code, f"Share group {group}, topic {each.topic_name}")


def delete_group(wire: Wire, group: str) -> None:
    """Delete a group without members, with all its progress."""

    def asked() -> tuple[int, None]:
        request = DeleteGroupsRequest(groups_names=[group])
        answer = wire.ask(_coordinator(wire, group), request, DeleteGroupsResponse)
        return answer.results[0].error_code, None

    settled(asked, f"Share group {group}")


def set_group_configs(wire: Wire, group: str, configs: Mapping[str, str]) -> None:
    """Set configs of a group; raise `RefusedError` if the broker does not know them."""
    entries = [
        AlterableConfig(name=name, config_operation=SET, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=entries
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = wire.ask_any(request, IncrementalAlterConfigsResponse)
    for each in answer.responses:
        require(each.error_code, f"The configs of group {group} ({each.error_message})")


def log_offsets(wire: Wire, topic: str, position: int) -> dict[int, int]:
    """Return the first or the next offset of each partition of a topic, by its number."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    answer = wire.ask_any(request, MetadataResponse)
    (found,) = answer.topics
    require(found.error_code, f'Topic "{topic}"')
    nodes = {each.node_id: Node(each.node_id, each.host, each.port) for each in answer.brokers}
    by_leader: dict[int, list[int]] = defaultdict(list)
    for each in found.partitions:
        if each.leader_id not in nodes:
            require(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}:{each.partition_index}")
        by_leader[each.leader_id].append(each.partition_index)
    offsets: dict[int, int] = {}
    for leader, numbers in by_leader.items():
        offsets |= _offsets_at(wire, nodes[leader], topic, numbers, position)
    return dict(sorted(offsets.items()))


def _offsets_at(
    wire: Wire, node: Node, topic: str, numbers: list[int], position: int
) -> dict[int, int]:
    partitions = [
        ListOffsetsPartition(partition_index=number, timestamp=position) for number in numbers
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)]
    )
    (answer,) = wire.ask(node, request, ListOffsetsResponse).topics
    for each in answer.partitions:
        require(each.error_code, f"{topic}:{each.partition_index}")
    return {each.partition_index: each.offset for each in answer.partitions}


def _coordinator(wire: Wire, group: str) -> Node:
    return wire.coordinator(Kind.GROUP, group)


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number
