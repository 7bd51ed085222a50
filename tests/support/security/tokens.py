"""An issuer of OAUTHBEARER tokens."""

import json
import time
from collections.abc import Mapping
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

ISSUER, AUDIENCE = "https://issuer.test/realm", "barnabas"


class Issuer:
    """Signs tokens, and publishes its keys."""

    def __init__(self) -> None:
        self.rsa = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
        self.ec = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
        self.shared = OctKey.import_key("a" * 64, {"kid": "oct"})

    def published(self, *keys: Any) -> str:
        """Return the JSON Web Key Set, of all keys or of some."""
        listed = keys or (self.rsa, self.ec)
        return json.dumps({"keys": [key.as_dict(private=False) for key in listed]})

    def token(
        self,
        user: str = "alice",
        *,
        key: Any = None,
        header: Mapping[str, Any] | None = None,
        now_s: float | None = None,
        **claims: Any,
    ) -> str:
        """Return a token that is valid for an hour, with other claims where they are given."""
        now = int(time.time() if now_s is None else now_s)
        said = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3600}
        said.update(claims)
        said = {name: value for name, value in said.items() if value is not None}
        signed_by = key or self.rsa
        algorithm = {"RSA": "RS256", "EC": "ES256", "oct": "HS256"}[signed_by.key_type]
        head = {"alg": algorithm, "kid": signed_by.kid, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        return jwt.encode(head, said, signed_by, algorithms=[algorithm])
