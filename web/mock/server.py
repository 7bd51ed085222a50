"""The made-up console's HTTP server: sessions, events, the API, the built page."""

import json
import mimetypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from web.mock.answers import Answers, Params, ProblemError, create_topic, now_ms, reset_group
from web.mock.cluster import Cluster, Row
from web.mock.messages import Messages

STATIC = Path(__file__).parents[2] / "src" / "barnabas" / "console" / "static"
CSP = "default-src 'self'; base-uri 'self'; frame-ancestors 'self'; object-src 'none'"
CSRF = "mock-token"
COOKIE = "mock_session=1"
REPORT = "<!doctype html><title>Report</title><h1>GPU fleet report</h1><p>500 cards, 63 hosts.</p>"
BASE_ELEMENT = b'<base href="/">'


@dataclass(kw_only=True)
class Settings:
    """What the made-up console is like."""

    rows: int = 0
    hostile: bool = False
    empty: bool = False
    login: bool = False
    read_only: bool = False
    base_path: str = ""
    interval_s: float = 10
    changes: list[tuple[str, str, Row]] = field(default_factory=list)
    """Every accepted change, for tests."""


class MockConsole:
    """A console that listens on loopback until it is closed."""

    def __init__(self, settings: Settings, port: int = 0) -> None:
        self.settings = settings
        cluster = Cluster(settings.rows, hostile=settings.hostile, empty=settings.empty)
        self.answers = Answers(cluster)
        self.messages = Messages(cluster, hostile=settings.hostile)
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", port), type("Handler", (_Handler,), {"console": self})
        )
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}{settings.base_path}"

    def serve(self) -> None:
        """Answer requests until another thread closes the console."""
        self._server.serve_forever(poll_interval=0.05)

    def start(self) -> "MockConsole":
        """Answer requests on a thread."""
        threading.Thread(target=self.serve, name="mock-console", daemon=True).start()
        return self

    def close(self) -> None:
        """Stop listening."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def session(self, *, is_known: bool) -> Row:
        """Return what the page may do."""
        settings = self.settings
        return {
            "user": "anna" if settings.login and is_known else None,
            "read_only": settings.read_only or not is_known,
            "csrf": CSRF,
            "login": {"required": not is_known, "methods": ["password"] if settings.login else []},
            "cluster": {
                "name": "prod",
                "bootstrap": "broker-1.prod.example:9092" if is_known else None,
            },
            "version": "0.2.0" if is_known else None,
            "age_limit_s": 3 * settings.interval_s,
            "features": {"telemetry": True, "streams": True, "alerts": True, "metrics": True},
        }

    def read(self, path: list[str], params: Params) -> Any:
        """Answer a GET."""
        answers = self.answers
        match path:
            case ["overview" | "quorum" | "telemetry" | "alerts" as name]:
                return getattr(answers, name)()
            case [
                "topics"
                | "groups"
                | "brokers"
                | "transactions"
                | "streams"
                | "heatmap"
                | "search" as name
            ]:
                return getattr(answers, name)(params)
            case ["topics", name, "configs"]:
                return answers.topic_configs(name)
            case ["topics", name]:
                return answers.topic(name)
            case ["groups", name]:
                return answers.group(name)
            case ["brokers", name]:
                return answers.broker(name)
            case ["streams", name]:
                return answers.stream(name)
            case ["messages", "one"]:
                return self.messages.one(params)
            case ["plans", "running"]:
                return answers.running()
            case _:
                pass
        raise ProblemError(404, f"There is nothing at /api/{'/'.join(path)}", "not_found")

    def change(self, method: str, path: list[str], body: Row) -> Any:
        """Answer a change, and remember it unless it is a dry run."""
        if not body.get("dry_run"):
            self.settings.changes.append((method, "/".join(path), body))
        match method, path:
            case "POST", ["topics"]:
                return create_topic(self.answers, "", body)
            case "POST", ["topics", name, "configs"]:
                before = {
                    row["name"]: row["value"] for row in self.answers.topic_configs(name)["items"]
                }
                changes = [
                    {"name": key, "before": before.get(key), "after": value}
                    for key, value in body["set"].items()
                ]
                return {
                    "changes": changes
                    + [
                        {"name": key, "before": before.get(key), "after": None}
                        for key in body["delete"]
                    ]
                }
            case "POST", ["topics", _, "trim"]:
                return {"deleted": dict.fromkeys(body["before"], 1000)}
            case "POST", ["groups", name, "reset"]:
                return reset_group(self.answers, name, body)
            case "DELETE", ["topics" | "groups" as kind, name]:
                if body.get("confirm") != name:
                    raise ProblemError(400, "The name was not repeated")
                getattr(self.answers.cluster, kind).pop(name, None)
                return {}
            case "POST", ["plans", "balance" | "reassign" | "elect" as kind]:
                return self.answers.plan(kind, body)
            case "POST", ["messages"] | ["messages", "replay"]:
                return {"partition": body.get("partition") or 2, "offset": 81_204_117}
            case _:
                return {}


class _Handler(BaseHTTPRequestHandler):
    console: "MockConsole"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, *_: object) -> None:
        """Write no line for each request."""

    def _answer(self, method: str) -> None:
        url = urlsplit(self.path)
        path = url.path.removeprefix(self.console.settings.base_path)
        params = dict(parse_qsl(url.query))
        try:
            if path.startswith("/api/"):
                self._api(method, [unquote(part) for part in path[5:].split("/")], params)
            else:
                self._file(path)
        except ProblemError as problem:
            self._json({"error": str(problem), "code": problem.code}, problem.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    @property
    def _is_known(self) -> bool:
        return not self.console.settings.login or COOKIE in self.headers.get("Cookie", "")

    def _api(self, method: str, path: list[str], params: Params) -> None:
        body = self._body() if method != "GET" else {}
        if path == ["session"]:
            self._json(self.console.session(is_known=self._is_known))
            return
        if method != "GET" and self.headers.get("X-CSRF-Token") != CSRF:
            raise ProblemError(403, "The request has no valid CSRF token; reload the page", "csrf")
        if path == ["login"]:
            self._login(body)
        elif path == ["logout"]:
            self._json({}, headers={"Set-Cookie": "mock_session=; Max-Age=0; Path=/"})
        elif not self._is_known:
            raise ProblemError(401, "Log in first", "login_needed")
        elif method != "GET":
            if self.console.settings.read_only:
                raise ProblemError(403, "This console is read-only", "read_only")
            self._json(self.console.change(method, path, body))
        else:
            self._read(path, params)

    def _read(self, path: list[str], params: Params) -> None:
        match path:
            case ["events"]:
                self._events(self._snapshots())
            case ["messages"]:
                self._events(self.console.messages.search(params))
            case ["messages", "tail"]:
                self._events(self.console.messages.tail(params))
            case ["messages", "export"]:
                lines = (
                    data for name, data in self.console.messages.search(params) if name == "record"
                )
                text = "".join(json.dumps(data) + "\n" for data in lines)
                name = f'attachment; filename="messages.{params.get("format", "jsonl")}"'
                self._send(
                    text.encode(), "application/x-ndjson", headers={"Content-Disposition": name}
                )
            case ["telemetry", "report"]:
                self._send(REPORT.encode(), "text/html")
            case _:
                self._json(self.console.read(path, params))

    def _login(self, body: Row) -> None:
        if (body.get("user"), body.get("password")) != ("anna", "secret"):
            raise ProblemError(401, "User or password is wrong", "login_refused")
        headers = {"Set-Cookie": f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict"}
        self._json(self.console.session(is_known=True), headers=headers)

    def _snapshots(self) -> Iterator[tuple[str, Row]]:
        while not self.console.closing.is_set():
            yield "snapshot", {"taken_ms": now_ms()}
            self.console.closing.wait(self.console.settings.interval_s)

    def _events(self, events: Iterator[tuple[str, Row]]) -> None:
        first = next(events, None)  # what is wrong with the request shows here
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while first is not None and not self.console.closing.is_set():
            name, data = first
            self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()
            first = next(events, None)

    def _body(self) -> Row:
        length = int(self.headers.get("Content-Length") or 0)
        found: Row = json.loads(self.rfile.read(length) or b"{}")
        return found

    def _file(self, path: str) -> None:
        file = STATIC / path.lstrip("/")
        if not (path != "/" and file.is_file() and file.is_relative_to(STATIC)):
            file = STATIC / "index.html"
        text = file.read_bytes().replace(
            BASE_ELEMENT, f'<base href="{self.console.settings.base_path}/">'.encode()
        )
        self._send(text, mimetypes.guess_type(file.name)[0] or "application/octet-stream")

    def _json(
        self, found: object, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self._send(json.dumps(found).encode(), "application/json", status, headers)

    def _send(
        self,
        content: bytes,
        kind: str,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        all_headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": CSP,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        for name, value in (all_headers | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
