"""Delete committed offsets of a group with OffsetDelete, which confluent-kafka does not offer."""

from collections import defaultdict
from collections.abc import Iterable

from barnabas.admin.groups.group_admin import group_failure
from barnabas.admin.scopes import Place
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.wire.cluster_wire import Kind, Wire, settled


def delete_commits(wire: Wire, group: str, places: Iterable[Place]) -> None:
    """Delete a group's committed offsets for some partitions; raise if one fails."""
    numbers = defaultdict(list)
    for topic, number in places:
        numbers[topic].append(OffsetDeleteRequestPartition(partition_index=number))
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in numbers.items()
        ],
    )
    node = wire.coordinator(Kind.GROUP, group)

    def ask() -> tuple[int, list[int]]:
        answer = wire.ask(node, request, OffsetDeleteResponse)
        codes = [each.error_code for topic in answer.topics for each in topic.partitions]
        retry = answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return (answer.error_code, codes) if retry else (0, [answer.error_code, *codes])

    for code in settled(ask, f"Group {group}"):
        if code != ErrorCode.NONE:
            raise group_failure(group, code)
