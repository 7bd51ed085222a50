"""Puts the console together: an ASGI application around one watcher.

request -> security headers -> checks of Host and Origin -> routes: /api/..., else the page
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from barnabas.admin.admin_errors import AdminError
from barnabas.console.audit_log import AuditLog
from barnabas.console.changes.group_changes import group_change_routes
from barnabas.console.changes.plan_routes import PlanRoutes
from barnabas.console.changes.topic_changes import TopicChanges
from barnabas.console.cluster_access import open_wire
from barnabas.console.console_endpoints import Asked, ConsoleParts, answering, streaming
from barnabas.console.console_settings import ConsoleSettings, LoginMethod
from barnabas.console.extras.alertmanager import Alertmanager
from barnabas.console.extras.spark_streams import SparkStreams, stream_routes
from barnabas.console.extras.telemetry_pages import telemetry_routes
from barnabas.console.login.access import Access
from barnabas.console.login.oidc import Oidc
from barnabas.console.login.password_file import PasswordFile
from barnabas.console.login.session_routes import Logins, SessionRoutes
from barnabas.console.login.sessions import Session, Sessions
from barnabas.console.records.message_routes import MessageRoutes
from barnabas.console.snapshots import Snapshots, StateSource
from barnabas.console.state.alert_routes import alert_routes
from barnabas.console.state.alert_rules import AlertBoard
from barnabas.console.state.broker_routes import broker_routes
from barnabas.console.state.group_routes import group_routes
from barnabas.console.state.heat_map import heat_map_routes
from barnabas.console.state.overview_routes import overview_routes
from barnabas.console.state.search_routes import search_routes
from barnabas.console.state.topic_routes import topic_routes
from barnabas.console.web.event_streams import event_stream
from barnabas.console.web.page_files import PageFiles
from barnabas.console.web.problems import ProblemError, not_found
from barnabas.console.web.request_checks import RequestChecks, host_names
from barnabas.console.web.security_headers import SecurityHeaders


def console_app(
    settings: ConsoleSettings,
    source: StateSource,
    *,
    logins: Logins | None = None,
    files: PageFiles | None = None,
) -> Starlette:
    """Return the application; the watcher must be started and stopped by the caller."""
    settings.require_safe()
    snapshots = Snapshots(source)
    audit = AuditLog(settings.audit)
    parts = ConsoleParts(
        settings=settings,
        snapshots=snapshots,
        access=Access(settings, Sessions()),
        audit=audit,
    )
    board = AlertBoard()
    source.subscribe(board.judge)
    if source.state is not None:
        board.judge(source.state)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        snapshots.use_loop(asyncio.get_running_loop())
        yield
        audit.close()

    routes = _routes(parts, board, logins or open_logins(settings))
    page = _page_route(files or PageFiles(settings.base_path))
    inside: list[BaseRoute] = [*routes, page]
    whole = (
        [Mount(settings.base_path, routes=inside), *routes, page] if settings.base_path else inside
    )
    checks = Middleware(
        RequestChecks,
        names=host_names(settings),
        public_url=settings.public_url,
        base_path=settings.base_path,
    )
    headers = Middleware(SecurityHeaders, is_https=settings.is_https)
    return Starlette(routes=whole, middleware=[headers, checks], lifespan=lifespan)


def open_logins(settings: ConsoleSettings) -> Logins:
    """Return the ways to log in; raise where their settings are missing or wrong."""
    match settings.login:
        case LoginMethod.PASSWORD:
            if settings.passwords is None:
                raise AdminError("--login password needs --passwords FILE")
            return Logins(passwords=PasswordFile(settings.passwords))
        case LoginMethod.OIDC:
            if settings.oidc is None:
                raise AdminError("--login oidc needs --oidc-issuer URL and --oidc-client-id ID")
            return Logins(oidc=Oidc(settings.oidc))
        case LoginMethod.NONE | LoginMethod.BROKER:
            return Logins()


def _routes(parts: ConsoleParts, board: AlertBoard, logins: Logins) -> list[Route]:
    settings = parts.settings
    manager = None if settings.alertmanager is None else Alertmanager(settings.alertmanager)
    own = Session(user=None, read_only=True)
    streams = SparkStreams(partial(open_wire, settings, own), settings.streams_topic)
    features = {
        "telemetry": settings.lake is not None,
        "streams": True,
        "alerts": True,
        "metrics": bool(settings.metrics),
    }

    async def events(_: Asked) -> Response:
        parts.snapshots.require_room()
        return event_stream(parts.snapshots.frames())

    return [
        *SessionRoutes(parts, logins, features).routes(),
        streaming(parts, "/api/events", events),
        *overview_routes(parts),
        *broker_routes(parts),
        *heat_map_routes(parts),
        *TopicChanges(parts).routes(),
        *topic_routes(parts),
        *group_change_routes(parts),
        *group_routes(parts),
        *MessageRoutes(parts).routes(),
        *PlanRoutes(parts).routes(),
        *stream_routes(parts, streams),
        *telemetry_routes(parts),
        *alert_routes(parts, board, manager),
        *search_routes(parts),
        Route("/api/{rest:path}", answering(_no_endpoint), methods=list(METHODS)),
    ]


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


async def _no_endpoint(request: Request) -> Response:
    raise not_found(f"The API has no {request.method} {request.url.path[:200]}")


def _page_route(files: PageFiles) -> Route:
    async def page(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise ProblemError(HTTPStatus.METHOD_NOT_ALLOWED, "method", "The page is only read")
        return files.answer(request, "/" + request.path_params["path"])

    return Route("/{path:path}", answering(page), methods=["GET", "HEAD"])
