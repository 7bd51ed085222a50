"""Serves the exporter's page over HTTP: /metrics and /health, GET and HEAD alone.

At most `CONNECTIONS_MAX` connections are served at the same time, each for one request. A client
that is slower than `PATIENCE_S` is disconnected.
"""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, socket
from typing import Any

from barnabas.exporter.exporter_page import ExporterPage
from barnabas.exporter.series_text import CONTENT_TYPE

PATIENCE_S = 10.0
CONNECTIONS_MAX = 32
GZIP_LEVEL = 1
INDEX = b"/metrics  series of the cluster, for Prometheus\n/health   whether they are recent\n"
PLAIN, JSON = "text/plain; charset=utf-8", "application/json"
NOT_FOUND = b"not found; there are /metrics and /health\n"


class ExporterServer(ThreadingHTTPServer):
    """The listener; it accepts from `start` to `stop`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, served: ExporterPage) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.served = served
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._thread: threading.Thread | None = None
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        name = host if isinstance(host, str) else bytes(host).decode()
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def server_bind(self) -> None:
        """Bind without the look-up of the host's name, which may take seconds."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def start(self) -> None:
        """Accept connections, on a thread."""
        self._thread = threading.Thread(target=self.serve_forever, name="exporter", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class
        """Serve a connection on a thread, or close it if too many are open."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class
        """Serve one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:  # noqa: ANN401 - as the base class
        """Print nothing: a client went away."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: ExporterServer
    server_version = "barnabas-exporter"
    sys_version = ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """Answer with the page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class
        """Print nothing for a request."""

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics(with_body=with_body)
        elif path == "/health":
            found = self.server.served.wellness()
            body = json.dumps({"verdict": found.verdict, "reasons": list(found.reasons)}) + "\n"
            status = 200 if found.is_well else 503
            self._send(status, JSON, body.encode(), with_body=with_body)
        elif path == "/":
            self._send(200, PLAIN, INDEX, with_body=with_body)
        else:
            self._send(404, PLAIN, NOT_FOUND, with_body=with_body)

    def _metrics(self, *, with_body: bool) -> None:
        body = self.server.served.text().encode()
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            packed = gzip.compress(body, GZIP_LEVEL, mtime=0)
            self._send(200, CONTENT_TYPE, packed, with_body=with_body, encoding="gzip")
        else:
            self._send(200, CONTENT_TYPE, body, with_body=with_body)

    def _send(
        self, status: int, kind: str, body: bytes, *, with_body: bool, encoding: str | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if encoding is not None:
            self.send_header("Content-Encoding", encoding)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_body:
            self.wfile.write(body)
