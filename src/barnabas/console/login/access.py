"""Finds the session of a request, and decides whether it may read and change."""

import hmac
import secrets
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.console_settings import ConsoleSettings, LoginMethod
from barnabas.console.login.sessions import AGE_S, KEY_BYTES, Session, Sessions
from barnabas.console.web.problems import ProblemError

CSRF_HEADER = "x-csrf-token"


class Access:
    """Who may do what in one console."""

    def __init__(self, settings: ConsoleSettings, sessions: Sessions) -> None:
        self._settings = settings
        self._sessions = sessions
        self._cookie = f"barnabas_session_{settings.port}"
        self._anyone = Session(user=None, read_only=settings.read_only)
        """The session of all requests where no login is needed."""
        self._before_login = secrets.token_urlsafe(KEY_BYTES)
        """The CSRF token of the login itself."""

    @property
    def needs_login(self) -> bool:
        """Whether users must log in."""
        return self._settings.login is not LoginMethod.NONE

    def find(self, request: Request) -> Session | None:
        """Return the session of a request, if there is one."""
        if not self.needs_login:
            return self._anyone
        key = request.cookies.get(self._cookie)
        return None if not key else self._sessions.find(key)

    def require(self, request: Request) -> Session:
        """Return the session of a request; raise if the user must log in first."""
        found = self.find(request)
        if found is None:
            raise ProblemError(HTTPStatus.UNAUTHORIZED, "login_needed", "Log in first")
        return found

    def csrf(self, session: Session | None) -> str:
        """Return the token that changes of a session must carry."""
        return self._before_login if session is None else session.csrf

    def require_token(self, request: Request, session: Session | None) -> None:
        """Raise if a request does not carry its session's token."""
        given = request.headers.get(CSRF_HEADER, "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.csrf(session).encode()):
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                "csrf",
                "The request carries no valid X-CSRF-Token; reload the page and try again",
            )

    def require_write(self, session: Session) -> None:
        """Raise if a session may only read."""
        if session.read_only:
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                "read_only",
                "This console is read-only for you; start it with --read-write to change things",
            )

    def open(self, response: Response, session: Session) -> None:
        """Start a session and give the browser its cookie."""
        response.set_cookie(
            self._cookie,
            self._sessions.open(session),
            max_age=int(AGE_S),
            path=self._settings.base_path or "/",
            secure=self._settings.is_https,
            httponly=True,
            samesite="strict",
        )

    def close(self, request: Request, response: Response) -> None:
        """End the session of a request."""
        key = request.cookies.get(self._cookie)
        if key:
            self._sessions.close(key)
        response.delete_cookie(
            self._cookie,
            path=self._settings.base_path or "/",
            secure=self._settings.is_https,
            httponly=True,
            samesite="strict",
        )
