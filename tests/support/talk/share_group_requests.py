"""Requests about the members and the offsets of share groups."""

from collections.abc import Callable, Iterable, Mapping

from barnabas.protocol.message import Message
from barnabas.protocol.messages import alter_share_group_offsets as alters
from barnabas.protocol.messages import delete_share_group_offsets as deletes
from barnabas.protocol.messages import describe_share_group_offsets as describes
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def heartbeat_request(
    group: str, topics: Iterable[str] | None = None, member: str = "m", epoch: int = 0
) -> ShareGroupHeartbeatRequest:
    """Send a heartbeat; it joins by default."""
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=None if topics is None else list(topics),
    )


def describe_request(groups: Iterable[str]) -> ShareGroupDescribeRequest:
    """Describe groups."""
    return ShareGroupDescribeRequest(group_ids=list(groups))


def offsets_request(
    group: str, topics: Iterable[str] | None, partitions: Iterable[int] = (0,)
) -> describes.DescribeShareGroupOffsetsRequest:
    """Describe the offsets of a group; None asks for all topics."""
    named = None
    if topics is not None:
        named = [
            describes.DescribeShareGroupOffsetsRequestTopic(
                topic_name=name, partitions=list(partitions)
            )
            for name in topics
        ]
    asked = describes.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)
    return describes.DescribeShareGroupOffsetsRequest(groups=[asked])


def alter_request(
    group: str, starts: Mapping[tuple[str, int], int]
) -> alters.AlterShareGroupOffsetsRequest:
    """Set start offsets."""
    topics: dict[str, alters.AlterShareGroupOffsetsRequestTopic] = {}
    for (name, number), offset in starts.items():
        topic = topics.setdefault(name, alters.AlterShareGroupOffsetsRequestTopic(topic_name=name))
        part = alters.AlterShareGroupOffsetsRequestPartition(
            partition_index=number, start_offset=offset
        )
        topic.partitions.append(part)
    return alters.AlterShareGroupOffsetsRequest(group_id=group, topics=list(topics.values()))


def delete_request(group: str, topics: Iterable[str]) -> deletes.DeleteShareGroupOffsetsRequest:
    """Delete the offsets of topics."""
    named = [deletes.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    return deletes.DeleteShareGroupOffsetsRequest(group_id=group, topics=named)


GROUP_REQUESTS: dict[str, tuple[int, Callable[[str, list[str]], Message]]] = {
    "ShareGroupHeartbeat": (76, heartbeat_request),
    "ShareGroupDescribe": (77, lambda group, _: describe_request([group, "open-group"])),
    "DescribeShareGroupOffsets": (90, offsets_request),
    "AlterShareGroupOffsets": (
        91,
        lambda group, topics: alter_request(group, {(name, 0): 1 for name in topics}),
    ),
    "DeleteShareGroupOffsets": (92, delete_request),
}
"""By API: its key, and a request about a group and some topics."""
