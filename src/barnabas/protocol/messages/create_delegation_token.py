"""CreateDelegationTokenRequest and CreateDelegationTokenResponse."""

# Written by tools/generate_messages.py; edit that instead.

from __future__ import annotations

from barnabas.protocol.message import FRESH, Message


class CreatableRenewers(Message):
    """Part of CreateDelegationTokenRequest."""

    __slots__ = (
        "principal_type",
        "principal_name",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "principal_type string 0+",
        "principal_name string 0+",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Message):
    """Create delegation token request, versions 1-3, flexible from 2."""

    __slots__ = (
        "owner_principal_type",
        "owner_principal_name",
        "renewers",
        "max_lifetime_ms",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "owner_principal_type string 3+ nullable=3+",
        "owner_principal_name string 3+ nullable=3+",
        "renewers []CreatableRenewers 0+",
        "max_lifetime_ms int64 0+",
    )

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = FRESH,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers: list[CreatableRenewers] = [] if renewers is FRESH else renewers
        self.max_lifetime_ms = max_lifetime_ms


class CreateDelegationTokenResponse(Message):
    """Create delegation token response, versions 1-3, flexible from 2."""

    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    VERSIONS = (1, 3)
    FLEXIBLE_FROM = 2
    FIELDS = (
        "error_code int16 0+",
        "principal_type string 0+",
        "principal_name string 0+",
        "token_requester_principal_type string 3+",
        "token_requester_principal_name string 3+",
        "issue_timestamp_ms int64 0+",
        "expiry_timestamp_ms int64 0+",
        "max_timestamp_ms int64 0+",
        "token_id string 0+",
        "hmac bytes 0+",
        "throttle_time_ms int32 0+",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
