"""Makes routes from functions that take a request's session and return a JSON value.

    get(parts, "/api/topics", topic_list)                     answers from the last snapshot
    live(parts, "/api/transactions", transaction_list)        asks brokers, on a thread of its own
    change(parts, "POST", "/api/topics", "topic.create", create_topic)

A change needs the session's CSRF token and the right to write, and leaves a line in the audit log.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.audit_log import AuditLog
from barnabas.console.console_settings import ConsoleSettings
from barnabas.console.login.access import Access
from barnabas.console.login.sessions import Session
from barnabas.console.snapshots import Snapshots
from barnabas.console.web.json_answers import JsonAnswer, problem_answer
from barnabas.console.web.list_queries import ListCache, Row, list_query
from barnabas.console.web.problems import ProblemError, problem_of
from barnabas.console.web.request_bodies import Body, read_body
from barnabas.logs import get as get_logger
from barnabas.monitor.states import ClusterState

LIVE_AT_ONCE = 16
"""How many requests ask brokers at the same time; the others wait."""
REFUSALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}

log = get_logger("barnabas.console")


@dataclass(slots=True, kw_only=True)
class ConsoleParts:
    """What handlers share."""

    settings: ConsoleSettings
    snapshots: Snapshots
    access: Access
    audit: AuditLog
    lists: ListCache = field(default_factory=ListCache)
    live_places: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(LIVE_AT_ONCE)
    )

    def state(self, asked: "Asked") -> ClusterState:
        """Return the part of the last snapshot that the user may see; raise if there is none."""
        found, sight = self.snapshots.require(), asked.session.sight
        return found if sight is None else sight.of(found)

    def page(
        self,
        asked: "Asked",
        name: str,
        rows: Callable[[ClusterState], list[Row]],
        searched: str = "name",
    ) -> dict[str, object]:
        """Return one page of a list, as the request wants it searched and sorted."""
        state = self.state(asked)
        total, items = self.lists.page(
            state, name, lambda: rows(state), list_query(asked.query), searched
        )
        return {"total": total, "items": items, "taken_ms": state.taken_ms}


@dataclass(slots=True)
class Asked:
    """One request, with its session."""

    request: Request
    session: Session
    body: Body
    target: str = ""
    """What a change is about, for the audit log."""
    details: dict[str, Any] = field(default_factory=dict)
    is_dry_run: bool = False

    @property
    def query(self) -> QueryParams:
        """The parameters of the URL."""
        return self.request.query_params

    @property
    def address(self) -> str:
        """Where the request comes from."""
        return address_of(self.request)

    def name(self, known: Mapping[str, object] | None = None) -> str:
        """Return the name in the path.

        Browsers resolve the segments `.` and `..`, so the page encodes these names twice.
        """
        text = str(self.request.path_params["name"])
        plain = _DOTS.get(text.upper(), text)
        return text if known is not None and text in known else plain


_DOTS = {"%2E": ".", "%2E%2E": ".."}

Handler = Callable[[Asked], object]
Endpoint = Callable[[Request], Awaitable[Response]]


def get(parts: ConsoleParts, path: str, handler: Handler) -> Route:
    """Return a route that answers from what the console knows."""
    return _reading(parts, path, lambda asked: run_in_threadpool(handler, asked))


def live(parts: ConsoleParts, path: str, handler: Handler) -> Route:
    """Return a route that asks brokers."""
    return _reading(parts, path, lambda asked: _run_live(parts, handler, asked))


def streaming(
    parts: ConsoleParts, path: str, handler: Callable[[Asked], Awaitable[Response]]
) -> Route:
    """Return a route whose handler makes the answer itself."""

    async def endpoint(request: Request) -> Response:
        return await handler(Asked(request, parts.access.require(request), Body({})))

    return Route(path, answering(endpoint), methods=["GET"])


def change(parts: ConsoleParts, method: str, path: str, action: str, handler: Handler) -> Route:
    """Return a route that changes something."""

    async def endpoint(request: Request) -> Response:
        session = parts.access.find(request)
        asked = Asked(request, session or Session(user=None, read_only=True), Body({}))
        asked.target = str(request.path_params.get("name", ""))
        try:
            parts.access.require(request)
            parts.access.require_token(request, session)
            parts.access.require_write(asked.session)
            asked.body = await read_body(request)
            answer = await _run_live(parts, handler, asked)
        except Exception as error:
            _note(parts, asked, action, _result_of(error), problem_of(error))
            raise
        _note(parts, asked, action, "planned" if asked.is_dry_run else "done", None)
        if not asked.is_dry_run and not action.startswith("message."):
            parts.snapshots.source.look()  # so that pages show the change soon
        return JsonAnswer(answer)

    return Route(path, answering(endpoint), methods=[method])


def answering(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose exceptions become answers."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                log.exception("console_request_failed", path=request.url.path)
                problem = ProblemError(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "internal",
                    "The console failed to answer; its log has the reason",
                )
            return problem_answer(problem)

    return answered


def address_of(request: Request) -> str:
    """Return where a request comes from."""
    return request.client.host if request.client is not None else ""


def _reading(parts: ConsoleParts, path: str, answer: Callable[[Asked], Awaitable[object]]) -> Route:
    async def endpoint(request: Request) -> Response:
        found = await answer(Asked(request, parts.access.require(request), Body({})))
        return found if isinstance(found, Response) else JsonAnswer(found)

    return Route(path, answering(endpoint), methods=["GET"])


async def _run_live(parts: ConsoleParts, handler: Handler, asked: Asked) -> object:
    return await anyio.to_thread.run_sync(handler, asked, limiter=parts.live_places)


def _result_of(error: Exception) -> str:
    problem = problem_of(error)
    return "refused" if problem is not None and problem.status in REFUSALS else "failed"


def _note(
    parts: ConsoleParts, asked: Asked, action: str, result: str, problem: ProblemError | None
) -> None:
    reason = {} if problem is None else {"code": problem.code, "error": problem.message}
    parts.audit.write(
        user=asked.session.user,
        address=asked.address,
        action=action,
        target=asked.target,
        result=result,
        details={**asked.details, **reason},
    )
