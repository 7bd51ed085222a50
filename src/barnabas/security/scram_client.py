"""The client's end of SCRAM: for the connections of our own tools.

It checks the server's signature, so that it detects a server without the user's keys.
"""

import hmac

from barnabas.metadata.security_records import SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.scram_formulas import (
    ScramMechanism,
    as_base64,
    client_key,
    from_base64,
    hashed,
    keys_of,
    parse_server_first,
    salt_password,
    sign,
    write_name,
    xor,
)

GS2_HEADER = b"n,,"


class ScramClient:
    """One authentication of a user."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        nonce: bytes,
        *,
        has_token: bool = False,
    ) -> None:
        """Take a user's password, or the id and the HMAC of a delegation token (KIP-48)."""
        self._mechanism = mechanism
        self._password = password.encode()
        self._nonce = nonce
        self._bare = b"n=%s,r=%s" % (write_name(user), nonce)
        if has_token:
            self._bare += b",tokenauth=true"
        self._expected = b""

    def first(self) -> bytes:
        """Return the first message."""
        return GS2_HEADER + self._bare

    def final(self, server_first: bytes) -> bytes:
        """Return the last message, with the proof."""
        answer, mechanism = parse_server_first(server_first), self._mechanism
        if not answer.nonce.startswith(self._nonce) or answer.nonce == self._nonce:
            raise AuthenticationFailedError("the server did not extend the nonce")
        if not SCRAM_ITERATIONS_MIN <= answer.iterations <= SCRAM_ITERATIONS_MAX:
            raise AuthenticationFailedError(f"the server demands {answer.iterations} iterations")
        salted = salt_password(mechanism, self._password, answer.salt, answer.iterations)
        key, keys = client_key(mechanism, salted), keys_of(mechanism, salted)
        signed = b"c=%s,r=%s" % (as_base64(GS2_HEADER), answer.nonce)
        message = b",".join((self._bare, server_first, signed))
        self._expected = sign(mechanism, keys.server_key, message)
        proof = xor(key, sign(mechanism, hashed(mechanism, key), message))
        return b"%s,p=%s" % (signed, as_base64(proof))

    def check(self, server_final: bytes) -> None:
        """Raise unless the server has proved that it knows the user."""
        name, _, value = server_final.partition(b"=")
        signature = from_base64(value.split(b",")[0]) if name == b"v" else b""
        if not self._expected or not hmac.compare_digest(signature, self._expected):
            raise AuthenticationFailedError("the server did not prove that it knows the user")
