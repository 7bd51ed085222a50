"""An OpenID Connect issuer: it publishes its keys, and gives tokens to programs that have a secret.

    with OidcIssuer(folder, {"orders": "the secret of orders"}) as issuer:
        ...                       # issuer.keys_url, issuer.token_url, issuer.name

It knows the grant of client credentials (RFC 6749, 4.4), with the secret in the header
`Authorization` or in the form. A client's tokens are for the subject with its own name.
"""

import base64
import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, unquote_plus

from joserfc import jwt
from joserfc.jwk import ECKey

from tests.support.security.issuer_site import IssuerSite

AUDIENCE = "barnabas"
REALM = "/realms/main"
ALGORITHM = "ES256"


class OidcIssuer(IssuerSite):
    """The issuer and its site."""

    def __init__(self, folder: Path, clients: Mapping[str, str], *, lifetime_s: int = 3600) -> None:
        super().__init__(folder)
        self._clients = dict(clients)
        self._lifetime_s = lifetime_s
        self._key_count = 0
        self.name = f"{self.root}{REALM}"
        """What tokens say of their issuer."""
        self.keys_url = f"{self.name}/certs"
        self.token_url = f"{self.name}/token"
        self.given: list[str] = []
        """The clients that got tokens, in order."""
        self.rotate()

    def rotate(self) -> None:
        """Sign with a new key from now on, and publish that one alone."""
        self._key_count += 1
        kid = f"key-{self._key_count}"
        self._key = ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": ALGORITHM})

    def page(self, path: str) -> tuple[HTTPStatus, bytes]:
        """Answer a GET: the keys, or where everything is."""
        pages: dict[str, object] = {
            f"{REALM}/certs": {"keys": [self._key.as_dict(private=False)]},
            f"{REALM}/.well-known/openid-configuration": {
                "issuer": self.name,
                "jwks_uri": self.keys_url,
                "token_endpoint": self.token_url,
                "grant_types_supported": ["client_credentials"],
            },
        }
        found = pages.get(path)
        if found is None:
            return HTTPStatus.NOT_FOUND, b""
        return HTTPStatus.OK, json.dumps(found).encode()

    def posted(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[HTTPStatus, bytes]:
        """Answer a POST: a token for a client that knows its secret."""
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        client, secret = _credentials(headers.get("Authorization", ""), form)
        if path != f"{REALM}/token":
            return HTTPStatus.NOT_FOUND, b""
        if form.get("grant_type") != "client_credentials":
            return HTTPStatus.BAD_REQUEST, _error("unsupported_grant_type")
        if self._clients.get(client) != secret:
            return HTTPStatus.UNAUTHORIZED, _error("invalid_client")
        self.given.append(client)
        answer = {
            "access_token": self._token(client, form.get("scope", "")),
            "token_type": "Bearer",
            "expires_in": self._lifetime_s,
        }
        return HTTPStatus.OK, json.dumps(answer).encode()

    def _token(self, client: str, scope: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.name,
            "sub": client,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + self._lifetime_s,
            "scope": scope,
        }
        header = {"alg": ALGORITHM, "kid": self._key.kid, "typ": "JWT"}
        return jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])


def _credentials(authorization: str, form: Mapping[str, str]) -> tuple[str, str]:
    """Return the id and the secret of a client, from the header or from the form."""
    kind, _, coded = authorization.partition(" ")
    if kind != "Basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    client, _, secret = base64.b64decode(coded).decode().partition(":")
    return unquote_plus(client), unquote_plus(secret)


def _error(what: str) -> bytes:
    return json.dumps({"error": what}).encode()
