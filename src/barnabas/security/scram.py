"""The server's end of SCRAM-SHA-256 and SCRAM-SHA-512.

    client: n,,n=alice,r=<client nonce>
    server: r=<client nonce><server nonce>,s=<salt>,i=<iterations>
    client: c=biws,r=<whole nonce>,p=<proof>
    server: v=<signature>

A client cannot learn which users exist: an unknown user gets a salt that is always the same for the
name, and fails at the last message, like a user with a wrong password.

With the extension `tokenauth=true` the client has a delegation token (KIP-48), and is its owner.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import SCRAM_ITERATIONS_MIN
from barnabas.model.callers import Principal
from barnabas.model.steps import Steps
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.mechanism import Proven, Reply
from barnabas.security.scram_formulas import (
    NONCE_BYTES,
    SALT_BYTES,
    ClientFirst,
    ScramKeys,
    ScramMechanism,
    as_base64,
    hashed,
    parse_client_final,
    parse_client_first,
    sign,
    xor,
)
from barnabas.security.token_credentials import TokenCredentials

USER = "User"
TOKEN_EXTENSION = b"tokenauth"


@dataclass(frozen=True, slots=True)
class Verifier:
    """The keys that verify a client's proof."""

    salt: bytes
    iterations: int
    keys: ScramKeys = field(repr=False)
    exists: bool
    """False if there is no such user: then no proof is accepted."""


class Credentials:
    """The SCRAM credentials in this broker's metadata."""

    def __init__(
        self, image: Callable[[], SecurityImage], random_bytes: Callable[[int], bytes]
    ) -> None:
        self._image = image
        self._random_bytes = random_bytes
        self._own_secret = b""
        """Used instead of the cluster's secret until there is one."""

    def find(self, user: str, mechanism: ScramMechanism) -> Verifier:
        """Return the verifier for a user, which need not exist."""
        image = self._image()
        known = image.credentials.get((user, mechanism.name))
        if known is None:
            return self._imagined(user, mechanism, image.secret)
        keys = ScramKeys(bytes.fromhex(known.stored_key), bytes.fromhex(known.server_key))
        return Verifier(bytes.fromhex(known.salt), known.iterations, keys, exists=True)

    def _imagined(self, user: str, mechanism: ScramMechanism, secret: str) -> Verifier:
        """Return a verifier for a user that does not exist; all brokers return the same."""
        self._own_secret = self._own_secret or self._random_bytes(SALT_BYTES)
        key = bytes.fromhex(secret) or self._own_secret

        def made(what: str) -> bytes:
            text = f"{what} {mechanism.name} {user}".encode()
            return hmac.digest(key, text, mechanism.digest)

        keys = ScramKeys(made("stored key"), made("server key"))
        return Verifier(made("salt")[:SALT_BYTES], SCRAM_ITERATIONS_MIN, keys, exists=False)


class ScramExchange:
    """One authentication with SCRAM."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: Credentials,
        tokens: TokenCredentials,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._tokens = tokens
        self._random_bytes = random_bytes
        self._first: ClientFirst | None = None
        self._server_first = b""
        self._nonce = b""
        self._verifier: Verifier | None = None
        """None if the client has a token: its keys are derived at the last message."""
        self._message = b""
        """The text that both ends sign, once the client has sent its last message."""

    def reply(self, token: bytes) -> Steps[Reply]:
        """Answer the first message, then the last."""
        first, verifier = self._first, self._verifier
        if first is None:
            return self._begin(token)
        if verifier is not None:
            if not (self._is_proven(first, token, verifier.keys) and verifier.exists):
                raise AuthenticationFailedError("no such user, or another password")
            return self._accept(verifier.keys, Proven(Principal(USER, first.user)))
        keys = yield from self._tokens.keys(first.user, self._mechanism)
        if not self._is_proven(first, token, keys):
            raise AuthenticationFailedError("the HMAC is not that of the delegation token")
        return self._accept(keys, self._tokens.proven(first.user))

    def _begin(self, token: bytes) -> Reply:
        first = parse_client_first(token)
        if first.extensions.get(TOKEN_EXTENSION, b"").lower() == b"true":
            salt, iterations = self._tokens.challenge(first.user)
        else:
            self._verifier = self._credentials.find(first.user, self._mechanism)
            salt, iterations = self._verifier.salt, self._verifier.iterations
        self._nonce = first.nonce + self._random_bytes(NONCE_BYTES).hex().encode()
        self._server_first = b"r=%s,s=%s,i=%d" % (self._nonce, as_base64(salt), iterations)
        self._first = first
        return Reply(self._server_first)

    def _is_nonce(self, first: ClientFirst, nonce: bytes) -> bool:
        """Tell whether a client repeats the whole nonce: an earlier dialogue cannot be replayed.

        librdkafka before 2.6.1, such as that of Debian 12 and its kcat, repeats the client's part
        in front. Apache Kafka 4 refuses that. The broker's part is included either way.
        """
        repeats = hmac.compare_digest(nonce, self._nonce)
        return repeats or hmac.compare_digest(nonce, first.nonce + self._nonce)

    def _is_proven(self, first: ClientFirst, token: bytes, keys: ScramKeys) -> bool:
        """Tell whether the client's proof matches these keys."""
        mechanism, final = self._mechanism, parse_client_final(token)
        if not self._is_nonce(first, final.nonce):
            raise AuthenticationFailedError("the last message has another nonce")
        if not hmac.compare_digest(final.binding, first.gs2_header):
            raise AuthenticationFailedError("the last message repeats another GS2 header")
        if len(final.proof) != mechanism.digest_bytes:
            raise AuthenticationFailedError("the proof has another length")
        self._message = b",".join((first.bare, self._server_first, final.signed))
        proven_key = xor(final.proof, sign(mechanism, keys.stored_key, self._message))
        return hmac.compare_digest(hashed(mechanism, proven_key), keys.stored_key)

    def _accept(self, keys: ScramKeys, proven: Proven) -> Reply:
        """Prove to the client that the broker knows the keys."""
        signature = as_base64(sign(self._mechanism, keys.server_key, self._message))
        return Reply(b"v=" + signature, proven)
