"""The part of the metadata image about security: credentials, ACLs, roles, quotas, tokens.

An image and its forks share one `SecurityImage`. Before an image changes it, it takes a copy
(`copy`), unless no other image shares it. So nothing is copied for changes of other metadata.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from barnabas.metadata.security_records import (
    AclAdded,
    AclRemoved,
    ClientQuotaChanged,
    ClusterSecretChanged,
    DelegationTokenChanged,
    DelegationTokenRemoved,
    RoleChanged,
    ScramCredentialChanged,
    ScramCredentialRemoved,
    SecurityRecord,
)

Entity = tuple[tuple[str, str | None], ...]
"""The entity of a quota: pairs of an entity type and a name (None for the default), in order."""


def entity_of(named: dict[str, str | None]) -> Entity:
    """Return an entity as a key: its parts in the order of their types."""
    return tuple(sorted(named.items()))


@dataclass(slots=True)
class SecurityImage:
    """Credentials, rights and quotas: which clients may connect, and what they may do."""

    credentials: dict[tuple[str, str], ScramCredentialChanged] = field(default_factory=dict)
    """SCRAM credentials by user and mechanism."""
    acls: dict[str, AclAdded] = field(default_factory=dict)
    """ACLs by id, the oldest first."""
    roles: dict[str, list[str]] = field(default_factory=dict)
    """The members of each role, as `User:alice`."""
    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    """The quotas of each entity, by their keys."""
    tokens: dict[str, DelegationTokenChanged] = field(default_factory=dict)
    """Delegation tokens by id; expired ones stay until the controller removes them."""
    secret: str = field(default="", repr=False)
    """The secret that all brokers share, in hexadecimal digits."""
    owner: object = field(default=None, compare=False, repr=False)
    """The image that may change this object in place; other forks must copy it first."""

    def copy(self, owner: object) -> "SecurityImage":
        """Return a copy that an image may change."""
        return SecurityImage(
            dict(self.credentials),
            dict(self.acls),
            dict(self.roles),
            {entity: dict(quotas) for entity, quotas in self.quotas.items()},
            dict(self.tokens),
            self.secret,
            owner,
        )

    def replay(self, record: SecurityRecord) -> None:
        """Apply one record."""
        _REPLAYS[type(record)](self, record)

    def snapshot(self) -> Iterator[SecurityRecord]:
        """Return the fewest records that reproduce this part of the image."""
        if self.secret:
            yield ClusterSecretChanged(secret=self.secret)
        yield from self.credentials.values()
        yield from self.acls.values()
        for role, members in self.roles.items():
            yield RoleChanged(role=role, members=members)
        for entity, quotas in self.quotas.items():
            for key, value in quotas.items():
                yield ClientQuotaChanged(entity=dict(entity), key=key, value=value)

        yield from self.tokens.values()

    def _set_credential(self, record: ScramCredentialChanged) -> None:
        self.credentials[record.user, record.mechanism] = record

    def _remove_credential(self, record: ScramCredentialRemoved) -> None:
        self.credentials.pop((record.user, record.mechanism), None)

    def _add_acl(self, record: AclAdded) -> None:
        self.acls[record.acl_id] = record

    def _remove_acl(self, record: AclRemoved) -> None:
        self.acls.pop(record.acl_id, None)

    def _change_role(self, record: RoleChanged) -> None:
        if record.members:
            self.roles[record.role] = list(record.members)
        else:
            self.roles.pop(record.role, None)

    def _change_quota(self, record: ClientQuotaChanged) -> None:
        entity = entity_of(record.entity)
        quotas = self.quotas.setdefault(entity, {})
        if record.value is None:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self.quotas[entity]

    def _change_secret(self, record: ClusterSecretChanged) -> None:
        self.secret = record.secret

    def _set_token(self, record: DelegationTokenChanged) -> None:
        self.tokens[record.token_id] = record

    def _remove_token(self, record: DelegationTokenRemoved) -> None:
        self.tokens.pop(record.token_id, None)


_REPLAYS: dict[type[SecurityRecord], Callable[[SecurityImage, Any], None]] = {
    ScramCredentialChanged: SecurityImage._set_credential,
    ScramCredentialRemoved: SecurityImage._remove_credential,
    AclAdded: SecurityImage._add_acl,
    AclRemoved: SecurityImage._remove_acl,
    RoleChanged: SecurityImage._change_role,
    ClientQuotaChanged: SecurityImage._change_quota,
    ClusterSecretChanged: SecurityImage._change_secret,
    DelegationTokenChanged: SecurityImage._set_token,
    DelegationTokenRemoved: SecurityImage._remove_token,
}
SECURITY_KINDS = tuple(_REPLAYS)
"""The types of the records that this part of the image replays."""
