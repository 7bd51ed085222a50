"""A TLS end in front of a plain listener: what clients see of a broker with TLS."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import trustme


class TlsFront:
    """An authority, and a listener with a certificate of it."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self.authority = trustme.CA()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1").configure_cert(self._context)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.subjects: list[object] = []
        """What the certificates of clients said."""

    def require_certificates(self) -> None:
        """Demand a certificate of each client."""
        self._context.verify_mode = ssl.CERT_REQUIRED
        self.authority.configure_trust(self._context)

    def run(self) -> None:
        """Accept clients until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def close(self) -> None:
        """Accept no more clients."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, accepted: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            accepted,
            self._context.wrap_socket(accepted, server_side=True) as client,
            socket.create_connection(self._target) as broker,
        ):
            self.subjects.append(client.getpeercert())
            back = threading.Thread(target=_copy, args=(broker, client), daemon=True)
            back.start()
            _copy(client, broker)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while content := source.recv(65_536):
            target.sendall(content)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def tls_front(target: str) -> Iterator[TlsFront]:
    """Run a TLS end in front of an address."""
    front = TlsFront(target)
    thread = threading.Thread(target=front.run, daemon=True)
    thread.start()
    try:
        yield front
    finally:
        front.close()
        thread.join()
