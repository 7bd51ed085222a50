"""Which ACLs a filter of DescribeAcls or DeleteAcls matches (KIP-290)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from barnabas.metadata.security_records import AclAdded
from barnabas.model.permissions import Operation, PatternType, PermissionType, ResourceType

EVERY_NAME = "*"
"""The name of a literal pattern that matches every resource of its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """What ACLs must have in common; ANY and None match everything."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    """MATCH finds all patterns that a resource of this name is subject to."""
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission_type: int = PermissionType.ANY

    @property
    def problem(self) -> str | None:
        """The reason why the filter is invalid; None if it is valid."""
        kinds = (
            ("resource type", self.resource_type, ResourceType),
            ("pattern type", self.pattern_type, PatternType),
            ("operation", self.operation, Operation),
            ("permission type", self.permission_type, PermissionType),
        )
        for what, code, known in kinds:
            if code == 0 or code not in tuple(known):
                return f"{code} is no {what} that a filter can have"
        return None

    def among(self, acls: Iterable[AclAdded]) -> Iterator[AclAdded]:
        """Return the ACLs that the filter matches."""
        return filter(self.matches, acls)

    def matches(self, acl: AclAdded) -> bool:
        """Tell whether the filter matches an ACL."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission_type in (PermissionType.ANY, acl.permission_type)
        )

    def _matches_pattern(self, acl: AclAdded) -> bool:
        name = self.resource_name
        if self.pattern_type != PatternType.MATCH:
            has_type = self.pattern_type in (PatternType.ANY, acl.pattern_type)
            return has_type and name in (None, acl.resource_name)
        if name is None:
            return True
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, EVERY_NAME)
