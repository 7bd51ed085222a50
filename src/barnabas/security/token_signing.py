"""The HMACs of delegation tokens (KIP-48): the secret of a client with a token.

    HMAC = id (16 bytes) | HMAC-SHA-512(secret, "token " | id)

Every broker derives it from the token's id and a secret that all brokers of the cluster have in
their settings, so it is not stored. For clients the bytes have no structure. Because the id is in
front, a broker finds the token of an HMAC without an index. Apache Kafka's HMACs are only the
second part.

Without the secret there are no delegation tokens.
"""

import base64
import hmac
from collections.abc import Callable

from barnabas.model.errors import ConfigError

ID_BYTES = 16
SECRET_BYTES_MIN = 16
DIGEST = "sha512"


def id_text(content: bytes) -> str:
    """Return an id in Kafka's form: 22 characters."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class TokenSigner:
    """Makes and checks the HMACs of delegation tokens."""

    def __init__(self) -> None:
        self._secret = b""

    @property
    def is_enabled(self) -> bool:
        """Whether this broker has the secret."""
        return bool(self._secret)

    def use(self, secret: str) -> None:
        """Take the secret from the settings."""
        content = secret.encode()
        if len(content) < SECRET_BYTES_MIN:
            raise ConfigError(
                f"the secret of delegation tokens has fewer than {SECRET_BYTES_MIN} bytes; make "
                "one with `openssl rand -base64 32`"
            )
        self._secret = content

    def new_id(self, random_bytes: Callable[[int], bytes]) -> str:
        """Return the id of a new token; it never begins with a dash, like an option."""
        while (made := id_text(random_bytes(ID_BYTES))).startswith("-"):
            pass
        return made

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token."""
        return self._whole(base64.urlsafe_b64decode(token_id + "=="))

    def find(self, given: bytes) -> str | None:
        """Return the id of the token that an HMAC belongs to; None if it is invalid."""
        content = bytes(given[:ID_BYTES])
        if not self.is_enabled or not hmac.compare_digest(bytes(given), self._whole(content)):
            return None
        return id_text(content)

    def salt_of(self, token_id: str, length: int) -> bytes:
        """Return the salt with which clients prove a token; it is always the same for an id."""
        return self._derived(b"salt ", token_id.encode())[:length]

    def _whole(self, content: bytes) -> bytes:
        return content + self._derived(b"token ", content)

    def _derived(self, purpose: bytes, content: bytes) -> bytes:
        assert self.is_enabled
        return hmac.digest(self._secret, purpose + content, DIGEST)
