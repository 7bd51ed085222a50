"""The server's end of OAUTHBEARER (RFC 7628, KIP-255).

    client: n,a=<authorization id>,^Aauth=Bearer <token>^A^A
    server: an empty message

A bad token gets an error document. The client answers it with ^A, and then gets the error. The
session ends when its token expires.
"""

import re
from collections.abc import Callable

from barnabas.model.callers import Principal
from barnabas.model.steps import Steps
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Proven, Reply
from barnabas.security.oauth_keys import TokenKeys, TokenRules, check_token
from barnabas.security.scram import USER
from barnabas.security.scram_formulas import parse_gs2_header

NAME = "OAUTHBEARER"
INVALID_TOKEN = b'{"status":"invalid_token"}'
_PAIRS = re.compile(rb"\x01((?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)*)\x01")
_BEARER = re.compile(rb"[Bb]earer +([-_.~+/A-Za-z0-9]+=*) *")


class OauthExchange:
    """One authentication with OAUTHBEARER."""

    def __init__(
        self, keys: TokenKeys, rules: TokenRules, clocks: Callable[[], tuple[int, int]]
    ) -> None:
        """Take a function that returns the monotonic clock and the wall clock."""
        self._keys = keys
        self._rules = rules
        self._clocks = clocks
        self._failure: AuthenticationFailedError | None = None

    def reply(self, token: bytes) -> Steps[Reply]:
        """Check the token in the client's message."""
        yield from ()  # a signature takes 0.1 ms, so no thread is needed
        if self._failure is not None:  # the client's answer to the error document
            raise self._failure
        authorization_id, bearer = _parse(token)
        try:
            checked = check_token(bearer, self._keys, self._rules, *self._clocks())
        except AuthenticationFailedError as failure:
            self._failure = failure
            return Reply(INVALID_TOKEN)
        if authorization_id not in (None, checked.name):
            raise AuthenticationFailedError("the client asks to act as another user")
        return Reply(b"", Proven(Principal(USER, checked.name), checked.lifetime_ms))


def _parse(message: bytes) -> tuple[str | None, bytes]:
    header, authorization_id = parse_gs2_header(message)
    found = _PAIRS.fullmatch(message[len(header) :])
    if found is None:
        raise AuthenticationFailedError("the message is not one of OAUTHBEARER")
    pairs = [pair.split(b"=", 1) for pair in found[1].split(b"\x01") if pair]
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise AuthenticationFailedError("the message says something twice")
    bearer = _BEARER.fullmatch(dict(pairs).get(b"auth", b""))
    if bearer is None:
        raise AuthenticationFailedError("the message has no bearer token")
    return authorization_id, bearer[1]
