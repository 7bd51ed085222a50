"""Delegation tokens: create, list, renew and expire them (KIP-48)."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.admin.access.acl_words import parse_principal
from barnabas.admin.admin_errors import AdminError
from barnabas.model.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.wire.cluster_wire import NOT_YET, Wire, settled

AT_ONCE_MS = -1
LONGEST_MS = -1
REMEDIES = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the brokers have no secret for delegation tokens; "
    "set security.delegation_token_secret_file on all of them",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in with a password or a certificate; "
    "neither anonymous clients nor those with a delegation token manage tokens",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "a token for another user needs the ACL "
    "`barnabas acl add User:YOU create-tokens user:User:OWNER`",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only its owner and its renewers may do that",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "it has expired; create another one",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such token",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "owner and renewers are users; write User:alice",
    ErrorCode.POLICY_VIOLATION: "you have too many tokens; let some expire",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A delegation token. Times are milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    hmac: bytes = field(repr=False)

    @property
    def password(self) -> str:
        """The password of a client that authenticates with the token."""
        return base64.b64encode(self.hmac).decode()


def create(
    wire: Wire, owner: str | None, renewers: Iterable[str], lifetime_ms: int = LONGEST_MS
) -> Token:
    """Create a token; without an owner, the client itself is the owner."""
    kind, name = (None, None) if owner is None else _parts(owner)
    named = [_parts(each) for each in renewers]
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[CreatableRenewers(principal_type=k, principal_name=n) for k, n in named],
        max_lifetime_ms=lifetime_ms,
    )

    def ask() -> tuple[int, CreateDelegationTokenResponse]:
        answer = wire.ask_any(request, CreateDelegationTokenResponse)
        return _passing(answer.error_code, "The token was not created"), answer

    made = settled(ask, "The token was not created")
    requester = f"{made.token_requester_principal_type}:{made.token_requester_principal_name}"
    return Token(
        token_id=made.token_id,
        owner=f"{made.principal_type}:{made.principal_name}",
        requester=requester,
        renewers=tuple(f"{k}:{n}" for k, n in named),
        issued_ms=made.issue_timestamp_ms,
        expires_ms=made.expiry_timestamp_ms,
        ends_ms=made.max_timestamp_ms,
        hmac=bytes(made.hmac),
    )


def tokens(wire: Wire, owners: Iterable[str] | None = None) -> list[Token]:
    """Return the tokens that the client may see, of some owners or of all, the oldest first."""
    named = None
    if owners is not None:
        parts = [_parts(each) for each in owners]
        named = [DescribeDelegationTokenOwner(principal_type=k, principal_name=n) for k, n in parts]
    request = DescribeDelegationTokenRequest(owners=named)
    answer = wire.ask_any(request, DescribeDelegationTokenResponse)
    _refuse(answer.error_code, "The tokens cannot be listed")
    found = [
        Token(
            token_id=each.token_id,
            owner=f"{each.principal_type}:{each.principal_name}",
            requester=f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            renewers=tuple(f"{r.principal_type}:{r.principal_name}" for r in each.renewers),
            issued_ms=each.issue_timestamp,
            expires_ms=each.expiry_timestamp,
            ends_ms=each.max_timestamp,
            hmac=bytes(each.hmac),
        )
        for each in answer.tokens
    ]
    return sorted(found, key=lambda token: (token.issued_ms, token.token_id))


def renew(wire: Wire, token_id: str, period_ms: int = LONGEST_MS) -> int:
    """Renew a token; return when it expires, in milliseconds since 1970."""
    request = RenewDelegationTokenRequest(
        hmac=_find(wire, token_id).hmac, renew_period_ms=period_ms
    )
    return _changed(wire, request, RenewDelegationTokenResponse, "renewed")


def expire(wire: Wire, token_id: str, period_ms: int = AT_ONCE_MS) -> int:
    """Make a token expire sooner; return when, in milliseconds since 1970."""
    request = ExpireDelegationTokenRequest(
        hmac=_find(wire, token_id).hmac, expiry_time_period_ms=period_ms
    )
    return _changed(wire, request, ExpireDelegationTokenResponse, "expired")


Changed = type[RenewDelegationTokenResponse] | type[ExpireDelegationTokenResponse]


def _changed(wire: Wire, request: Message, expected: Changed, what: str) -> int:
    failure = f"The token was not {what}"

    def ask() -> tuple[int, int]:
        answer = wire.ask_any(request, expected)
        return _passing(answer.error_code, failure), answer.expiry_timestamp_ms

    return settled(ask, failure)


def _find(wire: Wire, token_id: str) -> Token:
    """Return a token with its HMAC, so that users need not store it for this."""
    found = next((token for token in tokens(wire) if token.token_id == token_id), None)
    if found is None:
        raise AdminError(
            f"There is no token {token_id} that you may see; `barnabas token list` lists yours"
        )
    return found


def _passing(code: int, what: str) -> int:
    """Return a temporary error code, or none; raise for all others."""
    if code not in NOT_YET:
        _refuse(code, what)
    return code


def _refuse(code: int, what: str) -> None:
    if code == ErrorCode.NONE:
        return
    known = next((each for each in REMEDIES if each == code), None)
    remedy = f"error {code}" if known is None else REMEDIES[known]
    raise AdminError(f"{what}: {remedy}")


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = parse_principal(principal).partition(":")
    return kind, name
