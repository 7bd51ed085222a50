"""The https site of an issuer of tokens, which a test starts and stops.

    site = IssuerSite(folder)
    site.publish(issuer.published())
    with site:                      # while the block runs, the site is up
        ...

It keeps its port, and has a certificate of an authority of its own (`authority`).
"""

import http.server
import ssl
import threading
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.testing.free_ports import free_port
from tests.support.security.certificates import Certificates

HOST = "127.0.0.1"


class IssuerSite:
    """Publishes one document, whatever the path."""

    def __init__(self, folder: Path) -> None:
        certificates = Certificates(folder)
        self.authority = certificates.authority
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificates.broker("issuer"))
        self._port = free_port(HOST)
        self.root = f"https://{HOST}:{self._port}"
        self.address = f"{self.root}/keys"
        self._document = b""
        self._server: http.server.ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def publish(self, document: str) -> None:
        """Publish a document in place of the last."""
        self._document = document.encode()

    def page(self, path: str) -> tuple[HTTPStatus, bytes]:
        """Answer a GET."""
        del path
        return HTTPStatus.OK, self._document

    def posted(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[HTTPStatus, bytes]:
        """Answer a POST."""
        del path, headers, body
        return HTTPStatus.METHOD_NOT_ALLOWED, b""

    def __enter__(self) -> Self:
        site = self

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(*site.page(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self._answer(*site.posted(self.path, dict(self.headers), body))

            def _answer(self, status: HTTPStatus, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Write nothing to stderr."""

        self._server = http.server.ThreadingHTTPServer((HOST, self._port), Page)
        self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
