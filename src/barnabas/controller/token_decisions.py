"""Decides on changes of delegation tokens, with Kafka's rules (`DelegationTokenControlManager`).

    created -> renewed by its owner or a renewer, as often as they like, never beyond its end
            -> expired by them, or by time; the controller removes it

A token authenticates its owner. Creating one for another principal is written to the audit log.
"""

from collections.abc import Collection
from typing import NamedTuple

from barnabas.metadata.features import SECURITY_LEVEL
from barnabas.metadata.image import Image
from barnabas.metadata.security_records import (
    USER_BYTES_MAX,
    DelegationTokenChanged,
    DelegationTokenRemoved,
)
from barnabas.model.callers import Principal
from barnabas.model.errors import ApiError, ErrorCode

RENEWERS_MAX = 100
TOKENS_OF_REQUESTER_MAX = 1000
"""How many tokens of one requester there are at the same time."""
REMOVED_AT_ONCE_MAX = 1000
USER = "User"


class TokenTimes(NamedTuple):
    """How long tokens can be used, by the settings."""

    max_lifetime_ms: int
    expiry_ms: int
    """Before it must be renewed."""


class TokenWanted(NamedTuple):
    """A token that a client asks for."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: list[Principal]
    lifetime_ms: int
    """0 or less for the longest."""


def create_token(
    image: Image, wanted: TokenWanted, times: TokenTimes, now_ms: int
) -> DelegationTokenChanged:
    """Return the record of a new token."""
    _check_level(image)
    for named in (wanted.owner, *wanted.renewers):
        _check_name(named)
    if len(wanted.renewers) > RENEWERS_MAX:
        problem = f"a token has {RENEWERS_MAX} renewers at most"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    requester = str(wanted.requester)
    own = sum(each.requester == requester for each in image.security.tokens.values())
    if own >= TOKENS_OF_REQUESTER_MAX:
        problem = f"{requester} has {own} delegation tokens; let some expire"
        raise ApiError(ErrorCode.POLICY_VIOLATION, problem)
    ends_ms = now_ms + _shortest(times.max_lifetime_ms, wanted.lifetime_ms)
    return DelegationTokenChanged(
        token_id=wanted.token_id,
        owner=str(wanted.owner),
        requester=requester,
        renewers=list(dict.fromkeys(map(str, wanted.renewers))),
        issued_ms=now_ms,
        expires_ms=min(ends_ms, now_ms + times.expiry_ms),
        ends_ms=ends_ms,
    )


def renew_token(
    image: Image,
    token_id: str | None,
    caller: Principal,
    period_ms: int,
    times: TokenTimes,
    now_ms: int,
) -> DelegationTokenChanged:
    """Return the record of a token that expires later; 0 or less is the longest period."""
    token = _find(image, token_id)
    _check_time(token, now_ms)
    _check_owner(token, caller)
    expires_ms = now_ms + _shortest(times.expiry_ms, period_ms)
    return _expiring(token, min(token.ends_ms, expires_ms))


def expire_token(
    image: Image, token_id: str | None, caller: Principal, period_ms: int, now_ms: int
) -> DelegationTokenChanged | DelegationTokenRemoved:
    """Return the record of a token that expires after a period; at once if that is negative.

    As in Kafka, the owner of a token that has expired may still remove it.
    """
    token = _find(image, token_id)
    _check_owner(token, caller)
    if period_ms < 0:
        return DelegationTokenRemoved(token_id=token.token_id)
    _check_time(token, now_ms)
    return _expiring(token, min(token.ends_ms, now_ms + period_ms))


def expired_tokens(image: Image, now_ms: int) -> list[DelegationTokenRemoved]:
    """Return records that remove tokens that have expired; the rest is for the next time."""
    gone = [
        DelegationTokenRemoved(token_id=token.token_id)
        for token in image.security.tokens.values()
        if token.expires_ms <= now_ms
    ]
    return gone[:REMOVED_AT_ONCE_MAX]


def may_renew(token: DelegationTokenChanged, names: Collection[str]) -> bool:
    """Tell whether one of these principals owns a token, or may renew it."""
    return token.owner in names or any(each in names for each in token.renewers)


def _check_level(image: Image) -> None:
    if image.feature_level < SECURITY_LEVEL:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"delegation tokens need feature level {SECURITY_LEVEL}; finalize it with "
            "`barnabas cluster upgrade` once all brokers run this release",
        )


def _check_name(named: Principal) -> None:
    if named.kind != USER:
        problem = f"{named} is not a user; tokens are for users"
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, problem)
    if not named.name or "\0" in named.name or len(named.name.encode()) > USER_BYTES_MAX:
        problem = f"name a user, in {USER_BYTES_MAX} bytes at most"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


def _find(image: Image, token_id: str | None) -> DelegationTokenChanged:
    _check_level(image)
    token = None if token_id is None else image.security.tokens.get(token_id)
    if token is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_time(token: DelegationTokenChanged, now_ms: int) -> None:
    if token.expires_ms <= now_ms:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_owner(token: DelegationTokenChanged, caller: Principal) -> None:
    if not may_renew(token, (str(caller),)):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _shortest(limit_ms: int, wanted_ms: int) -> int:
    return min(limit_ms, wanted_ms) if wanted_ms > 0 else limit_ms


def _expiring(token: DelegationTokenChanged, expires_ms: int) -> DelegationTokenChanged:
    return DelegationTokenChanged(
        token_id=token.token_id,
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issued_ms=token.issued_ms,
        expires_ms=expires_ms,
        ends_ms=token.ends_ms,
    )
