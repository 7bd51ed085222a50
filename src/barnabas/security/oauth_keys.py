"""The public keys of the issuer of OAUTHBEARER tokens, and the check of a token against them.

The keys are a JSON Web Key Set. The edge reads it from a file or fetches it from an https URL that
the broker's settings name (`server/key_fetching.py`); clients cannot influence where it is read
from. A broker starts even if its issuer is down. Until it has keys, it refuses every token.

Needs the extra `oauth` (joserfc). It is imported when OAUTHBEARER is first set up.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.model.errors import ConfigError
from barnabas.security.authentication_failures import AuthenticationFailedError

if TYPE_CHECKING:
    from joserfc.jwk import Key

TOKEN_BYTES_MAX = 16 * 1024
KEYS_MAX = 100
RSA_BITS_MIN = 2048
SECOND_MS = 1000
REFRESH_MIN_MS = 10 * SECOND_MS
"""The shortest time between fetches because of tokens that name an unknown key."""

ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"}
)
"""Signatures with a public key. With `none` or HS256 the public key would be enough to sign."""


def require_library() -> None:
    """Import joserfc, which takes too long for an event; raise `ConfigError` if it is missing."""
    try:
        import joserfc.jwk  # noqa: PLC0415 - an optional dependency
        import joserfc.jws  # noqa: PLC0415
        import joserfc.jwt  # noqa: F401, PLC0415
    except ImportError:
        raise ConfigError(
            "OAUTHBEARER needs joserfc; install it with: pip install 'barnabas[oauth]'"
        ) from None


def read_keys(text: str | bytes) -> "dict[str, Key]":
    """Return the keys for signatures in a JSON Web Key Set, by id; raise ValueError for none."""
    from joserfc.errors import JoseError  # noqa: PLC0415 - an optional dependency
    from joserfc.jwk import JWKRegistry  # noqa: PLC0415

    try:
        listed = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("it is not a JSON Web Key Set") from None
    keys: dict[str, Key] = {}
    for data in listed[:KEYS_MAX] if isinstance(listed, list) else ():
        is_signing = isinstance(data, dict) and data.get("use", "sig") == "sig"
        if not is_signing or data.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        key_id = data.get("kid")
        try:
            if data["kty"] == "RSA" and len(data["n"]) * 6 < RSA_BITS_MIN:
                continue
            key = JWKRegistry.import_key(data)
        except (JoseError, ValueError, TypeError, KeyError, binascii.Error):
            continue  # the set may contain keys of types that this release does not support
        if isinstance(key_id, str):
            keys[key_id] = key
    if not keys:
        raise ValueError("it has no public key with an id that can check signatures")
    return keys


class TokenKeys:
    """The current keys, and the request for newer ones."""

    def __init__(self) -> None:
        self._keys: Mapping[str, Key] = {}
        self._wished_ms: int | None = None
        self.on_wish: Callable[[], None] | None = None
        """Asks the edge to fetch the keys again. It is called at most once in ten seconds."""

    def set(self, keys: "Mapping[str, Key]") -> None:
        """Replace the keys by fetched ones."""
        self._keys = keys

    def find(self, key_id: str, now_ms: int) -> "Key":
        """Return a key; if it is unknown, ask for newer keys and raise."""
        found = self._keys.get(key_id)
        if found is not None:
            return found
        is_soon = self._wished_ms is not None and now_ms - self._wished_ms < REFRESH_MIN_MS
        if not is_soon and self.on_wish is not None:
            self._wished_ms = now_ms
            self.on_wish()
        raise AuthenticationFailedError("the token is signed with a key that is not known (yet)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """The claims that a signed token must have."""

    issuer: str | None
    audience: str | None
    principal_claim: str
    skew_ms: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was checked."""

    name: str
    lifetime_ms: int
    """For how long it is still accepted; at least 1."""


def check_token(
    token: bytes, keys: TokenKeys, rules: TokenRules, now_ms: int, wall_ms: int
) -> Token:
    """Check a signed token (JWT); raise `AuthenticationFailedError` with the reason."""
    from joserfc import jwt  # noqa: PLC0415 - an optional dependency
    from joserfc.errors import JoseError  # noqa: PLC0415
    from joserfc.jws import JWSRegistry  # noqa: PLC0415

    if len(token) > TOKEN_BYTES_MAX:
        raise AuthenticationFailedError("the token is too long")
    header = _read_header(token)
    key = keys.find(_key_id(header), now_ms)
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    try:
        claims = jwt.decode(token, key, algorithms=ALGORITHMS, registry=registry).claims
    except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise AuthenticationFailedError(
            f"the token's signature does not hold ({type(error).__name__})"
        ) from None
    return _check_claims(claims, rules, wall_ms)


def _read_header(token: bytes) -> dict[str, object]:
    parts = token.split(b".")
    if len(parts) != 3 or not all(parts):
        raise AuthenticationFailedError("the token is not a signed JWT")
    try:
        padded = parts[0] + b"=" * (-len(parts[0]) % 4)
        header = json.loads(base64.b64decode(padded, b"-_", validate=True))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise AuthenticationFailedError("the token has no header")
    return header


def _key_id(header: Mapping[str, object]) -> str:
    """Check the algorithm of a token's signature, before any key; return the id of the key."""
    if header.get("alg") not in ALGORITHMS:
        raise AuthenticationFailedError("the token is signed with an algorithm that is not allowed")
    if "crit" in header or "b64" in header:
        raise AuthenticationFailedError("the token demands an extension")
    key_id = header.get("kid")
    if not isinstance(key_id, str):
        raise AuthenticationFailedError("the token does not name its key")
    return key_id


def _check_claims(claims: Mapping[str, object], rules: TokenRules, wall_ms: int) -> Token:
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise AuthenticationFailedError("the token does not expire")
    lifetime_ms = expires_ms + rules.skew_ms - wall_ms
    if lifetime_ms < 1:
        raise AuthenticationFailedError("the token has expired")
    for claim in ("nbf", "iat"):
        begins_ms = _time_ms(claims, claim)
        if begins_ms is not None and begins_ms - rules.skew_ms > wall_ms:
            raise AuthenticationFailedError("the token is not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise AuthenticationFailedError("the token has another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if rules.audience is not None and rules.audience not in audiences:
        raise AuthenticationFailedError("the token is for another audience")
    name = claims.get(rules.principal_claim)
    if not isinstance(name, str) or not name:
        raise AuthenticationFailedError(f"the token has no claim {rules.principal_claim!r}")
    return Token(name, lifetime_ms)


def _time_ms(claims: Mapping[str, object], claim: str) -> int | None:
    """Return a time in a token, in milliseconds; None if it has none."""
    value = claims.get(claim)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or abs(value) > 1e12:  # type: ignore[arg-type]
        raise AuthenticationFailedError(f"the token's claim {claim!r} is not a time")
    return int(value * SECOND_MS)  # type: ignore[operator]
