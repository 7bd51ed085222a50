"""Dialogues about security: ACLs without an authorizer, client quotas, SCRAM credentials."""

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
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tools.compat_diff.dialogues.asking import each_version
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

SHA_256, SHA_512 = 1, 2
EXACT = 0
KEY = "producer_byte_rate"
RATE = 1e12
"""So high that no client is ever paused."""


def describing_acls(scene: Scene, version: int) -> Talk:
    """Describe ACLs."""
    del scene
    request = DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    yield Ask(request, version)


def creating_acls(scene: Scene, version: int) -> Talk:
    """Create two ACLs."""
    acl = AclCreation(
        resource_type=2,
        resource_name=scene.name("a"),
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    yield Ask(CreateAclsRequest(creations=[acl, acl]), version)


def deleting_acls(scene: Scene, version: int) -> Talk:
    """Delete ACLs by a filter."""
    named = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter=scene.name("a"),
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    yield Ask(DeleteAclsRequest(filters=[named]), version)


def quotas(scene: Scene, version: int) -> Talk:
    """Set, describe and remove quotas, and ask for some that cannot be."""
    user = scene.name("user")

    def alter(entity: dict[str, str | None], key: str, value: float | None = None) -> Ask:
        parts = [
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ]
        change = OpData(key=key, value=value or 0.0, remove=value is None)
        entry = AlterClientQuotasRequestEntryData(entity=parts, ops=[change])
        return Ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), version)

    def describe(kind: str, match_type: int, match: str | None = None) -> Ask:
        wanted = ComponentData(entity_type=kind, match_type=match_type, match=match)
        return Ask(DescribeClientQuotasRequest(components=[wanted], strict=True), version)

    yield describe("user", EXACT, user)
    yield alter({"user": user}, KEY, RATE)
    yield describe("user", EXACT, user)
    yield alter({"user": user}, KEY)
    yield describe("user", EXACT, user)
    yield describe("nonsense", EXACT, user)
    yield alter({"nonsense": user}, KEY, RATE)
    yield alter({"user": user}, "no_such_quota", RATE)
    yield alter({"user": user, "ip": "127.0.0.9"}, "connection_creation_rate", RATE)


def credentials(scene: Scene, version: int) -> Talk:
    """Give a user a credential, replace it, delete it, and ask for what cannot be."""
    user = scene.name("user")

    def describe(*users: str) -> Ask:
        named = [UserName(name=each) for each in users]
        return Ask(DescribeUserScramCredentialsRequest(users=named), version)

    def upsert(iterations: int, mechanism: int = SHA_256) -> Ask:
        made = ScramCredentialUpsertion(
            name=user,
            mechanism=mechanism,
            iterations=iterations,
            salt=b"a salt of bytes",
            salted_password=bytes(32 if mechanism == SHA_256 else 64),
        )
        return Ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[made]), version)

    def delete(mechanism: int = SHA_256) -> Ask:
        gone = ScramCredentialDeletion(name=user, mechanism=mechanism)
        return Ask(AlterUserScramCredentialsRequest(deletions=[gone], upsertions=[]), version)

    yield describe(user)
    yield delete()
    yield upsert(4096)
    yield upsert(8192, SHA_512)
    yield describe(user)
    yield describe(user, user)
    yield upsert(100)
    yield upsert(20_000)
    yield delete()
    yield delete(SHA_512)
    yield delete(9)
    yield describe(user)


def creating_tokens(scene: Scene, version: int) -> Talk:
    """Ask for a delegation token; a client without a name gets none."""
    del scene
    renewer = CreatableRenewers(principal_type="User", principal_name="bob")
    yield Ask(CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1), version)


def changing_tokens(scene: Scene, version: int) -> Talk:
    """Renew a delegation token, and let it expire."""
    del scene
    yield Ask(RenewDelegationTokenRequest(hmac=b"none", renew_period_ms=1), version)
    yield Ask(ExpireDelegationTokenRequest(hmac=b"none", expiry_time_period_ms=1), version)


def describing_tokens(scene: Scene, version: int) -> Talk:
    """Describe delegation tokens."""
    del scene
    yield Ask(DescribeDelegationTokenRequest(owners=None), version)


WRITTEN: dict[str, Dialogue] = {
    **each_version("security/describe-acls", "DescribeAcls", describing_acls),
    **each_version("security/create-acls", "CreateAcls", creating_acls),
    **each_version("security/delete-acls", "DeleteAcls", deleting_acls),
    **each_version("security/quotas", "AlterClientQuotas", quotas),
    **each_version("security/credentials", "AlterUserScramCredentials", credentials),
    **each_version("security/create-tokens", "CreateDelegationToken", creating_tokens),
    **each_version("security/change-tokens", "RenewDelegationToken", changing_tokens),
    **each_version("security/describe-tokens", "DescribeDelegationToken", describing_tokens),
}
