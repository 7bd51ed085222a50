"""Simulated operators of security, and a client without rights that tries to be one.

The operator takes rights away from clients and gives them back, creates and deletes users, and sets
quotas. It repeats each change until a controller has accepted it. Names of users are used once, so
that what must exist in the end is known: a user whose creation was acknowledged and that was not
deleted, and no user that was deleted after a creation that was sent only once.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.metadata.security_image import SecurityImage
from barnabas.model.callers import Principal
from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.sim.checks.rights_checks import PRODUCER_RATE
from barnabas.sim.clients.actor import Asking, Sleep, Talk
from barnabas.sim.clients.operators import RetryingClient, new_topic
from barnabas.sim.world import InvariantError

OPERATOR = Principal("User", "operator")
"""The super user of a simulated cluster."""
INTRUDER = Principal("User", "intruder")
LIMITED = "limited"
"""A user whose quota is never removed, so that snapshots contain one."""
ROLE_TYPE = 100
APPEND, SUBTRACT = 2, 3
SCRAM_SHA_256 = 1
ITERATIONS = 4096
AWAY_MS_MAX = 1_500
RATES = (20_000.0, 100_000.0)
DENIED = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Grant(NamedTuple):
    """One ACL that clients work with."""

    principal: str
    operation: Operation
    resource: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL
    permission: PermissionType = PermissionType.ALLOW


class SecurityOperator(RetryingClient):
    """Changes who may do what while clients work."""

    grants: Sequence[Grant]
    """What all clients together need; each is taken away for a while."""
    members: Sequence[tuple[str, str]] = ()
    """The roles of clients, each with a principal that is its member."""
    limited: Sequence[str] = ()
    """The users that get quotas."""
    _made = 0

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.kept: set[str] = set()
        """Users that must exist."""
        self.gone: set[str] = set()
        """Users that must not exist."""

    def life(self) -> Talk:
        """Give all clients their rights; then make random changes."""
        for grant in self.grants:
            if self.lives > 1:  # the life before may have ended while this was denied
                yield from self._take(grant._replace(permission=PermissionType.DENY))
            yield from self._give(grant)
        for role, member in self.members:
            yield from self._change_member(role, member, APPEND)
        for user in self.limited:
            yield from self._change_quota(user, None)
        yield from self._change_quota(LIMITED, RATES[0])
        while not self.closing:
            yield Sleep(self.rng.randint(100, 1_200))
            if not self.closing:
                yield from self.rng.choice(
                    (self._revoke, self._revoke, self._deny, self._expel, self._limit, self._users)
                )()

    def check(self, security: SecurityImage) -> None:
        """Check that the acknowledged changes are in the metadata."""
        known = {user for user, _ in security.credentials}
        if lost := self.kept - known:
            raise InvariantError(f"users whose creation was acknowledged are lost: {sorted(lost)}")
        if back := self.gone & known:
            raise InvariantError(f"users that were deleted are there: {sorted(back)}")

    def _revoke(self) -> Asking:
        grant = self.rng.choice(self.grants)
        yield from self._take(grant)
        self.world.note(self.name, f"has taken {grant.operation.name} from {grant.principal}")
        yield Sleep(self.rng.randint(0, AWAY_MS_MAX))
        yield from self._give(grant)

    def _deny(self) -> Asking:
        denied = self.rng.choice(self.grants)._replace(permission=PermissionType.DENY)
        yield from self._give(denied)
        self.world.note(self.name, f"has denied {denied.operation.name} to {denied.principal}")
        yield Sleep(self.rng.randint(0, AWAY_MS_MAX))
        yield from self._take(denied)

    def _expel(self) -> Asking:
        if self.members:
            role, member = self.rng.choice(self.members)
            yield from self._change_member(role, member, SUBTRACT)
            yield Sleep(self.rng.randint(0, AWAY_MS_MAX))
            yield from self._change_member(role, member, APPEND)

    def _limit(self) -> Asking:
        user = self.rng.choice(self.limited)
        yield from self._change_quota(user, self.rng.choice(RATES))
        yield Sleep(self.rng.randint(0, AWAY_MS_MAX))
        yield from self._change_quota(user, None)

    def _users(self) -> Asking:
        """Create a user, and maybe delete it."""
        self._made += 1
        name = f"{self.name}-{self.lives}-{self._made}"
        sent = self._correlation_id
        yield from self.repeat_until_final(
            new_user(name), lambda answer: int(answer.results[0].error_code)
        )
        was_sent_once = self._correlation_id == sent + 1
        self.kept.add(name)
        if self.rng.random() < 0.5:
            return
        yield Sleep(self.rng.randint(0, AWAY_MS_MAX))
        self.kept.discard(name)
        deletion = ScramCredentialDeletion(name=name, mechanism=SCRAM_SHA_256)
        yield from self.repeat_until_final(
            AlterUserScramCredentialsRequest(deletions=[deletion]),
            lambda answer: int(answer.results[0].error_code),
            ErrorCode.RESOURCE_NOT_FOUND,
        )
        if was_sent_once:  # another copy of the creation might arrive after the deletion
            self.gone.add(name)

    def _give(self, grant: Grant) -> Asking:
        yield from self.repeat_until_final(
            CreateAclsRequest(creations=[creation_of(grant)]),
            lambda answer: int(answer.results[0].error_code),
        )

    def _take(self, grant: Grant) -> Asking:
        yield from self.repeat_until_final(
            DeleteAclsRequest(filters=[_filter_of(grant)]),
            lambda answer: int(answer.filter_results[0].error_code),
        )

    def _change_member(self, role: str, member: str, operation: int) -> Asking:
        yield from self.repeat_until_final(
            change_of_role(role, member, operation),
            lambda answer: int(answer.responses[0].error_code),
        )

    def _change_quota(self, user: str, rate: float | None) -> Asking:
        yield from self.repeat_until_final(
            quota_of(user, rate), lambda answer: int(answer.entries[0].error_code)
        )


class Intruder(RetryingClient):
    """A client without any right: every attempt to change something must be denied."""

    def life(self) -> Talk:
        """Try one thing after the other, at any broker."""
        while not self.closing:
            yield Sleep(self.rng.randint(100, 1_000))
            request, code_in = self.rng.choice(ATTEMPTS)
            answer = yield from self.ask(request)
            code = None if answer is None else ErrorCode(code_in(answer))
            if code is None or code in DENIED or self.is_retriable(code):
                continue
            raise InvariantError(f"{self.name} sent {request} and got {code.name}")


def creation_of(grant: Grant) -> AclCreation:
    """Return the ACL of a grant as a request has it."""
    return AclCreation(
        resource_type=grant.resource,
        resource_name=grant.name,
        resource_pattern_type=grant.pattern,
        principal=grant.principal,
        host="*",
        operation=grant.operation,
        permission_type=grant.permission,
    )


def new_user(name: str) -> AlterUserScramCredentialsRequest:
    """Create a user; its password is of no importance, since no client logs in."""
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=SCRAM_SHA_256,
        iterations=ITERATIONS,
        salt=b"salt" * 4,
        salted_password=b"p" * 32,
    )
    return AlterUserScramCredentialsRequest(upsertions=[upsertion])


def quota_of(user: str, rate: float | None) -> AlterClientQuotasRequest:
    """Set the quota of a user, or remove it."""
    entity = AlterClientQuotasRequestEntityData(entity_type="user", entity_name=user)
    change = OpData(key=PRODUCER_RATE, value=rate or 0.0, remove=rate is None)
    entry = AlterClientQuotasRequestEntryData(entity=[entity], ops=[change])
    return AlterClientQuotasRequest(entries=[entry], validate_only=False)


def change_of_role(role: str, member: str, operation: int) -> IncrementalAlterConfigsRequest:
    """Add a member to a role, or remove it."""
    config = AlterableConfig(name="members", config_operation=operation, value=member)
    resource = AlterConfigsResource(resource_type=ROLE_TYPE, resource_name=role, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def _filter_of(grant: Grant) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=grant.resource,
        resource_name_filter=grant.name,
        pattern_type_filter=grant.pattern,
        principal_filter=grant.principal,
        host_filter=None,
        operation=grant.operation,
        permission_type=grant.permission,
    )


_EVERYTHING = Grant(str(INTRUDER), Operation.ALL, ResourceType.CLUSTER, CLUSTER_NAME)
_NO_DENIAL = Grant("User:*", Operation.ALL, ResourceType.TOPIC, "*", PatternType.ANY)
ATTEMPTS: tuple[tuple[Message, Callable[..., int]], ...] = (
    (
        CreateAclsRequest(creations=[creation_of(_EVERYTHING)]),
        lambda answer: int(answer.results[0].error_code),
    ),
    (
        DeleteAclsRequest(filters=[_filter_of(_NO_DENIAL)]),
        lambda answer: int(answer.filter_results[0].error_code),
    ),
    (new_user("intruder"), lambda answer: int(answer.results[0].error_code)),
    (quota_of("intruder", 1.0), lambda answer: int(answer.entries[0].error_code)),
    (
        change_of_role("writers", str(INTRUDER), APPEND),
        lambda answer: int(answer.responses[0].error_code),
    ),
    (new_topic("stolen", 1, {}), lambda answer: int(answer.topics[0].error_code)),
)
