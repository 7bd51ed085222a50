"""`/api/session`, `/api/login`, `/api/logout`: who uses the page, and what it can do."""

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.console.cluster_access import open_wire
from barnabas.console.console_endpoints import ConsoleParts, address_of, answering
from barnabas.console.console_settings import LoginMethod
from barnabas.console.login.broker_login import check_login, user_properties
from barnabas.console.login.login_attempts import DELAY_S, LoginAttempts
from barnabas.console.login.oidc import BEGUN_S, Oidc
from barnabas.console.login.password_file import PasswordFile
from barnabas.console.login.sessions import Session
from barnabas.console.login.sight import Sight, Visible, ask_visible
from barnabas.console.web.json_answers import JsonAnswer
from barnabas.console.web.problems import ProblemError, bad_input, not_found, too_many
from barnabas.console.web.request_bodies import read_body
from barnabas.model.version import __version__

OIDC_COOKIE = "barnabas_login"
OIDC_PATH = "/api/login/oidc"
CHECKS_AT_ONCE = 4
"""scrypt needs 16 MiB and a processor for each check."""
NAME_MAX, PASSWORD_MAX = 256, 1024
STALE_AFTER_INTERVALS = 3
WRONG = "User or password is wrong"


@dataclass(kw_only=True)
class Logins:
    """The ways to log in."""

    passwords: PasswordFile | None = None
    oidc: Oidc | None = None
    delay_s: float = DELAY_S
    attempts: LoginAttempts = field(default_factory=LoginAttempts)
    places: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(CHECKS_AT_ONCE)
    )


class SessionRoutes:
    """The endpoints of sessions."""

    def __init__(self, parts: ConsoleParts, logins: Logins, features: Mapping[str, bool]) -> None:
        self._parts = parts
        self._logins = logins
        self._features = features

    def routes(self) -> list[Route]:
        """Return the routes."""
        found = [
            Route("/api/session", answering(self._session), methods=["GET"]),
            Route("/api/login", answering(self._log_in), methods=["POST"]),
            Route("/api/logout", answering(self._log_out), methods=["POST"]),
        ]
        if self._logins.oidc is not None:
            found += [
                Route(OIDC_PATH, answering(self._begin), methods=["GET"]),
                Route(f"{OIDC_PATH}/callback", answering(self._finish), methods=["GET"]),
            ]
        return found

    async def _session(self, request: Request) -> Response:
        return JsonAnswer(self._described(self._parts.access.find(request)))

    def _described(self, session: Session | None) -> dict[str, Any]:
        settings = self._parts.settings
        method = settings.login
        cluster: dict[str, Any] = {"name": settings.name, "bootstrap": None}
        found: dict[str, Any] = {
            "user": None,
            "read_only": True,
            "csrf": self._parts.access.csrf(session),
            "login": {
                "required": session is None,
                "methods": [] if method is LoginMethod.NONE else [method.value],
            },
            "cluster": cluster,
            "version": None,
            "age_limit_s": STALE_AFTER_INTERVALS * settings.interval_s,
            "features": dict(self._features),
        }
        if session is not None:
            cluster["bootstrap"] = settings.bootstrap
            found |= {
                "user": session.user,
                "read_only": session.read_only,
                "version": __version__,
            }
        return found

    async def _log_in(self, request: Request) -> Response:
        session = self._parts.access.find(request)
        self._parts.access.require_token(request, session)
        body = await read_body(request)
        user, password = body.text("user"), body.text("password")
        if not 0 < len(user) <= NAME_MAX or len(password) > PASSWORD_MAX or "\0" in user + password:
            raise bad_input(f"User names have 1 to {NAME_MAX} characters")
        who = (user, address_of(request))
        if not self._logins.attempts.may_try(who):
            self._note(request, user, "refused", {"reason": "too many attempts"})
            raise too_many("Too many failed logins; wait five minutes and try again")
        opened = await anyio.to_thread.run_sync(
            self._checked, user, password, limiter=self._logins.places
        )
        if opened is None:
            self._logins.attempts.failed(who)
            self._note(request, user, "refused", {})
            await anyio.sleep(self._logins.delay_s)
            raise ProblemError(HTTPStatus.UNAUTHORIZED, "login_refused", WRONG)
        self._logins.attempts.succeeded(who)
        self._note(request, user, "done", {})
        return self._opened(opened, JsonAnswer(self._described(opened)))

    def _checked(self, user: str, password: str) -> Session | None:
        """Return a session for a user whose password is right."""
        settings = self._parts.settings
        match settings.login:
            case LoginMethod.PASSWORD if self._logins.passwords is not None:
                known = self._logins.passwords.check(user, password)
                if known is None:
                    return None
                return Session(user=user, read_only=settings.read_only or known.read_only)
            case LoginMethod.BROKER:
                properties = user_properties(settings.properties, user, password)
                if not check_login(settings.bootstrap, properties):
                    return None
                session = Session(user=user, read_only=settings.read_only, properties=properties)
                session.sight = Sight(lambda: self._visible(session))
                return session
            case _:
                raise not_found("This console takes no passwords; use its login page")

    def _visible(self, session: Session) -> Visible:
        with open_wire(self._parts.settings, session) as wire:
            return ask_visible(wire)

    async def _log_out(self, request: Request) -> Response:
        session = self._parts.access.find(request)
        self._parts.access.require_token(request, session)
        answer = JsonAnswer({})
        self._parts.access.close(request, answer)
        return answer

    async def _begin(self, request: Request) -> Response:
        oidc = self._logins.oidc
        assert oidc is not None
        to = own_path(request.query_params.get("to", "/"))
        url, browser = await run_in_threadpool(oidc.begin, self._redirect_uri(request), to)
        answer = RedirectResponse(url, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
        answer.set_cookie(
            OIDC_COOKIE,
            browser,
            max_age=int(BEGUN_S),
            path=self._parts.settings.base_path + OIDC_PATH,
            secure=self._parts.settings.is_https,
            httponly=True,
            samesite="lax",  # the issuer's site sends the browser back
        )
        return answer

    async def _finish(self, request: Request) -> Response:
        oidc = self._logins.oidc
        assert oidc is not None
        said = request.query_params
        if "error" in said:
            self._note(request, None, "refused", {"reason": said["error"][:200]})
            raise ProblemError(
                HTTPStatus.UNAUTHORIZED,
                "login_refused",
                f"The issuer refused: {said['error'][:200]}",
            )
        user, to = await run_in_threadpool(
            oidc.finish,
            said.get("state", ""),
            said.get("code", ""),
            request.cookies.get(OIDC_COOKIE, ""),
            self._redirect_uri(request),
        )
        self._note(request, user, "done", {})
        settings = self._parts.settings
        session = Session(user=user, read_only=settings.read_only)
        answer = RedirectResponse(
            settings.base_path + to, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"}
        )
        answer.delete_cookie(OIDC_COOKIE, path=settings.base_path + OIDC_PATH)
        return self._opened(session, answer)

    def _opened(self, session: Session, answer: Response) -> Response:
        self._parts.access.open(answer, session)
        return answer

    def _redirect_uri(self, request: Request) -> str:
        settings = self._parts.settings
        base = settings.public_url or f"http://{request.headers['host']}{settings.base_path}"
        return f"{base.rstrip('/')}{OIDC_PATH}/callback"

    def _note(
        self, request: Request, user: str | None, result: str, details: Mapping[str, Any]
    ) -> None:
        self._parts.audit.write(
            user=user,
            address=address_of(request),
            action="login",
            target=self._parts.settings.login.value,
            result=result,
            details=details,
        )


def own_path(text: str) -> str:
    """Return a path of the console to go to after a login; the overview for anything else."""
    parts = urllib.parse.urlsplit(text)
    is_own = text.startswith("/") and not text.startswith(("//", "/\\")) and not parts.netloc
    return text if is_own and not parts.scheme and "\\" not in text and text.isprintable() else "/"
