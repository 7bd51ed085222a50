"""Dialogues about consumer groups (KIP-848): heartbeats, descriptions, commits by member epoch."""

from typing import Any

from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tools.compat_diff.comparing import UNKNOWN_ID
from tools.compat_diff.dialogues.asking import create, each_version, topic
from tools.compat_diff.dialogues.committing import commit, fetch_offsets
from tools.compat_diff.dialogues.groups import Entering, describe, heartbeat, join, leave
from tools.compat_diff.steps import Ask, Dialogue, Pause, Scene, Talk

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The member id that the client itself chooses, from version 1 on."""


def consumer_heartbeat(
    group: str,
    epoch: int,
    *,
    version: int = 1,
    member: str = MEMBER,
    topics: list[str] | None = None,
    owned: list[tuple[bytes, list[int]]] | None = None,
    rebalance_ms: int = -1,
    **fields: str | None,
) -> Ask:
    """Send a heartbeat; `fields` are those of the request."""
    held = [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=i, partitions=p)
        for i, p in owned or []
    ]
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=topics,
        topic_partitions=None if owned is None else held,
        **fields,
    )
    return Ask(request, version)


def first(group: str, topics: list[str], version: int, **fields: str | None) -> Ask:
    """Join."""
    member = MEMBER if version else ""
    return consumer_heartbeat(
        group,
        0,
        version=version,
        member=member,
        topics=topics,
        owned=[],
        rebalance_ms=5000,
        **fields,
    )


def ask(*groups: str, version: int = 1, operations: bool = False) -> Ask:
    """Describe groups."""
    request = ConsumerGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )
    return Ask(request, version)


def living(scene: Scene, version: int) -> Talk:
    """The life of one member."""
    g, a = scene.name("g"), scene.name("a")
    made = yield create(topic(a, 2))
    topic_id = made.first("topic_id", bytes(16))
    answer = yield first(g, [a], version)
    me = answer.first("member_id", "") or ""
    epoch = answer.first("member_epoch", 0)
    yield ask(g, version=version)
    yield consumer_heartbeat(g, epoch, version=version, member=me, owned=[(topic_id, [0, 1])])
    yield consumer_heartbeat(g, epoch, version=version, member=me)
    yield commit(g, [(a, 0, 3)], epoch, me, version=9)
    yield commit(g, [(a, 0, 3)], epoch + 1, me, version=9)
    yield commit(g, [(a, 0, 3)], epoch, me, version=8)
    yield commit(g, [(a, 0, 3)], version=9)
    yield fetch_offsets(g, [(a, [0])], version=9, member=(me, epoch))
    yield fetch_offsets(g, [(a, [0])], version=9, member=(me, epoch + 1))
    yield fetch_offsets(g, [(a, [0])], version=9, member=("stranger", epoch))
    yield consumer_heartbeat(g, epoch + 5, version=version, member=me)
    yield consumer_heartbeat(g, epoch, version=version, member="stranger")
    yield consumer_heartbeat(g, epoch, version=version, member=me, owned=[(UNKNOWN_ID, [0])])
    yield consumer_heartbeat(g, epoch, version=version, member=me, topics=[scene.name("none")])
    yield Pause(50)
    yield ask(g, version=version)
    yield describe(g)
    yield heartbeat(g, epoch, me)
    yield join(g, version=5)
    yield consumer_heartbeat(g, -1, version=version, member=me)
    yield consumer_heartbeat(g, -1, version=version, member=me)
    yield ask(g, version=version)
    yield Ask(ListGroupsRequest(), 5)


def wrong(scene: Scene, version: int) -> Talk:
    """Heartbeats with values that are not allowed."""
    g, a = scene.name("g"), scene.name("a")
    yield create(topic(a))
    right: dict[str, Any] = {"version": version, "topics": [a], "owned": [], "rebalance_ms": 5000}
    yield consumer_heartbeat("", 0, **right)
    yield consumer_heartbeat(g, 0, version=version, topics=[a], owned=[])
    yield consumer_heartbeat(g, 0, version=version, owned=[], rebalance_ms=5000)
    yield consumer_heartbeat(g, 0, version=version, topics=[], owned=[], rebalance_ms=5000)
    yield consumer_heartbeat(g, 0, version=version, topics=[a], rebalance_ms=5000)
    yield consumer_heartbeat(
        g, 0, version=version, topics=[a], owned=[(UNKNOWN_ID, [0])], rebalance_ms=5000
    )
    yield consumer_heartbeat(g, 0, **right, server_assignor="nonsense")
    yield consumer_heartbeat(g, 0, **right, server_assignor="")
    yield consumer_heartbeat(g, 0, **right, instance_id="")
    yield consumer_heartbeat(g, 0, **right, rack_id="")
    yield consumer_heartbeat(g, 5, **right)
    yield consumer_heartbeat(g, -1, version=version)
    yield consumer_heartbeat(g, -2, version=version)
    yield consumer_heartbeat(g, -3, version=version)
    yield consumer_heartbeat(g, 3, version=version, member="")
    yield consumer_heartbeat(g, 0, version=version, member="", topics=[a], owned=[], rebalance_ms=0)
    yield ask(g, version=version)
    for pattern in ("", "(", "a.*", scene.name(".*")) if version else ():
        yield consumer_heartbeat(
            scene.name("pattern"),
            0,
            version=version,
            owned=[],
            rebalance_ms=5000,
            subscribed_topic_regex=pattern,
        )


def static(scene: Scene, version: int) -> Talk:
    """A static member that leaves for a while, and returns."""
    g, a = scene.name("g"), scene.name("a")
    yield create(topic(a, 2))
    answer = yield first(g, [a], version, instance_id="i")
    me = answer.first("member_id", "") or ""
    epoch = answer.first("member_epoch", 0)
    yield ask(g, version=version)
    other = "BBBBBBBBBBBBBBBBBBBBBB"
    joining: dict[str, Any] = {"version": version, "topics": [a], "owned": [], "rebalance_ms": 5000}
    yield consumer_heartbeat(g, 0, member=other, instance_id="i", **joining)
    yield consumer_heartbeat(g, epoch, version=version, member=me, instance_id="i")
    yield consumer_heartbeat(g, epoch, version=version, member=me, instance_id="other")
    yield consumer_heartbeat(g, -2, version=version, member=me, instance_id="i")
    yield ask(g, version=version)
    yield consumer_heartbeat(g, 0, member=other, instance_id="i", **joining)
    yield consumer_heartbeat(g, epoch, version=version, member=me, instance_id="i")
    yield leave(g, ("", "i"))


def sharing(scene: Scene, version: int) -> Talk:
    """Two members that choose their ids share partitions by each assignor, which sorts by id."""
    for assignor in ("uniform", "range", None):
        g, a = scene.name(f"g-{assignor}"), scene.name("a")
        yield create(topic(a, 2))
        answer = yield first(g, [a], version, server_assignor=assignor)
        one = answer.first("member_id", "") or ""
        epoch = answer.first("member_epoch", 0)
        topic_id = (yield ask(g)).first("topic_id", bytes(16))
        joining: dict[str, Any] = {
            "version": version,
            "topics": [a],
            "owned": [],
            "rebalance_ms": 5000,
        }
        second = "BBBBBBBBBBBBBBBBBBBBBB"
        answer = yield consumer_heartbeat(g, 0, member=second, server_assignor=assignor, **joining)
        two = answer.first("member_id", "") or ""
        yield consumer_heartbeat(g, epoch, version=version, member=one, owned=[(topic_id, [0, 1])])
        yield consumer_heartbeat(g, epoch, version=version, member=one, owned=[(topic_id, [0])])
        yield consumer_heartbeat(g, epoch + 1, version=version, member=two, owned=[])
        yield consumer_heartbeat(g, -1, version=version, member=two)
        yield consumer_heartbeat(g, -1, version=version, member=one)


def describing(scene: Scene, version: int) -> Talk:
    """Describe groups of both protocols, and missing ones."""
    g = scene.name("classic")
    yield ask(version=version)
    yield ask(scene.name("unknown"), version=version)
    me = Entering(g, 5)
    yield from me.walk()
    yield ask(g, g, version=version)
    yield ask(scene.name("unknown"), version=version, operations=True)
    yield first(g, [scene.name("a")], version)


WRITTEN: dict[str, Dialogue] = {
    **each_version("consumer/living", "ConsumerGroupHeartbeat", living),
    **each_version("consumer/wrong", "ConsumerGroupHeartbeat", wrong),
    **each_version("consumer/static", "ConsumerGroupHeartbeat", static),
    "consumer/sharing-v1": lambda scene: sharing(scene, 1),
    **each_version("consumer/describe", "ConsumerGroupDescribe", describing),
}
