"""The client's end of SASL, for one link: PLAIN, SCRAM and OAUTHBEARER.

Messages contain no secrets: they name the mechanism and the user, never a password.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.scram_client import ScramClient
from barnabas.security.scram_formulas import NONCE_BYTES, SCRAM_BY_NAME
from barnabas.wire.wire_failures import LinkError, LoginError

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
MECHANISMS = (*SCRAM_BY_NAME, PLAIN, OAUTHBEARER)

Handshake = Callable[[SaslHandshakeRequest], SaslHandshakeResponse]
Authenticate = Callable[[SaslAuthenticateRequest], SaslAuthenticateResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The identity of a client, and how it proves it."""

    mechanism: str
    user: str = ""
    password: str = field(default="", repr=False)
    has_token: bool = False
    """Whether user and password are the id and the HMAC of a delegation token."""
    token: Callable[[], str] | None = field(default=None, repr=False)
    """Returns a token for OAUTHBEARER."""

    def log_in(self, address: str, handshake: Handshake, authenticate: Authenticate) -> int:
        """Authenticate; return the length of the session in milliseconds, 0 for no limit."""
        offered = handshake(SaslHandshakeRequest(mechanism=self.mechanism))
        self._require_mechanism(address, offered)
        lifetime_ms = 0

        def send(token: bytes) -> bytes:
            nonlocal lifetime_ms
            answer = authenticate(SaslAuthenticateRequest(auth_bytes=token))
            if answer.error_code:
                raise self._refused(address, answer)
            lifetime_ms = answer.session_lifetime_ms
            return bytes(answer.auth_bytes)

        try:
            self._exchange(send)
        except AuthenticationFailedError as error:
            raise LinkError(
                f"{address} cannot be trusted with the login of {self._who}: {error}"
            ) from None
        return lifetime_ms

    def _exchange(self, send: Callable[[bytes], bytes]) -> None:
        if self.mechanism == PLAIN:
            send(b"\0".join((b"", self.user.encode(), self.password.encode())))
        elif self.mechanism == OAUTHBEARER:
            assert self.token is not None
            if send(b"n,,\x01auth=Bearer " + self.token().encode() + b"\x01\x01"):
                send(b"\x01")  # the broker then answers that the authentication failed
        else:
            nonce = os.urandom(NONCE_BYTES).hex().encode()
            mechanism = SCRAM_BY_NAME[self.mechanism]
            client = ScramClient(
                mechanism, self.user, self.password, nonce, has_token=self.has_token
            )
            client.check(send(client.final(send(client.first()))))

    @property
    def _who(self) -> str:
        return f"user {self.user!r}" if self.user else "the token's user"

    def _require_mechanism(self, address: str, offered: SaslHandshakeResponse) -> None:
        if offered.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise LinkError(
                f"{address} does not take {self.mechanism}; set sasl.mechanism to one of "
                f"{', '.join(offered.mechanisms)}"
            )
        if offered.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise LinkError(
                f"{address} takes no login; set security.protocol to PLAINTEXT or SSL, or use "
                "another port"
            )
        if offered.error_code:
            raise LinkError(f"{address} refused to begin a login (error {offered.error_code})")

    def _refused(self, address: str, answer: SaslAuthenticateResponse) -> LoginError:
        said = answer.error_message or f"error {answer.error_code}"
        remedy = (
            "get a new token" if self.mechanism == OAUTHBEARER else "check the user and password"
        )
        return LoginError(
            f"{address} refused the login of {self._who} with {self.mechanism}: {said}; {remedy}"
        )
