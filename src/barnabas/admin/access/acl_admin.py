"""ACLs and roles of a cluster: list and change them, and explain the decisions that they lead to.

The decisions are computed here, with the brokers' authorizer, from the ACLs, the roles and the
settings that the brokers report. No request is tried on the cluster.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.admin.access.acl_words import sentence
from barnabas.admin.admin_errors import AdminError
from barnabas.metadata.acl_filter import AclFilter
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import AclAdded
from barnabas.model.callers import CLIENT_LISTENER, Caller, Principal
from barnabas.model.errors import ErrorCode
from barnabas.model.permissions import Right
from barnabas.model.security_settings import SecuritySettings
from barnabas.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.security.authorizer import Authorizer, Verdict
from barnabas.wire.cluster_wire import NOT_YET, Wire, settled

ROLE, BROKER = 100, 4
MEMBERS = "members"
DELETE, APPEND, SUBTRACT = 1, 2, 3
ANY_HOST = "a host that no ACL names"
ANYBODY = "User:(everybody else)"
FORBIDDEN = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you need an ACL for {need} on the cluster",
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer; set security.authorizer to acl",
}


class Access(NamedTuple):
    """A principal that may do something, its host, and the reason."""

    principal: str
    host: str
    verdict: Verdict


class AclAdmin:
    """The ACLs and roles of a cluster."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def acls(self, wanted: AclFilter) -> list[AclAdded]:
        """Return the ACLs that a filter matches."""
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        answer = self._wire.ask_any(request, DescribeAclsResponse)
        _check(answer.error_code, answer.error_message, "describe")
        return [
            AclAdded(
                acl_id=f"{place}-{number}",
                resource_type=each.resource_type,
                pattern_type=each.pattern_type,
                resource_name=each.resource_name,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for place, each in enumerate(answer.resources)
            for number, acl in enumerate(each.acls)
        ]

    def create(self, acls: Sequence[AclAdded]) -> None:
        """Create ACLs; raise on the first that is refused."""
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    resource_pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in acls
            ]
        )

        def ask() -> tuple[int, None]:
            answer = self._wire.ask_any(request, CreateAclsResponse)
            for acl, result in zip(acls, answer.results, strict=True):
                if result.error_code in NOT_YET:
                    return result.error_code, None
                _check(result.error_code, result.error_message, "alter", sentence(acl))
            return ErrorCode.NONE, None

        settled(ask, "The ACLs were not created")

    def delete(self, wanted: AclFilter) -> int:
        """Delete the ACLs that a filter matches; return how many."""
        each = DeleteAclsFilter(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        request = DeleteAclsRequest(filters=[each])

        def ask() -> tuple[int, int]:
            (result,) = self._wire.ask_any(request, DeleteAclsResponse).filter_results
            if result.error_code not in NOT_YET:
                _check(result.error_code, result.error_message, "alter")
            return result.error_code, len(result.matching_acls)

        return settled(ask, "The ACLs were not deleted")

    def roles(self) -> dict[str, list[str]]:
        """Return the members of every role."""
        listing = ListConfigResourcesRequest(resource_types=[ROLE])
        answer = self._wire.ask_any(listing, ListConfigResourcesResponse)
        _check(answer.error_code, None, "describe-configs")
        names = [each.resource_name for each in answer.config_resources]
        if not names:
            return {}
        asked = [DescribeConfigsResource(resource_type=ROLE, resource_name=name) for name in names]
        described = self._wire.ask_any(
            DescribeConfigsRequest(resources=asked), DescribeConfigsResponse
        )
        found = {}
        for result in described.results:
            _check(result.error_code, result.error_message, "describe")
            value = next((e.value for e in result.configs if e.name == MEMBERS), "")
            found[result.resource_name] = [each for each in (value or "").split(",") if each]
        return found

    def add_members(self, role: str, members: Sequence[str], *, dry_run: bool) -> None:
        """Add members to a role."""
        self._alter(role, APPEND, ",".join(members), dry_run=dry_run)

    def remove_members(self, role: str, members: Sequence[str], *, dry_run: bool) -> None:
        """Remove members from a role; without names, all of them."""
        operation, value = (SUBTRACT, ",".join(members)) if members else (DELETE, None)
        self._alter(role, operation, value, dry_run=dry_run)

    def rules(self) -> "Rules":
        """Return the facts that decisions depend on."""
        image = SecurityImage(roles=self.roles())
        image.acls = {acl.acl_id: acl for acl in self.acls(AclFilter())}
        return Rules(image, *self._settings())

    def _settings(self) -> tuple[tuple[str, ...], bool]:
        """Return the super users, and whether a resource without ACLs is open."""
        broker = str(self._wire.nodes()[0].id)
        asked = DescribeConfigsResource(resource_type=BROKER, resource_name=broker)
        request = DescribeConfigsRequest(resources=[asked])
        (result,) = self._wire.ask(self._wire.nodes()[0], request, DescribeConfigsResponse).results
        _check(result.error_code, result.error_message, "describe-configs")
        values = {entry.name: entry.value or "" for entry in result.configs}
        users = tuple(each for each in values.get("super.users", "").split(";") if each)
        return users, values.get("allow.everyone.if.no.acl.found") == "true"

    def _alter(self, role: str, operation: int, value: str | None, *, dry_run: bool) -> None:
        change = AlterableConfig(name=MEMBERS, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=ROLE, resource_name=role, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry_run)

        def ask() -> tuple[int, None]:
            (result,) = self._wire.ask_any(request, IncrementalAlterConfigsResponse).responses
            if result.error_code not in NOT_YET:
                _check(result.error_code, result.error_message, "alter", role)
            return result.error_code, None

        settled(ask, f"Role {role} was not changed")


class Rules:
    """The facts that decisions depend on, as the brokers report them."""

    def __init__(self, image: SecurityImage, super_users: Iterable[str], is_open: bool) -> None:
        self._image = image
        self._super_users = tuple(super_users)
        settings = SecuritySettings(super_users=self._super_users, allow_everyone_if_no_acl=is_open)
        self._authorizer = Authorizer(settings)
        self._authorizer.changed(None, image)

    def roles_of(self, principal: str) -> tuple[str, ...]:
        """Return the roles of a principal."""
        return self._authorizer.roles_of(principal)

    def explain(self, principal: str, wanted: Right, name: str, host: str) -> Verdict:
        """Return whether a principal may do something, and why."""
        kind, _, user = principal.partition(":")
        caller = Caller(Principal(kind, user), CLIENT_LISTENER, host)
        return self._authorizer.explain(caller, wanted, name)

    def who(self, wanted: Right, name: str) -> list[Access]:
        """Return all principals that may do something, among those in ACLs, roles and settings.

        Hosts in ACLs have separate lines if the decision differs.
        """
        acls = self._image.acls.values()
        principals = {acl.principal for acl in acls if not acl.principal.startswith("Role:")}
        principals.update(member for members in self._image.roles.values() for member in members)
        principals.update(self._super_users)
        principals.discard("User:*")
        hosts = sorted({acl.host for acl in acls} - {"*"})
        found = []
        for principal in [*sorted(principals), ANYBODY]:
            usual = self.explain(principal, wanted, name, ANY_HOST)
            if usual.allowed:
                found.append(Access(principal, "*", usual))
            for host in hosts:
                verdict = self.explain(principal, wanted, name, host)
                if verdict.allowed != usual.allowed:
                    found.append(Access(principal, host, verdict))
        return found


def _check(code: int, message: str | None, need: str, what: str = "") -> None:
    """Raise `AdminError` for an error code, with advice."""
    if code == ErrorCode.NONE:
        return
    advice = FORBIDDEN.get(ErrorCode(code)) if code in tuple(ErrorCode) else None
    if advice is not None:
        raise AdminError(f"The brokers refused: {advice.format(need=need)}")
    subject = f"{what}: " if what else ""
    raise AdminError(f"{subject}{message or f'error {code}'}")
