"""Tests the login by OpenID Connect, with an issuer on this computer."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey

from barnabas.console.console_settings import LoginMethod
from tests.support.console.made_states import FakeWatcher, make_state
from tests.support.console.oidc_site import OidcSite
from tests.support.console.running_console import RunningConsole

START = "/api/login/oidc"


@pytest.fixture
def site() -> Iterator[OidcSite]:
    with OidcSite() as running:
        yield running


@pytest.fixture
def console(site: OidcSite) -> Iterator[RunningConsole]:
    with RunningConsole(
        FakeWatcher(make_state()), login=LoginMethod.OIDC, oidc=site.settings()
    ) as running:
        yield running


def begin(console: RunningConsole, to: str = "/topics?x=1") -> str:
    """Return where the console sends the browser."""
    answer = console.raw("GET", START, params={"to": to})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "samesite=lax" in cookie
    assert "httponly" in cookie
    location: str = answer.headers["location"]
    return location


def come_back(console: RunningConsole, url: str) -> httpx.Response:
    """Follow the issuer's redirect, as a browser does: it comes from another site."""
    return console.http.get(url, headers={"Sec-Fetch-Site": "cross-site"})


def test_a_user_logs_in_and_lands_where_the_login_began(
    console: RunningConsole, site: OidcSite
) -> None:
    assert console.get("/api/session")["login"] == {"required": True, "methods": ["oidc"]}
    answer = come_back(console, site.agree(begin(console)))
    assert (answer.status_code, answer.headers["location"]) == (303, "/topics?x=1")
    assert console.get("/api/session")["user"] == "alice"
    assert console.get("/api/overview")["cluster_id"] == "abc"


def test_a_foreign_target_is_not_followed(console: RunningConsole, site: OidcSite) -> None:
    answer = come_back(console, site.agree(begin(console, "https://evil.example/")))
    assert answer.headers["location"] == "/"


def test_a_state_counts_once_and_only_in_its_browser(
    console: RunningConsole, site: OidcSite
) -> None:
    url = site.agree(begin(console))
    console.http.cookies.clear()
    other = come_back(console, url)
    assert other.status_code == 400
    assert "another browser" in other.json()["error"]
    again = come_back(console, url)
    assert "already used" in again.json()["error"]
    assert console.raw("GET", "/api/overview").status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-client"},
        {"iss": "https://evil.example"},
        {"nonce": "of another login"},
        {"exp": 1},
        {"exp": None},
        {"azp": "another-client"},
        {"preferred_username": 5, "sub": None},
    ],
)
def test_a_token_that_is_not_for_this_login_is_refused(
    console: RunningConsole, site: OidcSite, claims: dict[str, Any]
) -> None:
    site.claims = claims
    answer = come_back(console, site.agree(begin(console)))
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers
    assert console.raw("GET", "/api/overview").status_code == 401


def test_a_token_signed_by_another_key_is_refused(console: RunningConsole, site: OidcSite) -> None:
    site.key = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
    answer = come_back(console, site.agree(begin(console)))
    assert answer.status_code == 400
    site.key = site.issuer.shared
    assert come_back(console, site.agree(begin(console))).status_code == 400


def test_a_refusal_of_the_issuer_is_said(console: RunningConsole) -> None:
    begin(console)
    answer = console.raw("GET", f"{START}/callback", params={"error": "access_denied"})
    assert answer.status_code == 401
    assert "access_denied" in answer.json()["error"]


def test_an_issuer_that_does_not_answer_is_named() -> None:
    with OidcSite() as site:
        settings = site.settings()
    with RunningConsole(
        FakeWatcher(make_state()), login=LoginMethod.OIDC, oidc=settings
    ) as console:
        answer = console.raw("GET", START)
    assert answer.status_code == 400
    assert "does not answer" in answer.json()["error"]


def test_passwords_are_not_taken(console: RunningConsole) -> None:
    found = console.post("/api/login", {"user": "alice", "password": "x"}, 404)
    assert found["code"] == "not_found"
