"""The metadata records about security: credentials, ACLs, roles, quotas, tokens.

They are stored in the metadata log beside all others (`metadata_records.py`), so every broker of a
cluster has the same. Keys of credentials are the ones that a verifier needs, never a password.
"""

from dataclasses import dataclass, field

SCRAM_ITERATIONS_MIN = 4096
SCRAM_ITERATIONS_MAX = 16384
"""Kafka's limits: they bound how long a broker or client computes for one credential."""
USER_BYTES_MAX = 1024
"""The longest name of a user, in UTF-8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredentialChanged:
    """A user got a SCRAM credential for a mechanism, or a new one in place of the last."""

    user: str
    mechanism: str
    """SCRAM-SHA-256 or SCRAM-SHA-512."""
    salt: str = field(repr=False)
    """In hexadecimal digits, as the keys are."""
    stored_key: str = field(repr=False)
    server_key: str = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredentialRemoved:
    """A user lost the SCRAM credential for a mechanism."""

    user: str
    mechanism: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AclAdded:
    """An ACL was created. Enumerations are stored by Kafka's codes (`model/permissions.py`)."""

    acl_id: str
    resource_type: int
    pattern_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AclRemoved:
    """An ACL was deleted."""

    acl_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChanged:
    """A role has exactly these members, principals as `User:alice`; without members it is gone."""

    role: str
    members: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaChanged:
    """A quota of an entity was set, or removed if the value is None.

    The entity is one or two of `user`, `client-id` and `ip`, each with a name, or with None for
    the default of all that have no quota of their own.
    """

    entity: dict[str, str | None]
    key: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecretChanged:
    """The cluster got a secret that all of its brokers share, in hexadecimal digits."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenChanged:
    """A delegation token was created or renewed, or will expire at another time.

    The token's HMAC is not here: brokers derive it from the id and a secret of their settings.
    """

    token_id: str
    owner: str
    """The principal of a client with the token, as `User:alice`."""
    requester: str
    """The principal that created it."""
    renewers: list[str]
    """The principals that may renew it and let it expire, beside its owner."""
    issued_ms: int
    expires_ms: int
    """When it expires unless it is renewed, in wall-clock time."""
    ends_ms: int
    """The time beyond which it cannot be renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRemoved:
    """A delegation token expired."""

    token_id: str


SecurityRecord = (
    ScramCredentialChanged
    | ScramCredentialRemoved
    | AclAdded
    | AclRemoved
    | RoleChanged
    | ClientQuotaChanged
    | ClusterSecretChanged
    | DelegationTokenChanged
    | DelegationTokenRemoved
)
