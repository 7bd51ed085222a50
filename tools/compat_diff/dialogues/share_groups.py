"""Dialogues about share groups (KIP-932): heartbeats, descriptions, offsets of empty groups."""

from barnabas.protocol.messages import alter_share_group_offsets as alters
from barnabas.protocol.messages import delete_share_group_offsets as deletes
from barnabas.protocol.messages import describe_share_group_offsets as describes
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tools.compat_diff.dialogues.asking import create, topic
from tools.compat_diff.dialogues.committing import commit, fetch_offsets
from tools.compat_diff.dialogues.consumer_groups import ask as describe_consumer_group
from tools.compat_diff.dialogues.consumer_groups import first as join_consumer_group
from tools.compat_diff.dialogues.groups import describe, heartbeat, join
from tools.compat_diff.steps import Answer, Ask, Dialogue, Pause, Scene, Talk

MEMBER, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "BBBBBBBBBBBBBBBBBBBBBB"
INITIALIZED_MS = 1500
"""How long both brokers may take to initialize partitions."""


def beat(
    group: str,
    epoch: int,
    topics: list[str] | None = None,
    member: str = MEMBER,
    rack: str | None = None,
) -> Ask:
    """Send a heartbeat."""
    request = ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=rack,
        subscribed_topic_names=topics,
    )
    return Ask(request, 1)


def ask(*groups: str, operations: bool = False) -> Ask:
    """Describe groups."""
    request = ShareGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )
    return Ask(request, 1)


def offsets(group: str, topics: dict[str, list[int]] | None = None, version: int = 1) -> Ask:
    """Describe offsets; None asks for all topics."""
    named = None
    if topics is not None:
        named = [
            describes.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers)
            for name, numbers in topics.items()
        ]
    asked = describes.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)
    return Ask(describes.DescribeShareGroupOffsetsRequest(groups=[asked]), version)


def alter(group: str, name: str, *starts: tuple[int, int]) -> Ask:
    """Set start offsets of partitions."""
    parts = [
        alters.AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start)
        for number, start in starts
    ]
    topics = [alters.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=parts)]
    return Ask(alters.AlterShareGroupOffsetsRequest(group_id=group, topics=topics), 0)


def delete(group: str, *names: str) -> Ask:
    """Delete the offsets of topics."""
    topics = [deletes.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    return Ask(deletes.DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), 0)


def delete_group(group: str) -> Ask:
    """Delete a group."""
    return Ask(DeleteGroupsRequest(groups_names=[group]), 2)


def epoch_in(answer: Answer) -> int:
    """Return the epoch that a member got."""
    epoch: int = answer.first("member_epoch", 0)
    return epoch


def living(scene: Scene) -> Talk:
    """The life of one member."""
    g, a, b = scene.name("g"), scene.name("a"), scene.name("b")
    yield create(topic(a, 2))
    yield create(topic(b))
    early = epoch_in((yield beat(g, 0, [a])))
    yield Pause(INITIALIZED_MS)
    epoch = epoch_in((yield beat(g, early)))
    yield beat(g, epoch)
    yield beat(g, epoch, [a])
    yield beat(g, early)
    yield ask(g, operations=True)
    yield beat(g, epoch + 1)
    yield beat(g, 0, [a])
    yield beat(g, epoch, member=OTHER)
    epoch = epoch_in((yield beat(g, epoch, [b, scene.name("none")])))
    yield beat(g, early)
    yield Pause(INITIALIZED_MS)
    epoch = epoch_in((yield beat(g, epoch)))
    yield beat(g, epoch)
    yield ask(g)
    yield offsets(g)
    yield beat(g, -1)
    yield beat(g, -1)
    yield beat(g, epoch)
    yield ask(g)


def sharing(scene: Scene) -> Talk:
    """Two members of one group, and one partition for both."""
    g, a = scene.name("g"), scene.name("a")
    yield create(topic(a))
    epoch = epoch_in((yield beat(g, 0, [a])))
    yield Pause(INITIALIZED_MS)
    epoch = epoch_in((yield beat(g, epoch)))
    other = epoch_in((yield beat(g, 0, [a], OTHER)))
    yield beat(g, epoch)
    yield ask(g)
    yield beat(g, -1)
    yield beat(g, other, member=OTHER)
    yield ask(g)


def wrong(scene: Scene) -> Talk:
    """Heartbeats with values that are not allowed."""
    g, a = scene.name("g"), scene.name("a")
    yield create(topic(a))
    yield beat("", 0, [a])
    yield beat(g, 0)
    yield beat(g, 0, [])
    yield beat(g, 0, [a], member="")
    yield beat(g, 0, [a], rack="")
    yield beat(g, 5)
    yield beat(g, -1)
    yield beat(g, -2)
    yield beat(g, 3, member="")
    yield ask(g, "")
    yield ask()


def other_types(scene: Scene) -> Talk:
    """Groups of one type, and requests about another."""
    g, a, c = scene.name("g"), scene.name("a"), scene.name("c")
    yield create(topic(a))
    yield beat(g, 0, [a])
    yield Pause(INITIALIZED_MS)
    yield join_consumer_group(g, [a], 1)
    yield describe_consumer_group(g)
    yield describe(g)
    yield heartbeat(g, 1, MEMBER)
    yield join(g, version=5)
    yield commit(g, [(a, 0, 3)], version=9)
    yield commit(g, [(a, 0, 3)], 1, MEMBER, version=9)
    yield fetch_offsets(g, [(a, [0])], version=9)
    yield beat(g, -1)
    yield join_consumer_group(g, [a], 1)
    yield join(g, version=5)
    yield commit(g, [(a, 0, 3)], version=9)
    yield join_consumer_group(c, [a], 1)
    yield beat(c, 0, [a])
    yield beat(c, 1)
    yield ask(c)
    yield alter(c, a, (0, 1))
    yield delete(c, a)
    yield offsets(c)
    yield offsets(c, {a: [0]})


def changing_offsets(scene: Scene) -> Talk:
    """Offsets of a group, with and without members."""
    g, a, b = scene.name("g"), scene.name("a"), scene.name("b")
    none = scene.name("none")
    yield create(topic(a, 2))
    yield create(topic(b))
    yield alter("", a, (0, 1))
    yield delete("", a)
    yield delete(g, a)
    yield offsets(g)
    yield offsets(g, {a: [0, 1, 7], none: [0]})
    yield alter(g, a, (0, 3), (7, 3))
    yield alter(g, none, (0, 3))
    yield offsets(g)
    yield offsets(g, version=0)
    yield offsets(g, {a: [0, 1], none: [0]})
    yield beat(g, 0, [a, b])
    yield Pause(INITIALIZED_MS)
    yield alter(g, a, (0, 5))
    yield delete(g, a)
    yield delete_group(g)
    yield beat(g, -1)
    yield alter(g, a, (1, 0))
    yield offsets(g, {a: [0, 1], b: [0]})
    yield delete(g, a, none)
    yield offsets(g)
    yield delete(g, a)
    yield delete_group(g)
    yield delete_group(g)
    yield offsets(g, {a: [0, 1], b: [0]})
    yield ask(g)


WRITTEN: dict[str, Dialogue] = {
    "share_groups/living": living,
    "share_groups/sharing": sharing,
    "share_groups/wrong": wrong,
    "share_groups/other_types": other_types,
    "share_groups/changing_offsets": changing_offsets,
}
