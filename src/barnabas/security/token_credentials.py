"""The SCRAM credentials of delegation tokens.

The client's user is the id of the token, and its password the HMAC in base64. The keys of that
password take a key derivation of milliseconds, which runs on a thread. The keys of the last tokens
are remembered: they do not change while the token exists.
"""

import base64
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import SCRAM_ITERATIONS_MIN, DelegationTokenChanged
from barnabas.model.callers import Principal
from barnabas.model.steps import Steps
from barnabas.model.timers import Timers
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Proven
from barnabas.security.scram_formulas import (
    SALT_BYTES,
    ScramKeys,
    ScramMechanism,
    keys_of,
    salt_password,
)
from barnabas.security.token_signing import TokenSigner

REMEMBERED_MAX = 1000
ITERATIONS = SCRAM_ITERATIONS_MIN


class Challenge(NamedTuple):
    """The answer to the first message of a client with a token."""

    salt: bytes
    iterations: int


class TokenCredentials:
    """The delegation tokens in this broker's metadata."""

    def __init__(
        self, signer: TokenSigner, image: Callable[[], SecurityImage], timers: Timers
    ) -> None:
        self._signer = signer
        self._image = image
        self._timers = timers
        self._remembered: OrderedDict[tuple[str, str], ScramKeys] = OrderedDict()

    def challenge(self, token_id: str) -> Challenge:
        """Return the salt for a token, which need not exist."""
        if not self._signer.is_enabled:
            raise AuthenticationFailedError(
                "the client has a delegation token, and this broker has no secret for them"
            )
        return Challenge(self._signer.salt_of(token_id, SALT_BYTES), ITERATIONS)

    def keys(self, token_id: str, mechanism: ScramMechanism) -> Steps[ScramKeys]:
        """Return the verifier for a token."""
        self._current(token_id)
        place = token_id, mechanism.name
        known = self._remembered.get(place)
        if known is None:
            password = base64.b64encode(self._signer.hmac_of(token_id))
            salt, iterations = self.challenge(token_id)
            salted = yield partial(salt_password, mechanism, password, salt, iterations)
            known = keys_of(mechanism, salted)
            self._remembered[place] = known
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        self._remembered.move_to_end(place)
        return known

    def proven(self, token_id: str) -> Proven:
        """Return the principal of a client with a token: its owner, until the token expires."""
        token = self._current(token_id)
        kind, _, name = token.owner.partition(":")
        left_ms = token.expires_ms - self._timers.wall_ms
        return Proven(Principal(kind, name, is_by_token=True), left_ms)

    def _current(self, token_id: str) -> DelegationTokenChanged:
        """Return a token that can be used now."""
        token = self._image().tokens.get(token_id)
        if token is None:
            raise AuthenticationFailedError("there is no such delegation token")
        if token.expires_ms <= self._timers.wall_ms:
            raise AuthenticationFailedError("the delegation token has expired")
        return token
