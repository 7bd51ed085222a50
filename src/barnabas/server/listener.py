"""One address that is listened on, from taking it to letting it go."""

import asyncio
import socket
from collections.abc import Callable

from barnabas.logs import get

ACCEPTS_PER_EVENT = 64
ACCEPT_PAUSE_S = 0.1

Admit = Callable[[socket.socket, str], None]
"""Takes an accepted socket and the host that it comes from."""

log = get("barnabas.server")


class Listener:
    """Takes connections and hands them on."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, address: tuple[str, int], receive_buffer_bytes: int
    ) -> None:
        """Take the address, and nobody yet."""
        self._loop = loop
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
        """Where it is, with the port that was found for 0."""

    def listen(self, backlog: int, admit: Admit) -> None:
        """Start to accept."""
        assert self._socket is not None
        self._admit = admit
        self._socket.listen(backlog)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Take no more connections."""
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
                self._pause(error)
                return
            try:
                self._admit(accepted, str(address[0]))
            except OSError as error:  # gone before it was greeted
                accepted.close()
                log.debug("lost a connection", client=str(address[0]), problem=str(error))

    def _pause(self, error: OSError) -> None:
        """Out of descriptors: those who wait keep waiting, everybody else is served."""
        assert self._socket is not None
        log.error("cannot accept connections for a moment", problem=str(error))
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(ACCEPT_PAUSE_S, self._resume)

    def _resume(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._accept)
