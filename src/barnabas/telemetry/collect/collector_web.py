"""Serves the collector's /metrics and /health on a thread of the standard library's HTTP server."""

import json
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any, ClassVar, Self

from barnabas.telemetry.collect.vitals import Vitals

CLIENT_TIMEOUT_S = 5.0
CLIENTS_MAX = 16
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class WebError(Exception):
    """The server cannot listen on the address; the text says why."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; the connection is closed after it."""

    vitals: ClassVar[Vitals]
    timeout = CLIENT_TIMEOUT_S
    server_version = "barnabas"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with one of the two pages."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, TEXT, self.vitals.page())
        elif path == "/health":
            is_well, answer = self.vitals.health()
            self._answer(200 if is_well else 503, "application/json", json.dumps(answer) + "\n")
        else:
            self._answer(404, TEXT, "There are /metrics and /health here\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Log nothing: the collector's own lines are more important."""

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    """Serves a bounded number of clients at a time; other connections are closed."""

    daemon_threads = True
    request_queue_size = 2 * CLIENTS_MAX

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._places = BoundedSemaphore(CLIENTS_MAX)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - so it is there
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - so it is there
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: a client that closes its connection is normal."""


class OwnPages:
    """The server, from `with` to its end."""

    def __init__(self, host: str, port: int, vitals: Vitals) -> None:
        """Listen; raise `WebError` if that fails."""
        handler = type("Handler", (_Handler,), {"vitals": vitals})
        try:
            self._server = _Server((host, port), handler)
        except (OSError, OverflowError) as error:
            raise WebError(f"cannot listen on {host}:{port} ({error})") from error
        self.port = self._server.server_port
        self._thread = Thread(
            target=self._server.serve_forever, args=(0.1,), name="pages", daemon=True
        )

    def __enter__(self) -> Self:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
