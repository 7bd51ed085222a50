"""The authorizer against a model that looks at every ACL for every decision."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import AclAdded, AclRemoved, RoleChanged, SecurityRecord
from barnabas.model.callers import CLIENT_LISTENER, Caller, Principal
from barnabas.model.permissions import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    right,
)
from barnabas.model.security_settings import SecuritySettings
from barnabas.security.authorizer import Authorizer

NAMES = ["a", "ab", "abc", "b", "*", "hardcode"]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
USERS = ["alice", "bob", "root"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Role:r", "Role:s"]
HOSTS = ["10.0.0.1", "10.0.0.2", "::1"]
OPERATIONS = [op for op in Operation if op > Operation.ANY]
ASKED = [op for op in OPERATIONS if op is not Operation.ALL]
IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}

acls = st.builds(
    AclAdded,
    acl_id=st.sampled_from([str(number) for number in range(12)]),
    resource_type=st.sampled_from([int(each) for each in TYPES]),
    pattern_type=st.sampled_from([int(PatternType.LITERAL), int(PatternType.PREFIXED)]),
    resource_name=st.sampled_from(NAMES),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(["*", *HOSTS]),
    operation=st.sampled_from([int(each) for each in OPERATIONS]),
    permission_type=st.sampled_from([int(PermissionType.DENY), int(PermissionType.ALLOW)]),
)
removals = st.builds(AclRemoved, acl_id=st.sampled_from([str(number) for number in range(12)]))
members = st.lists(st.sampled_from([f"User:{name}" for name in USERS]), max_size=3)
roles = st.builds(RoleChanged, role=st.sampled_from(["r", "s"]), members=members)
records = st.lists(st.one_of(acls, acls, removals, roles), max_size=25)
operations = st.sampled_from(ASKED)


def matches(acl: AclAdded, kind: int, name: str) -> bool:
    """Tell whether an ACL names a resource."""
    if acl.resource_type != kind:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in ("*", name)


def concerns(acl: AclAdded, image: SecurityImage, user: str, host: str) -> bool:
    """Tell whether an ACL is about a caller."""
    roles_of = {f"Role:{role}" for role, names in image.roles.items() if f"User:{user}" in names}
    return acl.principal in {f"User:{user}", "User:*", *roles_of} and acl.host in {"*", host}


def is_about(acl: AclAdded, operation: Operation) -> bool:
    """Tell whether an ACL allows or denies an operation."""
    if acl.operation in (Operation.ALL, operation):
        return True
    implies = acl.permission_type == PermissionType.ALLOW
    return implies and acl.operation in IMPLYING.get(operation, set())


def model(
    image: SecurityImage, caller: tuple[str, str], operation: Operation, kind: int, name: str
) -> bool | None:
    """Return the decision; None if no ACL names the resource."""
    if caller[0] == "root":
        return True
    named = [acl for acl in image.acls.values() if matches(acl, kind, name)]
    if not named:
        return None
    found = [acl for acl in named if concerns(acl, image, *caller) and is_about(acl, operation)]
    kinds = {acl.permission_type for acl in found}
    return PermissionType.DENY not in kinds and PermissionType.ALLOW in kinds


def model_any(image: SecurityImage, caller: tuple[str, str], kind: int, *, opened: bool) -> bool:
    """Return whether a caller may write to any resource of a type, as KIP-679 says."""
    sample = model(image, caller, Operation.WRITE, kind, "hardcode")
    if opened if sample is None else sample:
        return True
    found = [
        acl
        for acl in image.acls.values()
        if acl.resource_type == kind
        and concerns(acl, image, *caller)
        and acl.operation in (Operation.WRITE, Operation.ALL)
    ]
    denies = [acl for acl in found if acl.permission_type == PermissionType.DENY]
    literal = {a.resource_name for a in denies if a.pattern_type == PatternType.LITERAL}
    prefixes = {a.resource_name for a in denies if a.pattern_type == PatternType.PREFIXED}
    allows = [acl for acl in found if acl.permission_type == PermissionType.ALLOW]
    if "*" in literal:
        return False
    for acl in allows:
        if acl.pattern_type == PatternType.LITERAL:
            if acl.resource_name == "*":
                return True
            if acl.resource_name in literal:
                continue
        if not any(acl.resource_name.startswith(prefix) for prefix in prefixes):
            return True
    return False


@settings(deadline=None, max_examples=300)
@given(records, st.booleans(), st.lists(operations, min_size=1, max_size=3), st.booleans())
def test_every_decision_is_that_of_the_model(
    changes: Sequence[SecurityRecord], opened: bool, asked: list[Operation], reload: bool
) -> None:
    authorizer = Authorizer(
        SecuritySettings(super_users=("User:root",), allow_everyone_if_no_acl=opened)
    )
    image = SecurityImage()
    callers = {
        (user, host): Caller(Principal("User", user), CLIENT_LISTENER, host)
        for user in USERS
        for host in ("10.0.0.1", "::1")
    }
    for change in changes:
        image.replay(change)
        authorizer.changed(None if reload else [change], image)
        for at, caller in callers.items():
            for operation in asked:
                for kind in TYPES:
                    wanted = right(operation, kind)
                    for name in ("a", "abcd", "c", "*"):
                        expected = model(image, at, operation, kind, name)
                        decision = opened if expected is None else expected
                        assert authorizer.allows(caller, wanted, name) == decision
                        assert authorizer.explain(caller, wanted, name).allowed == decision
    for at, caller in callers.items():
        write = right(Operation.WRITE, ResourceType.TOPIC)
        expected_any = model_any(image, at, ResourceType.TOPIC, opened=opened)
        assert authorizer.allows_on_any(caller, write) == expected_any
