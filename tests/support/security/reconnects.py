"""Many mTLS connections in one process, which connect to other brokers once theirs is gone.

    python -m tests.support.security.reconnects 2000 ca.pem client.pem client.key FIRST OTHER...

It connects to the first address and prints `ready N` once all connections are served. When the
broker closes them, all connect to the other addresses at once, and `reconnected N SECONDS` says how
long that took until the last one was served. It ends when a line comes on stdin.

The sockets do not block and share one loop, so that the client takes as little of the processor as
possible: OpenSSL's handshake, one request, one response.
"""

import selectors
import socket
import ssl
import sys
import time
from collections.abc import Sequence

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.testing.raw_client import frame_of, framed

READY, RECONNECTED = "ready", "reconnected"
FINISHED = 0
AT_ONCE = 100
"""How many first connections are opened at a time; those after the failover all come at once."""
REQUEST = framed(frame_of(ApiVersionsRequest(), 0))
PATIENCE_S = 300.0
RETRY_S = 0.2


class Connection:
    """One connection, from TCP over TLS to the first response."""

    def __init__(self, crowd: "Crowd") -> None:
        self._crowd = crowd
        self.socket: socket.socket | ssl.SSLSocket | None = None
        self.served = False
        self._has_asked = False
        self._is_connected = False

    def connect(self, address: tuple[str, int]) -> None:
        """Begin to connect."""
        self.close()
        raw = socket.socket()
        raw.setblocking(False)
        raw.connect_ex(address)
        self.socket, self._has_asked, self._is_connected = raw, False, False
        self._crowd.selector.register(raw, selectors.EVENT_WRITE, self)

    def advance(self) -> None:
        """Go on with whatever comes next; raise `OSError` if the connection is lost."""
        if not self._is_connected:
            self._begin_tls()
        assert isinstance(self.socket, ssl.SSLSocket)
        try:
            if not self._has_asked:
                self.socket.do_handshake()
                self.socket.send(REQUEST)
                self._has_asked = True
            if not self.socket.recv(4096):
                raise ConnectionResetError("the broker closed the connection")
            self.served = True
        except ssl.SSLWantReadError:
            self._watch(selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._watch(selectors.EVENT_WRITE)

    def close(self) -> None:
        """Close the socket."""
        self.served = False
        if self.socket is not None:
            self._crowd.selector.unregister(self.socket)
            self.socket.close()
            self.socket = None

    def _begin_tls(self) -> None:
        assert self.socket is not None
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise ConnectionRefusedError(code)
        self._is_connected = True
        self._crowd.selector.unregister(self.socket)
        self.socket = self._crowd.context.wrap_socket(
            self.socket, server_hostname="localhost", do_handshake_on_connect=False
        )
        self._crowd.selector.register(self.socket, selectors.EVENT_READ, self)

    def _watch(self, events: int) -> None:
        assert self.socket is not None
        self._crowd.selector.modify(self.socket, events, self)


class Crowd:
    """All connections."""

    def __init__(self, count: int, context: ssl.SSLContext) -> None:
        self.context = context
        self.selector = selectors.DefaultSelector()
        self.connections = [Connection(self) for _ in range(count)]

    def open_all(self, addresses: Sequence[tuple[str, int]], at_once: int) -> float:
        """Connect until all connections are served; return how many seconds that took."""
        began = time.monotonic()
        waiting = list(enumerate(self.connections))
        again: list[tuple[float, int]] = []
        open_count = 0
        served = 0
        while served < len(self.connections):
            now = time.monotonic()
            assert now - began < PATIENCE_S, f"{served} of {len(self.connections)} are served"
            due = [number for at, number in again if at <= now]
            again = [(at, number) for at, number in again if at > now]
            for number in due:
                self.connections[number].connect(addresses[number % len(addresses)])
            while waiting and open_count < at_once:
                number, connection = waiting.pop()
                connection.connect(addresses[number % len(addresses)])
                open_count += 1
            for key, _ in self.selector.select(0.05):
                connection = key.data
                try:
                    if not connection.served:
                        connection.advance()
                        if connection.served:
                            served += 1
                            open_count -= 1
                except OSError:
                    connection.close()
                    again.append((now + RETRY_S, self.connections.index(connection)))
        return time.monotonic() - began

    def wait_until_lost(self) -> None:
        """Return once the broker has closed every connection."""
        left = {connection for connection in self.connections if connection.socket is not None}
        for connection in left:
            assert connection.socket is not None
            self.selector.modify(connection.socket, selectors.EVENT_READ, connection)
        while left:
            for key, _ in self.selector.select():
                try:
                    if key.fileobj.recv(4096):  # type: ignore[union-attr]
                        continue
                except ssl.SSLWantReadError:
                    continue
                except OSError:
                    pass
                key.data.close()
                left.discard(key.data)


def main() -> int:
    """Read the command line, and run both parts."""
    count, authority, certificate, key, *words = sys.argv[1:]
    places = [word.rpartition(":") for word in words]
    addresses = [(host, int(port)) for host, _, port in places]
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    crowd = Crowd(int(count), context)
    crowd.open_all(addresses[:1], AT_ONCE)
    _say(READY, count)
    crowd.wait_until_lost()
    seconds = crowd.open_all(addresses[1:], int(count))
    _say(RECONNECTED, count, f"{seconds:.2f}")
    sys.stdin.readline()
    return FINISHED


def _say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
