"""HTTP servers that send prepared bytes, with TLS if a certificate is given."""

import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

Talk = Callable[[socket.socket, Event], None]
"""Writes the response itself, until the event says that the server ends."""


def answer(body: bytes, status: str = "200 OK", *, length: int | None = None) -> bytes:
    """Send a response; a `length` that differs from the body's makes it an incomplete one."""
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body


def trickle(wire: socket.socket, ended: Event) -> None:
    """Send a byte from time to time, without end."""
    wire.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not ended.wait(0.02):
        wire.sendall(b"#")


@dataclass
class Canned:
    """A server on a free port: each request gets the next response, the last one is repeated."""

    answers: list[bytes | Talk]
    port: int
    context: ssl.SSLContext | None = None
    requests: list[bytes] = field(default_factory=list)
    ended: Event = field(default_factory=Event)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    @property
    def base(self) -> str:
        """The URL without a path."""
        return f"{'https' if self.context else 'http'}://{self.address}"

    @property
    def url(self) -> str:
        """The URL of its metrics."""
        return f"{self.base}/metrics"

    def run(self, listener: socket.socket) -> None:
        """Accept connections until the server ends."""
        with closing(listener):
            while not self.ended.is_set():
                with suppress(OSError):
                    accepted, _ = listener.accept()
                    accepted.settimeout(None)
                    Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with suppress(OSError), accepted:
            wire = accepted
            if self.context is not None:
                wire = self.context.wrap_socket(accepted, server_side=True)
            with wire:
                request = b""
                while not request.endswith(b"\r\n\r\n"):
                    piece = wire.recv(65_536)
                    if not piece:
                        return
                    request += piece
                self.requests.append(request)
                each = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if callable(each):
                    each(wire, self.ended)
                else:
                    wire.sendall(each)


@contextmanager
def canned(*answers: bytes | Talk, context: ssl.SSLContext | None = None) -> Iterator[Canned]:
    """Run a server for the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    server = Canned(list(answers), listener.getsockname()[1], context)
    thread = Thread(target=server.run, args=(listener,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        thread.join()


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate, and its key."""

    certificate: Path
    key: Path

    def server(self, *, wants_client: bool = False) -> ssl.SSLContext:
        """Return the TLS settings of a server, which may require the certificate of clients."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificate)
        return context


def make_certificate(folder: Path, name: str = "DNS:exporter") -> Certificate:
    """Create a certificate with openssl."""
    found = Certificate(folder / "exporter.pem", folder / "exporter.key")
    words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=exporter", "-addext", f"subjectAltName={name}", "-days", "30"]
    files = ["-keyout", str(found.key), "-out", str(found.certificate)]
    command = ["openssl", "req", *words, *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    return found
