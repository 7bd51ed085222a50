"""A small issuer of OpenID Connect on this computer, with one user who always agrees.

with OidcSite() as site:
    site.settings()         # for the console
    site.agree(url)         # what a browser does at the issuer; returns where it is sent back
"""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from barnabas.console.console_settings import OidcSettings
from tests.support.security.tokens import Issuer

HOST = "127.0.0.1"
CLIENT, SECRET = "console", "s3cret/+"
CODE = "the-code"


class OidcSite:
    """An issuer, while the block runs."""

    def __init__(self) -> None:
        self.issuer = Issuer()
        self.claims: dict[str, Any] = {}
        """Claims of the ID token other than the right ones."""
        self.key: Any = None
        """A key other than a published one."""
        self.traded: list[dict[str, list[str]]] = []
        self._asked: dict[str, str] = {}
        self._server = ThreadingHTTPServer((HOST, 0), self._page())
        self.url = f"http://{HOST}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def settings(self) -> OidcSettings:
        """Return what the console must know."""
        return OidcSettings(issuer=self.url, client_id=CLIENT, client_secret=SECRET)

    def agree(self, url: str) -> str:
        """Log the user in, as at the URL that the console sent the browser to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT
        self._asked = asked
        sent_back = {"code": CODE, "state": asked["state"]}
        return f"{asked['redirect_uri']}?{urlencode(sent_back)}"

    def answer(self, path: str, body: bytes, authorization: str) -> dict[str, Any] | None:
        """Return the document at a path; None for a refusal."""
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
        if path == "/keys":
            found: dict[str, Any] = json.loads(self.issuer.published())
            return found
        fields = parse_qs(body.decode())
        self.traded.append(fields)
        return {"id_token": self._token()} if self._is_right(fields, authorization) else None

    def _is_right(self, fields: dict[str, list[str]], authorization: str) -> bool:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        digest = hashlib.sha256(fields["code_verifier"][0].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return (
            pair == f"{CLIENT}:s3cret%2F%2B"
            and fields["code"] == [CODE]
            and challenge == self._asked["code_challenge"]
            and fields["redirect_uri"] == [self._asked["redirect_uri"]]
        )

    def _token(self) -> str:
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "nonce": self._asked["nonce"],
            "preferred_username": "alice",
            **self.claims,
        }
        return self.issuer.token(key=self.key, **claims)

    def _page(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(size)
                found = site.answer(self.path, body, self.headers.get("Authorization", ""))
                content = json.dumps(found or {"error": "invalid_grant"}).encode()
                self.send_response(400 if found is None else 200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815 - the library's name

            def log_message(self, *_: object) -> None:
                """Write nothing to stderr."""

        return Page
