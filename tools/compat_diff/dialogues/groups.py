"""Dialogues about classic groups: join, sync, heartbeat, leave, static members, admin requests."""

from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tools.compat_diff.dialogues.asking import each_version
from tools.compat_diff.dialogues.committing import commit
from tools.compat_diff.steps import Answer, Ask, Await, Dialogue, Pause, Scene, Talk

RANGE = (("range", b"r"),)


def join(  # noqa: PLR0913 - the fields of the request
    group: str,
    member: str = "",
    *,
    version: int = 5,
    instance: str | None = None,
    protocols: tuple[tuple[str, bytes], ...] = RANGE,
    kind: str = "consumer",
    session_ms: int = 30_000,
    rebalance_ms: int = 1000,
    connection: str = "main",
    held: bool = False,
) -> Ask:
    """Join a classic group."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        member_id=member,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in protocols],
    )
    if version >= 1:
        request.rebalance_timeout_ms = rebalance_ms
    if version >= 5:
        request.group_instance_id = instance
    return Ask(request, version, connection, held)


def sync(
    group: str,
    generation: int,
    member: str,
    *,
    version: int = 3,
    instance: str | None = None,
    assigned: dict[str, bytes] | None = None,
    protocol: tuple[str | None, str | None] = (None, None),
) -> Ask:
    """Send assignments, or request one."""
    request = SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        assignments=[
            SyncGroupRequestAssignment(member_id=m, assignment=a)
            for m, a in (assigned or {}).items()
        ],
    )
    if version >= 3:
        request.group_instance_id = instance
    if version >= 5:
        request.protocol_type, request.protocol_name = protocol
    return Ask(request, version)


def heartbeat(
    group: str, generation: int, member: str, *, version: int = 3, instance: str | None = None
) -> Ask:
    """Send a heartbeat."""
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    if version >= 3:
        request.group_instance_id = instance
    return Ask(request, version)


def leave(group: str, *members: tuple[str, str | None], version: int = 3) -> Ask:
    """Leave a group."""
    if version < 3:
        return Ask(LeaveGroupRequest(group_id=group, member_id=members[0][0]), version)
    named = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in members]
    return Ask(LeaveGroupRequest(group_id=group, members=named), version)


def describe(*groups: str, version: int = 5) -> Ask:
    """Describe groups."""
    return Ask(DescribeGroupsRequest(groups=list(groups)), version)


class Entering:
    """The steps by which a member joins a group; the responses are kept for the following steps."""

    def __init__(self, group: str, version: int, instance: str | None = None) -> None:
        self.group, self.version, self.instance = group, version, instance
        self.member, self.generation = "", -1

    def walk(self) -> Talk:
        """Join, twice if the coordinator requires that."""
        answer = yield join(self.group, version=self.version, instance=self.instance)
        if answer.first("error_code") == 79:
            member = answer.first("member_id", "")
            answer = yield join(self.group, member, version=self.version, instance=self.instance)
        self._keep(answer)

    def _keep(self, answer: Answer) -> None:
        self.member = answer.first("member_id", "") or ""
        self.generation = answer.first("generation_id", -1)


def joining(scene: Scene, version: int) -> Talk:
    """The life of one member in one version of JoinGroup."""
    g = scene.name("g")
    me = Entering(g, version)
    yield from me.walk()
    yield describe(g)
    yield sync(g, me.generation, me.member, assigned={me.member: b"a"})
    yield describe(g)
    yield heartbeat(g, me.generation, me.member)
    yield heartbeat(g, me.generation + 1, me.member)
    yield heartbeat(g, me.generation, "stranger")
    yield join(g, "stranger", version=version)
    yield join(g, me.member, version=version)
    yield sync(g, me.generation + 1, me.member, assigned={me.member: b"b"})
    yield join(g, version=version, kind="other")
    yield join(g, version=version, protocols=(("unlike", b""),))
    yield join(g, me.member, version=version, protocols=(("other", b""),))
    yield leave(g, (me.member, None))
    yield describe(g)
    yield join(g, me.member, version=version)


def joining_wrongly(scene: Scene, version: int) -> Talk:
    """Join with values that are not allowed."""
    g = scene.name("g")
    yield join("", version=version)
    for session_ms in (0, -1, 5999, 1_800_001):
        yield join(g, version=version, session_ms=session_ms)
    yield join(g, version=version, protocols=())
    yield join(g, version=version, kind="")
    yield join(g, version=version, kind="", protocols=())
    yield join(g, "made-up", version=version)
    if version >= 5:
        yield join(g, "made-up", version=version, instance="i")
        yield join(g, version=version, instance="")
    yield describe(g)


def syncing(scene: Scene, version: int) -> Talk:
    """Sync in one version: before, with wrong values, twice."""
    g = scene.name("g")
    yield sync(g, 1, "stranger", version=version)
    yield sync("", 1, "stranger", version=version)
    me = Entering(g, 7)
    yield from me.walk()
    right = ("consumer", "range")
    if version >= 5:
        for protocol in (("consumer", "other"), ("other", "range"), (None, "range"), (None, None)):
            yield sync(g, me.generation, me.member, protocol=protocol, version=version)
    yield sync(g, me.generation + 1, me.member, protocol=right, version=version)
    yield sync(g, me.generation, "stranger", protocol=right, version=version)
    assigned = {me.member: b"mine", "stranger": b"lost"}
    yield sync(g, me.generation, me.member, assigned=assigned, protocol=right, version=version)
    yield sync(g, me.generation, me.member, protocol=right, version=version)
    yield sync(
        g, me.generation, me.member, assigned={me.member: b"x"}, protocol=right, version=version
    )
    yield describe(g)


def send_heartbeats(scene: Scene, version: int) -> Talk:
    """Heartbeats in one version."""
    g = scene.name("g")
    yield heartbeat(g, 1, "stranger", version=version)
    yield heartbeat("", 1, "stranger", version=version)
    yield heartbeat(g, 1, "", version=version)
    me = Entering(g, 5)
    yield from me.walk()
    yield heartbeat(g, me.generation, me.member, version=version)
    yield sync(g, me.generation, me.member, assigned={me.member: b"a"})
    for generation in (me.generation, me.generation - 1, me.generation + 1, -1):
        yield heartbeat(g, generation, me.member, version=version)
    if version >= 3:
        yield heartbeat(g, me.generation, me.member, version=version, instance="i")


def leaving(scene: Scene, version: int) -> Talk:
    """Leave in one version: unknown members, oneself, several at once."""
    g = scene.name("g")
    yield leave(g, ("stranger", None), version=version)
    yield leave("", ("stranger", None), version=version)
    me = Entering(g, 5, "instance")
    yield from me.walk()
    yield leave(g, ("stranger", None), version=version)
    if version >= 3:
        yield leave(g, version=version)
        yield leave(g, (me.member, "other"), version=version)
        yield leave(g, ("other", "instance"), version=version)
        yield leave(g, ("", "unknown"), ("stranger", None), version=version)
        yield leave(g, ("", "instance"), version=version)
    yield leave(g, (me.member, None), version=version)
    yield leave(g, (me.member, None), version=version)
    yield describe(g)


def static(scene: Scene, version: int) -> Talk:
    """A static member that returns, and one that replaces it."""
    g = scene.name("g")
    me = Entering(g, version, "i")
    yield from me.walk()
    yield sync(g, me.generation, me.member, instance="i", assigned={me.member: b"a"})
    yield describe(g)
    again = Entering(g, version, "i")
    yield from again.walk()
    yield heartbeat(g, me.generation, me.member, instance="i")
    yield heartbeat(g, again.generation, again.member, instance="i")
    yield sync(g, me.generation, me.member, instance="i")
    yield sync(g, again.generation, again.member, instance="i", assigned={again.member: b"b"})
    yield commit(g, [(scene.name("t"), 0, 5)], me.generation, me.member, instance="i")
    yield join(g, me.member, version=version, instance="i")
    yield join(g, again.member, version=version, instance="other")
    yield heartbeat(g, again.generation, "stranger", instance="i")
    yield heartbeat(g, again.generation, again.member, instance="unknown")
    yield leave(g, ("", "i"), version=4)
    yield heartbeat(g, again.generation, again.member, instance="i")
    yield describe(g)


def two_members(scene: Scene, version: int) -> Talk:
    """A second member joins, and the first must join again."""
    g = scene.name("g")
    me = Entering(g, version)
    yield from me.walk()
    yield sync(g, me.generation, me.member, assigned={me.member: b"a"})
    answer: Answer = yield join(g, version=version, connection="second", held=version < 4)
    other = answer.first("member_id", "") or ""
    if version >= 4:
        yield join(g, other, version=version, connection="second", held=True)
    yield Pause(100)
    yield heartbeat(g, me.generation, me.member)
    yield join(g, me.member, version=version)
    joined: Answer = yield Await("second")
    other = joined.first("member_id", "") or other
    generation = joined.first("generation_id", -1)
    yield describe(g)
    yield sync(g, generation, me.member, assigned={me.member: b"1", other: b"2"})
    yield sync(g, generation, other)
    yield describe(g)
    yield heartbeat(g, generation, other)
    yield heartbeat(g, me.generation, me.member)
    yield leave(g, (other, None), version=3)
    yield heartbeat(g, generation, me.member)


def describing(scene: Scene, version: int) -> Talk:
    """Describe groups in every state, and missing ones."""
    g = scene.name("g")
    yield Ask(DescribeGroupsRequest(groups=[]), version)
    yield describe(g, version=version)
    me = Entering(g, 5, "i")
    yield from me.walk()
    yield describe(g, g, version=version)
    yield sync(g, me.generation, me.member, instance="i", assigned={me.member: b"a"})
    yield describe(g, scene.name("unknown"), version=version)
    if version >= 3:
        request = DescribeGroupsRequest(groups=[g], include_authorized_operations=True)
        yield Ask(request, version)
        request = DescribeGroupsRequest(groups=["none"], include_authorized_operations=True)
        yield Ask(request, version)
    yield leave(g, (me.member, "i"))
    yield describe(g, version=version)
    yield commit(scene.name("simple"), [(scene.name("t"), 0, 1)])
    yield describe(scene.name("simple"), version=version)


def listing(scene: Scene, version: int) -> Talk:
    """List groups, by state and type."""
    me = Entering(scene.name("g"), 5)
    yield from me.walk()
    yield commit(scene.name("simple"), [(scene.name("t"), 0, 1)])
    yield Ask(ListGroupsRequest(), version)
    if version >= 4:
        for states in (
            ["Empty"],
            ["CompletingRebalance"],
            ["empty"],
            ["Nonsense"],
            ["Stable", "Empty"],
        ):
            yield Ask(ListGroupsRequest(states_filter=states), version)
    if version >= 5:
        for types in (["classic"], ["consumer"], ["Classic"], ["share"], ["nonsense"]):
            yield Ask(ListGroupsRequest(types_filter=types), version)
        both = ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"])
        yield Ask(both, version)


def deleting(scene: Scene, version: int) -> Talk:
    """Delete groups: full, empty, unknown, twice."""
    g = scene.name("g")

    def delete(*names: str) -> Ask:
        return Ask(DeleteGroupsRequest(groups_names=list(names)), version)

    yield delete()
    yield delete(g)
    me = Entering(g, 5)
    yield from me.walk()
    yield delete(g)
    yield leave(g, (me.member, None))
    yield commit(scene.name("simple"), [(scene.name("t"), 0, 1)])
    yield delete(g, scene.name("unknown"), scene.name("simple"))
    yield delete(g)
    yield describe(g)
    yield commit(g, [(scene.name("t"), 0, 1)])
    yield delete(g, g)


WRITTEN: dict[str, Dialogue] = {
    **each_version("groups/join", "JoinGroup", joining),
    **each_version("groups/join-wrongly", "JoinGroup", joining_wrongly),
    **each_version("groups/sync", "SyncGroup", syncing),
    **each_version("groups/heartbeat", "Heartbeat", send_heartbeats),
    **each_version("groups/leave", "LeaveGroup", leaving),
    **{
        name: talk
        for name, talk in each_version("groups/static", "JoinGroup", static).items()
        if int(name.rpartition("v")[2]) >= 5
    },
    **each_version("groups/two-members", "JoinGroup", two_members),
    **each_version("groups/describe", "DescribeGroups", describing),
    **each_version("groups/list", "ListGroups", listing),
    **each_version("groups/delete", "DeleteGroups", deleting),
}
