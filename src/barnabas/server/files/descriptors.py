"""Limits on open files and connections, and a few spare descriptors.

The system limits the descriptors of a process. The broker refuses connections and log segments
before it has used the last one (`model/open_files.py`, `Server`). Other parts of the process or the
machine may use descriptors too. If the limit is reached, the broker closes one of its spare
descriptors to sync a file, to write a small file, or to accept a connection and close it at once,
so that its client does not wait.

The limit applies to the process, and so do the spares: all brokers of a process share them.
"""

import contextlib
import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple

from barnabas.model.open_files import FILES_TO_READ

SPARES_KEPT = 4
NOTHING = os.devnull
OPEN_FOLDER = "/dev/fd"
OWN_FILES = 48
"""The descriptors that the process needs besides logs and connections: for its event loop, the
pipes of compaction, connections to other brokers, and small files that are open for a moment."""
FILES_KEPT = 256
"""Files of logs for which connections always leave room, if the limit allows it."""
LAST_FILES = 16
"""No client is accepted if its descriptor would be among the last of this number."""
EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


def is_exhausted(error: OSError) -> bool:
    """Tell whether the system has run out of descriptors or memory."""
    return error.errno in EXHAUSTED


class SpareDescriptors:
    """A few descriptors of /dev/null, which are closed to make room for another file."""

    def __init__(self, count: int = SPARES_KEPT) -> None:
        self._count = count
        self._users = 0
        self._held: list[int] = []
        self._lock = RLock()  # a broker may be collected, and release, while it is held

    def hold(self) -> None:
        """Open the spare descriptors, for one more broker."""
        with self._lock:
            self._users += 1
            self._fill()

    def release(self) -> None:
        """Close the spare descriptors, once no broker needs them."""
        with self._lock:
            self._users = max(0, self._users - 1)
            while self._held and not self._users:
                os.close(self._held.pop())

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """Open a file for a moment, with a spare descriptor if there is no other."""
        descriptor = self._open(path, flags | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
            self._refill()

    @contextmanager
    def spared(self) -> Iterator[bool]:
        """Close a spare descriptor for a moment; yield whether there was one."""
        with self._lock:
            found = self._held.pop() if self._held else None
            if found is not None:
                os.close(found)
        try:
            yield found is not None
        finally:
            self._refill()

    def _open(self, path: str, flags: int) -> int:
        while True:
            try:
                return os.open(path, flags, 0o644)
            except OSError as error:
                if not is_exhausted(error):
                    raise
                with self._lock:
                    if not self._held:
                        raise
                    os.close(self._held.pop())

    def _refill(self) -> None:
        if len(self._held) < self._count and self._users:
            with self._lock:
                self._fill()

    def _fill(self) -> None:
        with contextlib.suppress(OSError):  # the limit is reached
            while len(self._held) < self._count:
                self._held.append(os.open(NOTHING, os.O_RDONLY | os.O_CLOEXEC))


SPARES = SpareDescriptors()


def descriptor_limit() -> int:
    """Return how many files and connections may be open, all that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        with contextlib.suppress(ValueError, OSError):
            wanted = 1_000_000 if hard == resource.RLIM_INFINITY else hard
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Shares(NamedTuple):
    """Divides a process's limit of open files."""

    limit: int
    pool: int
    """For connections and the files of logs together."""
    files: int
    """The part of the pool that clients cannot use, because logs need it."""

    @property
    def connections(self) -> int:
        """How many connections there may be while there are few partitions."""
        return self.connections_beside(0)

    @property
    def partitions(self) -> int:
        """How many partitions there may be while there are few connections."""
        return max(0, min(self.limit // 2, self.pool - FILES_TO_READ))

    def connections_beside(self, partitions: int) -> int:
        """Return how many connections there may be besides a number of partitions."""
        return max(0, self.pool - max(self.files, partitions + FILES_TO_READ))

    def allows(self, partitions: int) -> dict[str, int]:
        """Return the limits of a broker with a number of partitions, for the log."""
        connections = self.connections_beside(partitions)
        return {"limit": self.limit, "connections": connections, "partitions": self.partitions}


def shares(limit: int, in_use: int) -> Shares:
    """Divide a limit, of which a part is already in use."""
    own = in_use + min(OWN_FILES, limit // 8)
    return Shares(limit, max(0, limit - own), min(FILES_KEPT, limit // 2))


def in_use() -> int:
    """Return how many descriptors the process has open; a guess if the system does not say."""
    try:
        return len(os.listdir(OPEN_FOLDER))  # noqa: PTH208 - only the number is needed
    except OSError:
        return OWN_FILES
