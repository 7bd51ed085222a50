"""Wait for the answers of several links, or to be woken by another thread."""

import contextlib
import selectors
import socket
from collections.abc import Iterable
from typing import Protocol, TypeVar


class Readable(Protocol):
    """Something with a socket."""

    def fileno(self) -> int:
        """Return the number of the socket."""


R = TypeVar("R", bound=Readable)


class Waker:
    """Ends a wait from another thread."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)

    def wake(self) -> None:
        """End the current wait, or the next one."""
        with contextlib.suppress(OSError):  # it is awake, or closed
            self._there.send(b"\0")

    def wait(self, links: Iterable[R], timeout_s: float) -> list[R]:
        """Return the links that have bytes to read, after the timeout none."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._here, selectors.EVENT_READ)
            for link in links:
                selector.register(link, selectors.EVENT_READ, link)
            found = selector.select(max(0.0, timeout_s))
        with contextlib.suppress(BlockingIOError):
            self._here.recv(4096)
        return [key.data for key, _ in found if key.data is not None]

    def close(self) -> None:
        """Free the sockets."""
        self._here.close()
        self._there.close()
