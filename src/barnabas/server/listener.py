"""A listening socket: accepts connections and passes them to the server."""

import asyncio
import socket
from collections.abc import Callable

from barnabas.logs import get
from barnabas.server.files.descriptors import SPARES, is_exhausted

ACCEPTS_PER_EVENT = 64
ACCEPT_PAUSE_S = 0.1
TOLD_EVERY_S = 10.0
OPEN_FILES = "the process's limit of open files"

Admit = Callable[[socket.socket, str], int]
"""Takes an accepted socket and the host that it comes from.

Returns for how many milliseconds no other is to be accepted.
"""

log = get("barnabas.server")


class RefusedConnections:
    """Logs the limit because of which connections are refused: at first, then every few seconds."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._told_at_s: dict[str, float] = {}
        self._untold: dict[str, int] = {}
        self.by_limit: dict[str, int] = {}
        """How many connections were refused, by the limit."""

    def note(self, host: str, limit: str) -> None:
        """Count a refusal; log it unless this limit was logged a moment ago."""
        now_s, count = self._clock_s(), self._untold.pop(limit, 0) + 1
        self.by_limit[limit] = self.by_limit.get(limit, 0) + 1
        told_at_s = self._told_at_s.get(limit)
        if told_at_s is not None and now_s - told_at_s < TOLD_EVERY_S:
            self._untold[limit] = count
            return
        self._told_at_s[limit] = now_s
        log.warning("refused a connection", client=host, limit=limit, refused=count)


class Listener:
    """Accepts connections and passes them to the server."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        receive_buffer_bytes: int,
        refused: RefusedConnections,
    ) -> None:
        """Bind to the address, without accepting connections."""
        self._loop = loop
        self._refused = refused
        self._admit: Admit
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket: socket.socket | None = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        try:
            self._socket.bind(address)
        except OSError:
            self._socket.close()
            raise
        found = self._socket.getsockname()
        self.address: tuple[str, int] = (found[0], found[1])
        """The bound address, with the port that was found for 0."""

    def listen(self, backlog: int, admit: Admit) -> None:
        """Start to accept."""
        assert self._socket is not None
        self._admit = admit
        self._socket.listen(backlog)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting connections."""
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_EVENT):
            assert self._socket is not None
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                if not is_exhausted(error) or not self._refuse_waiting():
                    self._pause(error)
                return
            try:
                pause_ms = self._admit(accepted, str(address[0]))
            except OSError as error:  # closed by the client before it was set up
                accepted.close()
                log.debug("lost a connection", client=str(address[0]), problem=str(error))
                continue
            if pause_ms:
                self._stop_for(pause_ms / 1000)
                return

    def _refuse_waiting(self) -> bool:
        """Close the connections that wait, with a spare descriptor; return whether that worked.

        So their clients need not wait for a timeout. Linux allocates a descriptor before it looks
        for a connection, so there may be no connection waiting.
        """
        assert self._socket is not None
        with SPARES.spared() as spared:
            if not spared:
                return False
            for _ in range(ACCEPTS_PER_EVENT):
                try:
                    accepted, address = self._socket.accept()
                except (BlockingIOError, ConnectionError):
                    return True
                except OSError:
                    return False
                accepted.close()
                self._refused.note(str(address[0]), OPEN_FILES)
        return True

    def _pause(self, error: OSError) -> None:
        """Stop accepting for a moment: no descriptor is left. Connected clients are served."""
        assert self._socket is not None
        log.error("cannot accept connections for a moment", problem=str(error))
        self._stop_for(ACCEPT_PAUSE_S)

    def _stop_for(self, pause_s: float) -> None:
        assert self._socket is not None
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(pause_s, self._resume)

    def _resume(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._accept)
