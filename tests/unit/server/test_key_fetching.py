"""The keys for tokens: from a file, from an https issuer, and without either."""

import asyncio
import contextlib
import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from barnabas.model.errors import ConfigError
from barnabas.security.authentication_failures import AuthenticationFailedError
from barnabas.security.oauth_keys import TokenKeys
from barnabas.server import key_fetching
from barnabas.server.key_fetching import KeyFetcher, shown_place
from tests.support.security.tokens import Issuer

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


class Page(http.server.BaseHTTPRequestHandler):
    """Publishes a document, or something else."""

    document = b""
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(self.document)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, issuer: Issuer) -> Iterator[type[Page]]:
    class Own(Page):
        document = issuer.published().encode()
        address = ""

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(ssl, "_create_default_https_context", lambda: trusting)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Own.address = f"https://127.0.0.1:{server.server_port}/keys"
    yield Own
    server.shutdown()
    server.server_close()
    thread.join()


def knows(keys: TokenKeys, key_id: str) -> bool:
    with contextlib.suppress(AuthenticationFailedError):
        return keys.find(key_id, 0) is not None
    return False


def fetched(place: str, act: Callable[[KeyFetcher, TokenKeys], None] | None = None) -> TokenKeys:
    """Fetch keys once, and once more after an act."""

    async def scenario() -> TokenKeys:
        keys, events = TokenKeys(), asyncio.Queue[None]()

        def run_event(callback: Callable[[], None]) -> None:
            callback()
            events.put_nowait(None)

        fetcher = KeyFetcher(place, keys, asyncio.get_running_loop(), run_event)
        try:
            fetcher.fetch()
            fetcher.fetch()  # one is under way
            await asyncio.wait_for(events.get(), PATIENCE_S)
            if act is not None:
                act(fetcher, keys)
                await asyncio.wait_for(events.get(), PATIENCE_S)
            assert events.empty()
        finally:
            fetcher.close()
        return keys

    return asyncio.run(scenario())


def test_a_file(issuer: Issuer, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(issuer.published())
    assert knows(fetched(str(file)), "rsa")


def test_an_unknown_key_has_the_file_read_again(issuer: Issuer, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(issuer.published(issuer.rsa))

    def rotate(_: KeyFetcher, keys: TokenKeys) -> None:
        file.write_text(issuer.published(issuer.ec))
        assert not knows(keys, "ec")  # it is wished for

    keys = fetched(str(file), rotate)
    assert (knows(keys, "ec"), knows(keys, "rsa")) == (True, False)


def test_what_is_known_stays_where_the_next_document_is_broken(
    issuer: Issuer, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(issuer.published())

    def damage(fetcher: KeyFetcher, _: TokenKeys) -> None:
        file.write_text("{")
        fetcher.fetch()

    assert knows(fetched(str(file), damage), "rsa")


def test_no_file(tmp_path: Path) -> None:
    assert not knows(fetched(str(tmp_path / "none")), "rsa")


def test_an_issuer(page: type[Page]) -> None:
    assert knows(fetched(page.address), "ec")  # type: ignore[attr-defined]


def test_an_issuer_that_is_down() -> None:
    assert not knows(fetched("https://127.0.0.1:1/keys"), "rsa")


@pytest.mark.parametrize("status", [301, 302, 307, 404, 500])
def test_an_issuer_that_answers_something_else(page: type[Page], status: int) -> None:
    page.status = status
    assert not knows(fetched(page.address), "rsa")  # type: ignore[attr-defined]


def test_a_document_that_is_too_large(page: type[Page], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_fetching, "DOCUMENT_BYTES_MAX", 100)
    assert not knows(fetched(page.address), "rsa")  # type: ignore[attr-defined]


def test_an_issuer_that_is_not_trusted(page: type[Page], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl.create_default_context)
    assert not knows(fetched(page.address), "rsa")  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["http://issuer.test/keys", "file:///keys", "ftp://x/y"])
def test_places_that_are_not_safe(place: str) -> None:
    with pytest.raises(ConfigError, match="https"):
        fetched(place)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_password_in_the_url_is_refused_and_not_shown(scheme: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fetched(f"{scheme}://alice:planted@issuer.test/keys?token=planted")
    assert "planted" not in str(caught.value)
    assert "issuer.test/keys" in str(caught.value)


def test_what_is_shown_of_a_place() -> None:
    assert shown_place("https://issuer.test/keys?token=planted") == "https://issuer.test/keys"
    assert shown_place("https://a:planted@issuer.test?x") == "https://issuer.test/"
    assert shown_place("/etc/barnabas/keys?.json") == "/etc/barnabas/keys?.json"
