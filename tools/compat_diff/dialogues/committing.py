"""Dialogues about committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from collections.abc import Sequence

from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import create, each_version, topic
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

Place = tuple[str | bytes, int, int]
"""Topic by name or id, partition, offset."""


def commit(
    group: str,
    places: Sequence[Place],
    generation: int = -1,
    member: str = "",
    *,
    version: int = 7,
    instance: str | None = None,
    note: str | None = "",
    epoch: int = -1,
) -> Ask:
    """Commit offsets."""
    topics = []
    for name, index, offset in places:
        partition = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=note
        )
        if version >= 6:
            partition.committed_leader_epoch = epoch
        entry = OffsetCommitRequestTopic(partitions=[partition])
        if isinstance(name, str):
            entry.name = name
        else:
            entry.topic_id = name
        topics.append(entry)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=topics,
    )
    if version >= 7:
        request.group_instance_id = instance
    return Ask(request, version)


def fetch_offsets(
    group: str,
    wanted: Sequence[tuple[str | bytes, list[int]]] | None,
    *,
    version: int = 7,
    stable: bool = False,
    member: tuple[str | None, int] = (None, -1),
) -> Ask:
    """Fetch committed offsets."""
    request = OffsetFetchRequest()
    if version >= 7:
        request.require_stable = stable
    if version < 8:
        request.group_id = group
        old = [OffsetFetchRequestTopic(name=n, partition_indexes=p) for n, p in wanted or []]  # type: ignore[arg-type]
        request.topics = None if wanted is None else old
        return Ask(request, version)
    entry = OffsetFetchRequestGroup(group_id=group, topics=None)
    if wanted is not None:
        entry.topics = []
        for name, indexes in wanted:
            named = OffsetFetchRequestTopics(partition_indexes=indexes)
            if isinstance(name, str):
                named.name = name
            else:
                named.topic_id = name
            entry.topics.append(named)
    if version >= 9:
        entry.member_id, entry.member_epoch = member
    request.groups = [entry]
    return Ask(request, version)


def committing(scene: Scene, version: int) -> Talk:
    """Commit in one version: correctly, for unknown members, invalid offsets, long metadata."""
    g, a = scene.name("g"), scene.name("a")
    made = yield create(topic(a, 2))
    by_id = version >= 10
    name: str | bytes = made.first("topic_id", bytes(16)) if by_id else a
    unknown: str | bytes = UNKNOWN_ID if by_id else scene.name("unknown")
    yield commit(g, [(name, 0, 5)], version=version, note="note")
    yield commit(g, [(name, 0, 3), (name, 1, 4)], version=version, note=None)
    for offset in (0, -1, -5, 1 << 60):
        yield commit(g, [(name, 0, offset)], version=version)
    for index in (7, -1):
        yield commit(g, [(name, index, 1)], version=version)
    yield commit(g, [(unknown, 0, 1), (name, 0, 2)], version=version)
    yield commit(g, [(bytes(16) if by_id else "", 0, 1)], version=version)
    yield commit(g, [], version=version)
    for size in (4096, 4097):
        yield commit(g, [(name, 0, 1)], version=version, note="n" * size)
    yield commit(g, [(name, 0, 1)], 3, "stranger", version=version)
    yield commit(g, [(name, 0, 1)], -1, "stranger", version=version)
    yield commit(g, [(name, 0, 1)], 0, "", version=version)
    yield commit(scene.name("new"), [(name, 0, 1)], 3, "", version=version)
    yield commit(scene.name("new"), [(name, 0, 1)], 3, "stranger", version=version)
    if version >= 6:
        yield commit(g, [(name, 0, 8)], version=version, epoch=0)
        yield commit(g, [(name, 1, 8)], version=version, epoch=5)
    if version >= 7:
        yield commit(g, [(name, 0, 1)], version=version, instance="i")
    yield fetch_offsets(g, [(a, [0, 1, 2])])
    yield fetch_offsets(g, None)


def fetching(scene: Scene, version: int) -> Talk:
    """Fetch committed offsets in one version."""
    g, a = scene.name("g"), scene.name("a")
    made = yield create(topic(a, 2))
    by_id = version >= 10
    name: str | bytes = made.first("topic_id", bytes(16)) if by_id else a
    unknown: str | bytes = UNKNOWN_ID if by_id else scene.name("unknown")
    yield fetch_offsets(g, [(name, [0])], version=version)
    yield commit(g, [(a, 0, 5), (a, 1, 6)], note="note", epoch=2)
    yield fetch_offsets(g, [(name, [0, 1, 2, -1])], version=version)
    yield fetch_offsets(g, [(name, [0]), (unknown, [0])], version=version)
    yield fetch_offsets(g, [(name, [])], version=version)
    yield fetch_offsets(g, [(name, [0, 0])], version=version)
    yield fetch_offsets(g, [], version=version)
    if version >= 2:
        yield fetch_offsets(g, None, version=version)
        yield fetch_offsets(scene.name("unknown"), None, version=version)
    if version >= 7:
        yield fetch_offsets(g, [(name, [0])], version=version, stable=True)
    if version >= 9:
        for member in (("stranger", 0), ("", 0), (None, 5), ("stranger", -1)):
            yield fetch_offsets(g, [(name, [0])], version=version, member=member)
    if version >= 8:
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(group_id=group, topics=None) for group in (g, g, "none")
            ]
        )
        yield Ask(request, version)
        yield Ask(OffsetFetchRequest(groups=[]), version)


def deleting(scene: Scene) -> Talk:
    """Delete committed offsets."""
    g, a = scene.name("g"), scene.name("a")
    yield create(topic(a, 2))

    def delete(group: str, *places: tuple[str, list[int]]) -> Ask:
        topics = [
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in places
        ]
        return Ask(OffsetDeleteRequest(group_id=group, topics=topics), 0)

    yield delete(g, (a, [0]))
    yield commit(g, [(a, 0, 5), (a, 1, 6)])
    yield delete(g)
    yield delete(g, (scene.name("unknown"), [0]))
    yield delete(g, (a, [7]))
    yield delete(g, (a, [0]))
    yield delete(g, (a, [0]))
    yield fetch_offsets(g, [(a, [0, 1])])
    yield delete(g, (a, [1, 1]))
    yield fetch_offsets(g, None)


def nameless(scene: Scene) -> Talk:
    """Use the group with an empty name, which no other dialogue does."""
    a = scene.name("a")
    yield create(topic(a))
    yield fetch_offsets("", [(a, [0])])
    yield Ask(OffsetDeleteRequest(group_id="", topics=[]), 0)
    yield Ask(DescribeGroupsRequest(groups=[""]), 5)
    yield commit("", [(a, 0, 1)])
    yield fetch_offsets("", [(a, [0])])
    yield Ask(DescribeGroupsRequest(groups=[""]), 5)
    yield Ask(DeleteGroupsRequest(groups_names=[""]), 2)
    yield Ask(DescribeGroupsRequest(groups=[""]), 6)


WRITTEN: dict[str, Dialogue] = {
    **each_version("committed/commit", "OffsetCommit", committing),
    **each_version("committed/fetch", "OffsetFetch", fetching),
    "committed/delete": deleting,
    "committed/nameless": nameless,
}
