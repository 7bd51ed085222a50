"""Refuses requests that other sites make a browser send: by Host, Origin, and where they come from.

- A Host that is not ours: a site whose name was made to point at this address (DNS rebinding).
- A request that changes something, without an Origin or with another: cross-site request forgery.
- A request to the API that the browser says another site caused (Sec-Fetch-Site).
"""

import ipaddress
import socket
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.console.console_settings import ConsoleSettings
from barnabas.console.web.json_answers import problem_answer
from barnabas.console.web.problems import ProblemError

SAFE = frozenset({"GET", "HEAD"})
FROM_HERE = frozenset({"same-origin", "none"})
FROM_OTHER_SITES = "/api/login/oidc"
"""The issuer's site sends users back to a path below this one."""


def host_names(settings: ConsoleSettings) -> frozenset[str]:
    """Return the names that a Host header may have, besides addresses."""
    names = {"localhost", settings.host.lower().strip("[]")}
    if not settings.is_local:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    if settings.public_url is not None:
        names.add((urlsplit(settings.public_url).hostname or "").lower())
    return frozenset(names - {""})


class RequestChecks:
    """Answers requests of other sites with an error."""

    def __init__(
        self, app: ASGIApp, *, names: Iterable[str], public_url: str | None, base_path: str
    ) -> None:
        self._app = app
        self._names = frozenset(names)
        self._public = None if public_url is None else urlsplit(public_url).netloc.lower()
        self._base_path = base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await problem_answer(problem)(scope, receive, send)

    def _problem(self, scope: Scope) -> ProblemError | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if not self._is_ours(host):
            return ProblemError(
                HTTPStatus.FORBIDDEN,
                "unknown_host",
                "The console is not known by this name; open it by its address, or start it with "
                "--public-url",
            )
        path = scope["path"].removeprefix(self._base_path)
        if not path.startswith("/api"):
            return None
        origin = headers.get("origin")
        if scope["method"] not in SAFE and not self._is_same(origin, host):
            return _refused("The request does not come from the console's own page")
        came_from = headers.get("sec-fetch-site", "none")
        if came_from not in FROM_HERE and not path.startswith(FROM_OTHER_SITES):
            return _refused("Another site caused this request; open the console itself")
        return None

    def _is_ours(self, host: str) -> bool:
        if self._public is not None and host == self._public:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_address(name)

    def _is_same(self, origin: str | None, host: str) -> bool:
        if origin is None:
            return False
        place = urlsplit(origin).netloc.lower()
        return bool(place) and place in (host, self._public)


def _is_address(name: str) -> bool:
    """Return whether a name is an IP address: only names can be made to point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refused(message: str) -> ProblemError:
    return ProblemError(HTTPStatus.FORBIDDEN, "cross_site", message)
