"""Reads the keys that OAUTHBEARER tokens are checked with, from a file or an https URL.

Only the broker's settings say where they are. A separate thread fetches the keys when the broker
starts, every hour, and when a token names an unknown key. The broker does not wait for them: if the
issuer is down, it starts, and continues with the keys that it has.
"""

import asyncio
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from barnabas.logs import get
from barnabas.model.errors import ConfigError
from barnabas.security.oauth_keys import TokenKeys, read_keys

REFRESH_S = 3600.0
AGAIN_S = 60.0
"""How long after a failure the next attempt is made."""
TIMEOUT_S = 10.0
DOCUMENT_BYTES_MAX = 1024 * 1024

log = get("barnabas.oauth")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the settings name the place."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Follow no redirect."""
        del req, fp, code, msg, headers, newurl


class KeyFetcher:
    """Keeps the keys of one broker up to date."""

    def __init__(
        self,
        place: str,
        keys: TokenKeys,
        loop: asyncio.AbstractEventLoop,
        run_event: Callable[..., None],
    ) -> None:
        self._read = _reader(place)
        self._place = place
        self._keys = keys
        self._loop = loop
        self._run_event = run_event
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="oauth-keys")
        self._is_fetching = False
        self._next: asyncio.TimerHandle | None = None
        keys.on_wish = self.fetch

    def fetch(self) -> None:
        """Fetch the keys, unless a fetch is running."""
        if not self._is_fetching:
            self._is_fetching = True
            with suppress(RuntimeError):  # the broker is stopping
                self._thread.submit(self._fetch)

    def close(self) -> None:
        """Stop fetching."""
        self._keys.on_wish = None
        if self._next is not None:
            self._next.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _fetch(self) -> None:
        """Read and parse the keys, on the thread."""
        try:
            keys = read_keys(self._read())
        except (OSError, ValueError, HTTPException) as error:
            log.warning(
                "cannot read the keys for tokens",
                place=shown_place(self._place),
                problem=str(error),
            )
            report: Callable[[], None] = self._failed
        else:

            def report() -> None:
                self._keys.set(keys)
                self._ended(REFRESH_S)

        with suppress(RuntimeError):  # the loop is closed: the broker is stopping
            self._loop.call_soon_threadsafe(self._run_event, report)

    def _failed(self) -> None:
        self._ended(AGAIN_S)

    def _ended(self, pause_s: float) -> None:
        self._is_fetching = False
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_later(pause_s, self.fetch)


def shown_place(place: str) -> str:
    """Return a place without the parts of a URL that can be secret."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return place
    host, _, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2].partition('?')[0]}/{path.partition('?')[0]}"


def _reader(place: str) -> Callable[[], bytes]:
    """Return a function that reads the document; raise `ConfigError` for an unsafe place."""
    scheme, separator, _ = place.partition("://")
    if not separator:
        return Path(place).read_bytes
    if scheme.lower() != "https":
        raise ConfigError(
            f"security.oauth_keys is {shown_place(place)!r}; write an https URL, or the path of a "
            "file"
        )
    if "@" in urlsplit(place).netloc:
        raise ConfigError(
            f"security.oauth_keys names a user for {shown_place(place)}, but key sets are public; "
            "remove the user and the password from the URL"
        )
    opener = urllib.request.build_opener(_NoRedirects())

    def read() -> bytes:
        with opener.open(place, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(DOCUMENT_BYTES_MAX + 1)
        if len(content) > DOCUMENT_BYTES_MAX:
            raise ValueError("the document is too large")
        return content

    return read
