"""Checks users, ACLs, roles and quotas, which every broker has from committed metadata.

- What the authorizer of a broker decides is what the ACLs and roles of its image say. The checks
  decide a second time, without an index and without memory.
- A request succeeds only if the broker that served it allowed it at some moment since it was sent.
  It is denied only if the broker denied it at such a moment.
- A broker that serves clients never has older metadata than it had before a restart. So a right
  that every broker has seen revoked is never used again.
- The quotas of a broker are those of its image.
- In the end all brokers have the same image.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.metadata.acl_filter import EVERY_NAME
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import AclAdded
from barnabas.model.callers import Caller, Principal, unauthenticated
from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    Right,
    right,
)
from barnabas.node.node import Node
from barnabas.protocol.message import Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.security.client_quotas import KEYS, QuotaKind
from barnabas.sim.host import Host
from barnabas.sim.world import InvariantError

EVERY_USER = "User:*"
READ_TOPIC = right(Operation.READ, ResourceType.TOPIC)
WRITE_TOPIC = right(Operation.WRITE, ResourceType.TOPIC)
READ_GROUP = right(Operation.READ, ResourceType.GROUP)
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ResourceType.TOPIC,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ResourceType.GROUP,
}
PRODUCER_RATE = "producer_byte_rate"


class Question(NamedTuple):
    """Whether a principal may do something to a resource."""

    principal: Principal
    wanted: Right
    name: str


class Moment(NamedTuple):
    """What a broker decides from a time on."""

    since_ms: int
    allowed: bool


def decide(security: SecurityImage, question: Question) -> bool:
    """Decide as the documentation of ACLs says: deny first, then allow, otherwise deny."""
    principal = str(question.principal)
    roles = {f"Role:{role}" for role, members in security.roles.items() if principal in members}
    who = {principal, EVERY_USER} | roles
    found = [
        acl
        for acl in security.acls.values()
        if acl.principal in who and acl.host == "*" and _names(acl, question)
    ]
    if any(acl.permission_type == PermissionType.DENY for acl in found):
        return False
    return bool(found)


def _names(acl: AclAdded, question: Question) -> bool:
    """Tell whether an ACL names the resource and exactly the operation, or all of them."""
    if acl.resource_type != question.wanted.resource:
        return False
    if not question.wanted.bit & 1 << acl.operation:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return question.name.startswith(acl.resource_name)
    return acl.resource_name in (question.name, EVERY_NAME)


class Rights:
    """Compares the brokers' decisions with their metadata."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        """What is asked of every broker after each change."""
        self.limited: list[str] = []
        """The users whose quotas are compared."""
        self._callers: dict[tuple[str, int, Principal], Caller] = {}
        """They keep what an authorizer remembers, as connections do."""
        self._seen: dict[str, object] = {}
        self._moments: dict[tuple[str, Question], list[Moment]] = {}
        self._served: dict[str, int] = {}

    def check(self, host: Host, node: Node) -> None:
        """Check what changed at a broker."""
        if node.authorizer is None:
            return
        offset = node.quorum.offset
        if host.accepts_clients:
            if offset < self._served.get(host.name, 0):
                raise InvariantError(
                    f"{host.name} serves clients with the metadata of offset {offset}, but had "
                    f"that of {self._served[host.name]} before"
                )
            self._served[host.name] = offset
        security = node.image.security
        state = (host.life, tuple(security.acls), repr(security.roles), repr(security.quotas))
        if self._seen.get(host.name) == state:
            return
        self._seen[host.name] = state
        for question in self.questions:
            self._ask(host, node, question)
        for user in self.limited:
            _check_quota(host, node, user)

    def check_answer(
        self,
        host: Host,
        principal: Principal | None,
        request: Message,
        answer: Any,  # noqa: ANN401 - the response to any request
        sent_ms: int,
    ) -> None:
        """Check that the broker that answered a client decided by rights that it had."""
        if principal is None:
            return
        for wanted, name, code in outcomes(request, answer):
            if code is ErrorCode.NONE:
                if not self._was(host, Question(principal, wanted, name), sent_ms, allowed=True):
                    raise InvariantError(
                        f"{host.name} served {principal} with {name}, which it may not "
                        f"{Operation(wanted.operation).name}"
                    )
            elif code in REFUSALS and not any(
                self._was(host, each, sent_ms, allowed=False)
                for each in self.questions
                if each.principal == principal and each.wanted.resource is REFUSALS[code]
            ):
                raise InvariantError(f"{host.name} denied {name} to {principal}: {code.name}")

    def _was(self, host: Host, question: Question, since_ms: int, *, allowed: bool) -> bool:
        """Tell whether a broker decided so at any moment since a time."""
        moments = self._moments.get((host.name, question))
        if moments is None:
            return True  # no broker was asked
        for moment in reversed(moments):
            if moment.allowed == allowed:
                return True
            if moment.since_ms < since_ms:
                return False
        return not allowed  # before its first event a broker allows nothing

    def _ask(self, host: Host, node: Node, question: Question) -> None:
        authorizer = node.authorizer
        assert authorizer is not None
        key = (host.name, host.life, question.principal)
        caller = self._callers.get(key)
        if caller is None:
            given = unauthenticated("client")
            caller = self._callers[key] = Caller(question.principal, given.listener, given.host)
        decided = authorizer.allows(caller, question.wanted, question.name)
        wanted = decide(node.image.security, question)
        if decided != wanted:
            raise InvariantError(
                f"{host.name} decides {decided} for {question}, but its ACLs say {wanted}"
            )
        moments = self._moments.setdefault((host.name, question), [])
        if not moments or moments[-1].allowed != decided:
            moments.append(Moment(host.world.now_ms, decided))


def outcomes(
    request: Message,
    answer: Any,  # noqa: ANN401 - the response to any request
) -> Iterator[tuple[Right, str, ErrorCode]]:
    """Return what a request used: a right, the name of the resource, and the outcome."""
    match request:
        case ProduceRequest():
            for topic in answer.responses:
                for each in topic.partition_responses:
                    yield WRITE_TOPIC, topic.name, ErrorCode(each.error_code)
        case FetchRequest():
            for topic in answer.responses:
                for each in topic.partitions:
                    yield READ_TOPIC, topic.topic, ErrorCode(each.error_code)
        case OffsetCommitRequest():
            for topic in answer.topics:
                yield from _of_commit(request.group_id, topic)
        case _:
            pass


def _of_commit(
    group: str,
    topic: OffsetCommitResponseTopic,
) -> Iterator[tuple[Right, str, ErrorCode]]:
    for each in topic.partitions:
        code = ErrorCode(each.error_code)
        yield READ_GROUP, group, code
        if code is ErrorCode.NONE:
            yield READ_TOPIC, topic.name, code


def _check_quota(host: Host, node: Node, user: str) -> None:
    """Check that a user is limited as the metadata says."""
    wanted = node.image.security.quotas.get((("user", user),), {}).get(PRODUCER_RATE)
    bucket = node.quotas.of(user, "").bucket(KEYS[PRODUCER_RATE], node.timers.now_ms)
    found = None if bucket is None else bucket.rate
    if found != wanted:
        raise InvariantError(
            f"{host.name} limits {user} to {found}, but its quota is {wanted} "
            f"({QuotaKind.PRODUCE.name})"
        )


def differences(nodes: list[Node]) -> list[str]:
    """Return which brokers have other users, ACLs, roles or quotas than the first."""
    first, *others = nodes
    return [
        f"broker {node.node_id}: {_described(node.image.security)} "
        f"instead of {_described(first.image.security)}"
        for node in others
        if node.image.security != first.image.security
    ]


def _described(security: SecurityImage) -> str:
    return (
        f"{sorted(security.credentials)} {sorted(security.acls)} {security.roles} {security.quotas}"
    )
