"""An index of the ACLs of one type of resource, by name, prefix and principal.

Operations are bits of a number. The operations that an ALLOW implies are added to its bits when it
is added, so a decision checks the ACLs of a pattern and a principal with one operation on numbers.
Each kind of pattern has a dictionary: literal names (`*` is one of them) and prefixes. The prefixes
of a name are looked up by the lengths that occur.
"""

from collections import Counter
from collections.abc import Iterator

from barnabas.metadata.acl_filter import EVERY_NAME
from barnabas.metadata.security_records import AclAdded
from barnabas.model.permissions import Operation, PatternType, PermissionType
from barnabas.security.hosts import EVERY_HOST, folded_host

EVERY_OPERATION = -1
"""All bits."""

DESCRIBE_BIT = 1 << Operation.DESCRIBE
IMPLIED = {
    Operation.READ: DESCRIBE_BIT,
    Operation.WRITE: DESCRIBE_BIT,
    Operation.DELETE: DESCRIBE_BIT,
    Operation.ALTER: DESCRIBE_BIT,
    Operation.ALTER_CONFIGS: 1 << Operation.DESCRIBE_CONFIGS,
}
"""The operations that an ALLOW implies. A DENY implies none."""


def operations_of(acl: AclAdded) -> int:
    """Return the operations that an ACL is about, as bits."""
    if acl.operation == Operation.ALL:
        return EVERY_OPERATION
    bits = 1 << acl.operation
    if acl.permission_type == PermissionType.ALLOW:
        bits |= IMPLIED.get(Operation(acl.operation), 0)
    return bits


class PrincipalAcls:
    """The ACLs of one pattern and one principal."""

    __slots__ = ("acls", "allowed", "by_host", "denied")

    def __init__(self) -> None:
        self.acls: dict[str, AclAdded] = {}
        """By their ids, the oldest first."""
        self.denied = 0
        self.allowed = 0
        self.by_host: dict[str, tuple[int, int]] = {}
        """The denied and allowed operations of each host that an ACL names."""

    def derive(self) -> None:
        """Put the ACLs together."""
        self.denied = self.allowed = 0
        by_host: dict[str, tuple[int, int]] = {}
        for acl in self.acls.values():
            bits = operations_of(acl)
            denied, allowed = (bits, 0) if acl.permission_type == PermissionType.DENY else (0, bits)
            if acl.host == EVERY_HOST:
                self.denied |= denied
                self.allowed |= allowed
            else:
                host = folded_host(acl.host)
                before = by_host.get(host, (0, 0))
                by_host[host] = before[0] | denied, before[1] | allowed
        self.by_host = by_host

    def deciding(self, bit: int, host: str) -> Iterator[AclAdded]:
        """Return the ACLs that decide about an operation from a host."""
        for acl in self.acls.values():
            if operations_of(acl) & bit and (
                acl.host == EVERY_HOST or folded_host(acl.host) == host
            ):
                yield acl


Pattern = dict[str, PrincipalAcls]
"""The ACLs of one pattern, by principal."""


class AclIndex:
    """The ACLs of one type of resource."""

    __slots__ = ("_counts", "_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, Pattern] = {}
        self._prefixed: dict[str, Pattern] = {}
        self._counts: Counter[int] = Counter()
        self._lengths: tuple[int, ...] = ()
        """The lengths of the prefixes."""

    def add(self, acl: AclAdded) -> None:
        """Add an ACL."""
        patterns, name = self._patterns(acl), acl.resource_name
        pattern = patterns.get(name)
        if pattern is None:
            pattern = patterns[name] = {}
            if patterns is self._prefixed:
                self._count(len(name), 1)
        entry = pattern.get(acl.principal)
        if entry is None:
            entry = pattern[acl.principal] = PrincipalAcls()
        entry.acls[acl.acl_id] = acl
        entry.derive()

    def remove(self, acl: AclAdded) -> None:
        """Remove an ACL that was added."""
        patterns, name = self._patterns(acl), acl.resource_name
        pattern = patterns[name]
        entry = pattern[acl.principal]
        del entry.acls[acl.acl_id]
        entry.derive()
        if entry.acls:
            return
        del pattern[acl.principal]
        if not pattern:
            del patterns[name]
            if patterns is self._prefixed:
                self._count(len(name), -1)

    def about(self, name: str) -> list[Pattern]:
        """Return the patterns that a resource is subject to."""
        found = []
        literal = self._literal
        pattern = literal.get(name)
        if pattern is not None:
            found.append(pattern)
        pattern = literal.get(EVERY_NAME)
        if pattern is not None and name != EVERY_NAME:
            found.append(pattern)
        prefixed, size = self._prefixed, len(name)
        for length in self._lengths:
            if length > size:
                break
            pattern = prefixed.get(name[:length])
            if pattern is not None:
                found.append(pattern)
        return found

    def literal_patterns(self) -> Iterator[tuple[str, Pattern]]:
        """Return all literal names with their ACLs."""
        yield from self._literal.items()

    def prefixed_patterns(self) -> Iterator[tuple[str, Pattern]]:
        """Return all prefixes with their ACLs."""
        yield from self._prefixed.items()

    def _patterns(self, acl: AclAdded) -> dict[str, Pattern]:
        return self._prefixed if acl.pattern_type == PatternType.PREFIXED else self._literal

    def _count(self, length: int, by: int) -> None:
        self._counts[length] += by
        if not self._counts[length]:
            del self._counts[length]
        self._lengths = tuple(sorted(self._counts))
