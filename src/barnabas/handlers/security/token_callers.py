"""Checks which clients may manage delegation tokens at all, whatever the ACLs allow (KIP-48).

An anonymous client has no user that could own a token. A client that authenticated with a token may
not manage tokens, since it could create new ones before the old ones expire, without end.
"""

from barnabas.handlers.context import RequestContext
from barnabas.model.callers import ANONYMOUS, Principal
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.node.node import Node

NEVER_MS = -1
"""The time in a response about no token, as in Kafka."""
REQUESTER_FROM = 3
"""From this version on responses name the requester of a token (KIP-373)."""


def check_caller(context: RequestContext) -> None:
    """Raise `ApiError` for a client that may not manage delegation tokens.

    A request that another broker sends on its own behalf, outside of an Envelope, names no client.
    """
    caller = context.caller
    if caller.principal == ANONYMOUS or caller.principal.is_by_token or caller.listener.is_peer:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def check_enabled(node: Node) -> None:
    """Raise `ApiError` if the broker has no secret for delegation tokens."""
    if not node.authentication.signer.is_enabled:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)


def parts_of(principal: str) -> Principal:
    """Return a principal that is stored as text."""
    kind, _, name = principal.partition(":")
    return Principal(kind, name)


def time_of(error: ApiError) -> int:
    """Return the expiry in a refusal to renew or to expire a token, as in Kafka."""
    return NEVER_MS if error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0
