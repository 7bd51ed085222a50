"""OpenID Connect: users log in at an issuer, by the authorization code flow with PKCE.

    begin      the browser goes to the issuer, with a state, a nonce and the hash of a verifier
    finish     the issuer sends it back with a code, which the console trades for an ID token

The state is bound to the browser by a cookie, and can be used once. The ID token must be signed by
a key of the issuer, for this console, with the nonce. The issuer's addresses come from its
discovery document; redirects are not followed.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
import urllib.parse
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

from barnabas.admin.admin_errors import AdminError
from barnabas.console.console_settings import OidcSettings, is_loopback
from barnabas.security.oauth_keys import ALGORITHMS, read_keys

DISCOVERY = "/.well-known/openid-configuration"
DOCUMENT_BYTES_MAX = 1 << 20
TIMEOUT_S = 10.0
BEGUN_MAX = 1_000
BEGUN_S = 600.0
SKEW_S = 60
FRESH_S = 3600.0
"""How long the issuer's document and keys are used before they are read again."""


class OidcError(AdminError):
    """A login at the issuer failed; the message says why."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A login that has begun in one browser."""

    browser: str
    nonce: str
    verifier: str = field(repr=False)
    came_from: str
    begun_s: float


@dataclass(frozen=True, slots=True)
class Issuer:
    """What the issuer's discovery document says, and its keys."""

    authorization: str
    token: str
    keys: Mapping[str, Any]
    read_s: float


class Oidc:
    """Logins at one issuer."""

    def __init__(self, settings: OidcSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._now_s = now_s
        self._lock = threading.Lock()
        self._begun: OrderedDict[str, Begun] = OrderedDict()
        self._issuer: Issuer | None = None

    def begin(self, redirect_uri: str, came_from: str) -> tuple[str, str]:
        """Return where to send the browser, and the value of the cookie that binds it."""
        issuer = self._known_issuer()
        state, browser = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        begun = Begun(
            browser, secrets.token_urlsafe(32), secrets.token_urlsafe(48), came_from, self._now_s()
        )
        with self._lock:
            self._begun[state] = begun
            while len(self._begun) > BEGUN_MAX:
                self._begun.popitem(last=False)
        challenge = hashlib.sha256(begun.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid profile email",
            "state": state,
            "nonce": begun.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in issuer.authorization else "?"
        return issuer.authorization + separator + urllib.parse.urlencode(parameters), browser

    def finish(self, state: str, code: str, browser: str, redirect_uri: str) -> tuple[str, str]:
        """Return the user who logged in, and where the login began."""
        with self._lock:
            begun = self._begun.pop(state, None)
        if begun is None or self._now_s() - begun.begun_s > BEGUN_S:
            raise OidcError("The login took too long, or was already used; log in again")
        if not secrets.compare_digest(begun.browser.encode(), browser.encode("utf-8", "replace")):
            raise OidcError("The login began in another browser; log in again")
        answer = self._trade(code, begun.verifier, redirect_uri)
        return self._user(answer, begun.nonce), begun.came_from

    def _trade(self, code: str, verifier: str, redirect_uri: str) -> str:
        """Return the ID token for a code."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._settings.client_id,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._settings.client_secret is not None:
            quoted = (self._settings.client_id, self._settings.client_secret)
            pair = ":".join(urllib.parse.quote(each, safe="") for each in quoted)
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        body = urllib.parse.urlencode(fields).encode()
        found = read_json(self._known_issuer().token, body, headers)
        token = found.get("id_token")
        if not isinstance(token, str):
            raise OidcError("The issuer answered without an ID token; check its client's settings")
        return token

    def _user(self, token: str, nonce: str) -> str:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet
        from joserfc.jws import JWSRegistry

        keys = self._known_issuer().keys
        registry = JWSRegistry(algorithms=sorted(ALGORITHMS), strict_check_header=False)
        rules = jwt.JWTClaimsRegistry(
            leeway=SKEW_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            decoded = jwt.decode(token, KeySet(list(keys.values())), registry=registry)
            rules.validate(decoded.claims)
        except (JoseError, ValueError) as error:
            raise OidcError(f"The issuer's ID token is not accepted: {error}") from None
        authorized = decoded.claims.get("azp", self._settings.client_id)
        user = decoded.claims.get(self._settings.user_claim) or decoded.claims.get("sub")
        if authorized != self._settings.client_id or not isinstance(user, str) or not user:
            raise OidcError("The issuer's ID token is for another client, or names no user")
        return user

    def _known_issuer(self) -> Issuer:
        """Return the issuer's addresses and keys; read them again once an hour."""
        with self._lock:
            known = self._issuer
        if known is not None and self._now_s() - known.read_s < FRESH_S:
            return known
        named = self._settings.issuer
        document = read_json(named.rstrip("/") + DISCOVERY)
        if document.get("issuer") != named:
            raise OidcError(f"--oidc-issuer is {named}, but the site says {document.get('issuer')}")
        try:
            keys = read_keys(json.dumps(read_json(str(document["jwks_uri"]))))
            found = Issuer(
                secure_url(str(document["authorization_endpoint"])),
                secure_url(str(document["token_endpoint"])),
                keys,
                self._now_s(),
            )
        except (KeyError, ValueError) as error:
            raise OidcError(f"{named} does not describe an issuer: {error}") from None
        with self._lock:
            self._issuer = found
        return found


def secure_url(url: str) -> str:
    """Return a URL of https, or of this computer; raise for any other."""
    parts = urllib.parse.urlsplit(url)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not is_here:
        raise OidcError(f"{url} is not an https URL")
    return url


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses to be sent elsewhere."""

    def redirect_request(self, *_: object) -> None:
        """Follow no redirect."""


def read_json(
    url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """Return the JSON object at a URL."""
    request = urllib.request.Request(  # noqa: S310 - secure_url allows http and https alone
        secure_url(url), body, {"Accept": "application/json", **(headers or {})}
    )
    opener = urllib.request.build_opener(_NoRedirects())
    place = urllib.parse.urlsplit(url).netloc
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            found = json.loads(answer.read(DOCUMENT_BYTES_MAX))
    except HTTPError as error:
        error.close()
        raise OidcError(f"The issuer at {place} answered with status {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise OidcError(f"The issuer at {place} does not answer as expected: {error}") from None
    if not isinstance(found, dict):
        raise OidcError(f"The issuer at {place} did not answer with a JSON object")
    return found
