"""Decides on changes of ACLs and roles, with Kafka's validation (`AclControlManager`)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.controller.configs import Change, Operation
from barnabas.metadata.acl_filter import AclFilter
from barnabas.metadata.features import SECURITY_LEVEL
from barnabas.metadata.image import Image
from barnabas.metadata.security_records import AclAdded, AclRemoved, RoleChanged
from barnabas.model import permissions
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.permissions import (
    CLUSTER_NAME,
    PatternType,
    PermissionType,
    ResourceType,
)

CHANGES_MAX = 10_000
"""How many ACLs one request creates or deletes at most, as in Kafka."""
NAME_CHARACTERS_MAX = 32_767
MEMBERS_MAX = 10_000
RESOURCE_TYPES = tuple(ResourceType)[2:]
OPERATIONS = tuple(permissions.Operation)[2:]
"""Without UNKNOWN and ANY."""

NewId = Callable[[], str]


class Created(NamedTuple):
    """The result for each ACL of a request, and the records."""

    problems: list[ApiError | None]
    records: list[AclAdded]


class Deleted(NamedTuple):
    """The result for each filter of a request, and the records."""

    results: list[list[AclAdded] | ApiError]
    records: list[AclRemoved]


def check_level(image: Image) -> None:
    """Raise `ApiError` while brokers of an older release may have to read the metadata."""
    if image.feature_level < SECURITY_LEVEL:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"ACLs and roles need feature level {SECURITY_LEVEL}, and the cluster is at "
            f"{image.feature_level}. Once every broker runs this release, run "
            "`barnabas cluster upgrade`",
        )


def create_acls(image: Image, wanted: Sequence[AclAdded], new_id: NewId) -> Created:
    """Return the records that create ACLs; an ACL that exists already is not an error."""
    if len(wanted) > CHANGES_MAX:
        raise _too_many("created")
    known = {_content(acl) for acl in image.security.acls.values()}
    problems: list[ApiError | None] = []
    records = []
    for acl in wanted:
        problem = _problem(acl)
        problems.append(None if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem))
        if problem is None and _content(acl) not in known:
            known.add(_content(acl))
            records.append(_named(acl, new_id()))
    return Created(problems, records)


def delete_acls(image: Image, filters: Sequence[AclFilter]) -> Deleted:
    """Return the records that delete the ACLs that filters match, each once."""
    results: list[list[AclAdded] | ApiError] = []
    gone: dict[str, AclRemoved] = {}
    for each in filters:
        if each.problem is not None:
            results.append(ApiError(ErrorCode.INVALID_REQUEST, each.problem))
            continue
        matching = list(each.among(image.security.acls.values()))
        results.append(matching)
        gone.update((acl.acl_id, AclRemoved(acl_id=acl.acl_id)) for acl in matching)
        if len(gone) > CHANGES_MAX:
            raise _too_many("deleted")
    return Deleted(results, list(gone.values()))


def altered_role(image: Image, role: str, changes: Sequence[Change]) -> RoleChanged:
    """Return the record that changes the members of a role; a role without members is gone."""
    check_level(image)
    _check_role(role)
    members = list(image.security.roles.get(role, []))
    for change in changes:
        if change.name != "members":
            raise ApiError(ErrorCode.INVALID_CONFIG, f"a role has members, and no {change.name!r}")
        named = [each.strip() for each in (change.value or "").split(",") if each.strip()]
        if change.operation in (Operation.SET, Operation.APPEND):
            for member in named:
                _check_member(member)
        match change.operation:
            case Operation.SET:
                members = list(dict.fromkeys(named))
            case Operation.DELETE:
                members = []
            case Operation.APPEND:
                members = list(dict.fromkeys([*members, *named]))
            case Operation.SUBTRACT:
                members = [member for member in members if member not in named]
    if len(members) > MEMBERS_MAX:
        problem = f"role {role!r} would have {len(members)} members; {MEMBERS_MAX} are allowed"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    return RoleChanged(role=role, members=members)


def _check_role(role: str) -> None:
    if not role or "," in role or ":" in role or len(role) > NAME_CHARACTERS_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{role!r} is not a role name: use one without commas and colons",
        )


def _check_member(member: str) -> None:
    kind, colon, name = member.partition(":")
    if not kind or not colon or not name or name == "*":
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{member!r} is not a principal; write it like User:alice"
        )
    if kind == "Role":
        problem = f"{member!r} is a role; a role has no roles as members"
        raise ApiError(ErrorCode.INVALID_CONFIG, problem)


def _problem(acl: AclAdded) -> str | None:
    """Return what is wrong with an ACL that is to be created."""
    codes = (
        ("resource type", acl.resource_type, RESOURCE_TYPES),
        ("pattern type", acl.pattern_type, (PatternType.LITERAL, PatternType.PREFIXED)),
        ("operation", acl.operation, OPERATIONS),
        ("permission type", acl.permission_type, (PermissionType.DENY, PermissionType.ALLOW)),
    )
    for what, code, possible in codes:
        if code not in possible:
            return f"{code} is no {what} that an ACL can have"
    is_cluster = acl.resource_type == ResourceType.CLUSTER
    rules = (
        (bool(acl.resource_name), "an ACL must name a resource"),
        (
            not is_cluster or acl.resource_name == CLUSTER_NAME,
            f"the only name of the cluster is {CLUSTER_NAME}",
        ),
        (
            ":" in acl.principal,
            f"{acl.principal!r} is not a principal; write it like User:alice",
        ),
        (bool(acl.host), "an ACL must name a host, or * for every host"),
    )
    return next((problem for is_kept, problem in rules if not is_kept), None)


def _content(acl: AclAdded) -> tuple[int, int, str, str, str, int, int]:
    """Return the fields of an ACL, except its id."""
    return (
        acl.resource_type,
        acl.pattern_type,
        acl.resource_name,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _named(acl: AclAdded, acl_id: str) -> AclAdded:
    return AclAdded(
        acl_id=acl_id,
        resource_type=acl.resource_type,
        pattern_type=acl.pattern_type,
        resource_name=acl.resource_name,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _too_many(what: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, f"at most {CHANGES_MAX} ACLs can be {what} at once; split it up"
    )
