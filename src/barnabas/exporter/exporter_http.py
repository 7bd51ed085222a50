"""Serves the exporter's page over HTTP: /metrics and /health, GET and HEAD alone.

At most `CONNECTIONS_MAX` connections are served at the same time, each for one request. A client
that takes longer than `PATIENCE_S` to send its request, or to read the answer, is disconnected.
When all places are taken, the client that has not sent its request for the longest time loses its
place: connections that stand idle keep no scrape out.
"""

import gzip
import json
import threading
import time
from contextlib import suppress
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket
from typing import Any

from barnabas.exporter.exporter_page import ExporterPage
from barnabas.exporter.series_text import CONTENT_TYPE

PATIENCE_S = 10.0
CONNECTIONS_MAX = 32
PLACE_PATIENCE_S = 1.0
"""How long a client that has lost its place may take to leave."""
HEAD_BYTES_MAX = 32 << 10
"""The header lines of a request."""
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
        self._asking: dict[socket, float] = {}
        """Connections without a whole request, the oldest first: until when they may send it."""
        self._lock = threading.Lock()
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
        """Serve a connection on a thread, or close it if too many are being answered."""
        if not self._places.acquire(blocking=False) and not (
            self._take_oldest_place() and self._places.acquire(timeout=PLACE_PATIENCE_S)
        ):
            self.shutdown_request(request)
            return
        with self._lock:
            self._asking[request] = time.monotonic() + PATIENCE_S
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class
        """Serve one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_asked(request)
            self._places.release()

    def has_asked(self, request: socket) -> None:
        """Note that the request of a connection is whole."""
        with self._lock:
            self._asking.pop(request, None)

    def service_actions(self) -> None:
        """Disconnect clients whose time for their request is over; called twice a second."""
        now_s = time.monotonic()
        with self._lock:
            for request in [each for each, until_s in self._asking.items() if until_s < now_s]:
                self._give_up(request)

    def _take_oldest_place(self) -> bool:
        with self._lock:
            oldest = next(iter(self._asking), None)
            if oldest is not None:
                self._give_up(oldest)
            return oldest is not None

    def _give_up(self, request: socket) -> None:
        """End a connection; its thread then reads the end and leaves."""
        del self._asking[request]
        with suppress(OSError):
            request.shutdown(SHUT_RDWR)

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:  # noqa: ANN401 - as the base class
        """Print nothing: a client went away."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: ExporterServer
    server_version = "barnabas-exporter"
    sys_version = ""
    timeout = PATIENCE_S

    def setup(self) -> None:
        """Limit the bytes of a request."""
        super().setup()
        self.rfile = _LimitedHead(self.rfile)

    def do_GET(self) -> None:
        """Answer with the page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class
        """Print nothing for a request."""

    def _answer(self, *, with_body: bool) -> None:
        self.server.has_asked(self.connection)
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


class _LimitedHead(BufferedIOBase):
    """The lines of a request; too many bytes of header lines are answered with 431."""

    def __init__(self, lines: BufferedIOBase) -> None:
        self._lines = lines
        self._left: int | None = None
        """What the header lines may still have; None before the line of the request."""

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line."""
        line = self._lines.readline(size)
        if self._left is None:
            self._left = HEAD_BYTES_MAX
        else:
            self._left -= len(line)
            if self._left < 0:
                raise LineTooLong("header line")
        return line

    def close(self) -> None:
        """Close the connection's file."""
        self._lines.close()
