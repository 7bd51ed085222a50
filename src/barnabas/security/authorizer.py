"""Decides what callers may do, as Kafka's StandardAuthorizer does (KIP-11, KIP-290, KIP-679).

The decision about one operation of a caller on one resource:

1.  A super user may do everything.
2.  The ACLs that count name the resource (literally, by a prefix, or all by `*`), the caller (its
    principal, `User:*`, or a role that it has), its host or `*`, and the operation. One DENY among
    them denies; otherwise one ALLOW allows.
3.  Without any, the caller is denied. With `allow_everyone_if_no_acl` it is allowed if no ACL at
    all, of any principal, names the resource.

To write to the audit topic a client needs an ALLOW for its exact name: an ALLOW by a prefix or `*`,
or `allow_everyone_if_no_acl`, is not enough.

Roles are principals of type Role; their members are in the metadata. A role is not a super user.

A broker that calls over the listener for brokers may do everything, since only brokers can connect
to that listener. A request that a broker forwards for a client is decided for that client
(`Envelope`).

The authorizer changes with committed metadata (`changed`). Then everything that was derived from
its decisions is invalid: its own cache, and the caches of others (`version`, `on_change`).
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple
from weakref import WeakValueDictionary

from barnabas.metadata.acl_filter import EVERY_NAME
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import AclAdded, AclRemoved, RoleChanged
from barnabas.model.callers import Caller
from barnabas.model.permissions import (
    SUPPORTED_OPERATIONS,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    Right,
    right,
)
from barnabas.model.security_settings import SecuritySettings
from barnabas.security.acl_index import AclIndex, Pattern, PrincipalAcls
from barnabas.security.hosts import folded_host

WRITE_TOPIC = right(Operation.WRITE, ResourceType.TOPIC)
EVERY_USER = "User:*"
"""The principal of ACLs that apply to every principal of any type."""
ROLE = "Role"
REMEMBERED_MAX = 100_000
"""How many decisions are remembered for all callers together: about 30 MB."""
NAME_CHARACTERS_MAX = 255
"""Decisions about longer names are not remembered. Names of topics are shorter."""
SAMPLE_NAME = "hardcode"
"""The name that Kafka asks about to find out what a caller may do to a resource that no ACL names
(KIP-679)."""


class Why(Enum):
    """The kind of rule that decided."""

    PEER = "brokers may do everything on the listener for brokers"
    SUPER_USER = "the principal is a super user"
    DENY_ACL = "an ACL denies it"
    ALLOW_ACL = "an ACL allows it"
    NO_MATCHING_ACL = "no ACL allows it"
    OPEN_RESOURCE = "no ACL names the resource, and allow_everyone_if_no_acl is on"
    AUDIT_TOPIC = "no ACL for this very name allows clients to write to the audit topic"


class Verdict(NamedTuple):
    """A decision, with its reason."""

    allowed: bool
    why: Why
    acl: AclAdded | None = None


class Identity(NamedTuple):
    """The part of a caller that decisions depend on."""

    principal: str
    host: str
    """The host, as `folded_host` returns it."""
    is_peer: bool


class _Known(dict[tuple[int, str], bool]):
    """The decisions about one identity so far, and the facts for further ones."""

    __slots__ = ("__weakref__", "host", "is_trusted", "principal", "principals")

    def __init__(self, identity: Identity, *, is_trusted: bool) -> None:
        super().__init__()
        self.principal = identity.principal
        self.host = identity.host
        self.is_trusted = is_trusted
        """Whether everything is allowed."""
        self.principals: tuple[str, ...] = ()
        """The principals whose ACLs apply, including roles."""


class Authorizer:
    """Decides what callers may do."""

    def __init__(self, settings: SecuritySettings) -> None:
        self._super_users = frozenset(settings.super_users)
        self._open = settings.allow_everyone_if_no_acl
        self._audit_topic = settings.audit_topic
        self._by_type: dict[int, AclIndex] = {}
        self._by_id: dict[str, AclAdded] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._roles: dict[str, tuple[str, ...]] = {}
        """The roles of each principal, as principals."""
        self._known: WeakValueDictionary[Identity, _Known] = WeakValueDictionary()
        self._known_count = 0
        self.version = 0
        """Increases whenever decisions may have changed."""
        self.on_change: list[Callable[[], None]] = []
        """Functions that are called after each such change."""

    def changed(self, records: Sequence[MetadataRecord] | None, security: SecurityImage) -> None:
        """Apply committed records; None says that everything may be different."""
        if records is None:
            self._load(security)
        else:
            concerning = [r for r in records if isinstance(r, AclAdded | AclRemoved | RoleChanged)]
            if not concerning:
                return
            for record in concerning:
                self._take(record)
        self.version += 1
        self._forget_decisions()
        for listener in self.on_change:
            listener()

    def allows(self, caller: Caller, wanted: Right, name: str) -> bool:
        """Tell whether a caller may do something to a resource."""
        remembered = caller.remembered
        known = remembered.decisions if remembered.owner is self else self._known_of(caller)
        decision = known.get((wanted.code, name))
        if decision is None:
            decided = self._known_of(caller)
            decision = self._decide(decided, wanted, name)
            self._remember(decided, (wanted.code, name), decision=decision)
        return decision

    def allows_on_any(self, caller: Caller, wanted: Right) -> bool:
        """Tell whether a caller may do something to any resource of a type (KIP-679)."""
        if self.allows(caller, wanted, SAMPLE_NAME):
            return True
        index = self._by_type.get(wanted.resource)
        if index is None:
            return False
        known = self._known_of(caller)
        principals, host = known.principals, known.host
        bit = wanted.bit | 1 << Operation.ALL  # no operation is implied here, as in Kafka
        literal = _Names(index.literal_patterns(), principals, host, bit)
        if EVERY_NAME in literal.denied:
            return False
        if EVERY_NAME in literal.allowed:
            return True
        prefixed = _Names(index.prefixed_patterns(), principals, host, bit)
        candidates = [*(literal.allowed - literal.denied), *prefixed.allowed]
        return any(not _is_covered(name, prefixed.denied) for name in candidates)

    def operations(self, caller: Caller, resource: ResourceType, name: str) -> int:
        """Return what a caller may do to a resource, as Kafka's bits."""
        bits = 0
        for operation in SUPPORTED_OPERATIONS[resource]:
            if self.allows(caller, right(operation, resource), name):
                bits |= 1 << operation
        return bits

    def explain(self, caller: Caller, wanted: Right, name: str) -> Verdict:
        """Return a decision with its reason, and the ACL that decided if one did."""
        known = self._known_of(caller)
        if known.is_trusted:
            why = Why.PEER if caller.listener.is_peer else Why.SUPER_USER
            return Verdict(allowed=True, why=why)
        return self._explain(known, wanted, name)

    def _explain(self, known: _Known, wanted: Right, name: str) -> Verdict:
        """Return a decision about a caller that is not trusted, with its reason."""
        patterns = self._about(wanted, name)
        forges_audit = self._writes_to_audit_topic(wanted, name)
        if not patterns and self._open and not forges_audit:
            return Verdict(allowed=True, why=Why.OPEN_RESOURCE)
        found = [
            acl
            for entry in _entries(patterns, known.principals)
            for acl in entry.deciding(wanted.bit, known.host)
        ]
        for acl in found:
            if acl.permission_type == PermissionType.DENY:
                return Verdict(allowed=False, why=Why.DENY_ACL, acl=acl)
        if forges_audit:
            found = [acl for acl in found if _names_literally(acl, name)]
        if found:
            return Verdict(allowed=True, why=Why.ALLOW_ACL, acl=found[0])
        why = Why.AUDIT_TOPIC if forges_audit else Why.NO_MATCHING_ACL
        return Verdict(allowed=False, why=why)

    def roles_of(self, principal: str) -> tuple[str, ...]:
        """Return the roles of a principal, as principals."""
        return self._roles.get(principal, ())

    def _decide(self, known: _Known, wanted: Right, name: str) -> bool:
        """Return the decision of `explain` faster, without its reason."""
        if known.is_trusted:
            return True
        if self._writes_to_audit_topic(wanted, name):
            return self._explain(known, wanted, name).allowed
        patterns = self._about(wanted, name)
        if not patterns:
            return self._open
        bit, host, is_allowed = wanted.bit, known.host, 0
        for pattern in patterns:
            for principal in known.principals:
                entry = pattern.get(principal)
                if entry is None:
                    continue
                if entry.denied & bit:
                    return False
                is_allowed |= entry.allowed & bit
                if entry.by_host and host in entry.by_host:
                    denied, allowed = entry.by_host[host]
                    if denied & bit:
                        return False
                    is_allowed |= allowed & bit
        return is_allowed != 0

    def _writes_to_audit_topic(self, wanted: Right, name: str) -> bool:
        """Tell whether a caller wants to write to the audit topic."""
        return name == self._audit_topic and wanted.code == WRITE_TOPIC.code

    def _about(self, wanted: Right, name: str) -> list[Pattern]:
        """Return the patterns of ACLs that a resource is subject to."""
        index = self._by_type.get(wanted.resource)
        return [] if index is None else index.about(name)

    def _take(self, record: AclAdded | AclRemoved | RoleChanged) -> None:
        match record:
            case AclAdded():
                self._drop(record.acl_id)
                self._by_id[record.acl_id] = record
                self._by_type.setdefault(record.resource_type, AclIndex()).add(record)
            case AclRemoved():
                self._drop(record.acl_id)
            case RoleChanged():
                if record.members:
                    self._members[record.role] = tuple(record.members)
                else:
                    self._members.pop(record.role, None)
                self._derive_roles()

    def _drop(self, acl_id: str) -> None:
        known = self._by_id.pop(acl_id, None)
        if known is not None:
            self._by_type[known.resource_type].remove(known)

    def _load(self, security: SecurityImage) -> None:
        self._by_type.clear()
        self._by_id.clear()
        for acl in security.acls.values():
            self._take(acl)
        self._members = {role: tuple(members) for role, members in security.roles.items()}
        self._derive_roles()

    def _derive_roles(self) -> None:
        roles: dict[str, list[str]] = {}
        for role, members in self._members.items():
            for member in dict.fromkeys(members):
                roles.setdefault(member, []).append(f"{ROLE}:{role}")
        self._roles = {principal: tuple(names) for principal, names in roles.items()}

    def _known_of(self, caller: Caller) -> _Known:
        """Return the cached facts about a caller; connections of one identity share them."""
        remembered = caller.remembered
        if remembered.owner is self:
            assert isinstance(remembered.decisions, _Known)
            return remembered.decisions
        is_peer = caller.listener.is_peer
        identity = Identity(str(caller.principal), folded_host(caller.host), is_peer)
        known = self._known.get(identity)
        if known is None:
            is_trusted = is_peer or identity.principal in self._super_users
            known = self._known[identity] = _Known(identity, is_trusted=is_trusted)
            known.principals = self._principals(known.principal)
        remembered.decisions, remembered.owner = known, self
        return known

    def _principals(self, principal: str) -> tuple[str, ...]:
        """Return the principals whose ACLs apply to a principal."""
        return (principal, EVERY_USER, *self._roles.get(principal, ()))

    def _remember(self, known: _Known, key: tuple[int, str], *, decision: bool) -> None:
        if len(key[1]) > NAME_CHARACTERS_MAX:
            return
        if self._known_count >= REMEMBERED_MAX:
            self._forget_decisions()
        self._known_count += 1
        known[key] = decision

    def _forget_decisions(self) -> None:
        self._known_count = 0
        for known in list(self._known.values()):
            known.clear()
            known.principals = self._principals(known.principal)


class _Names:
    """The names of patterns that are denied and allowed to some principals from a host."""

    def __init__(
        self,
        patterns: Iterable[tuple[str, Pattern]],
        principals: Sequence[str],
        host: str,
        bit: int,
    ) -> None:
        self.denied: set[str] = set()
        self.allowed: set[str] = set()
        for name, pattern in patterns:
            for entry in _entries([pattern], principals):
                for acl in entry.deciding(bit, host):
                    if not 1 << acl.operation & bit:
                        continue  # the ACL only implies the operation
                    denies = acl.permission_type == PermissionType.DENY
                    (self.denied if denies else self.allowed).add(name)


def _names_literally(acl: AclAdded, name: str) -> bool:
    """Tell whether an ACL is for exactly this name."""
    return acl.pattern_type == PatternType.LITERAL and acl.resource_name == name


def _is_covered(name: str, prefixes: set[str]) -> bool:
    """Tell whether one of the prefixes is a prefix of a name."""
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))


def _entries(patterns: Sequence[Pattern], principals: Sequence[str]) -> list[PrincipalAcls]:
    return [
        entry
        for pattern in patterns
        for principal in principals
        if (entry := pattern.get(principal)) is not None
    ]
