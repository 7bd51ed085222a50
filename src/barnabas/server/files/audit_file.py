"""Appends the lines of the audit log to a file, on the thread of the short chores.

The event loop only puts lines into a queue. The queue is bounded: if the disk refuses lines they
are dropped, and the next line that is written says how many were. The file is opened for each
batch of lines, so a tool that rotates it may rename it at any time.
"""

import json
import os
from collections import deque
from collections.abc import Callable

from barnabas.logs import get

LINES_MAX = 50_000
FILE_MODE = 0o600

log = get("barnabas.server")


class AuditFile:
    """The lines that wait to be written."""

    def __init__(self, path: str, in_background: Callable[[Callable[[], None]], None]) -> None:
        self._path = path
        self._in_background = in_background
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._is_scheduled = False
        self._has_failed = False

    def add(self, line: str) -> None:
        """Queue a line."""
        if len(self._lines) >= LINES_MAX:
            self._dropped += 1
        else:
            self._lines.append(line)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._in_background(self.write)

    def write(self) -> None:
        """Write all lines that wait."""
        self._is_scheduled = False
        lines, dropped = [], self._dropped
        while self._lines:
            lines.append(self._lines.popleft())
        if dropped:
            self._dropped -= dropped
            lines.append(json.dumps({"dropped": dropped}))
        if not lines:
            return
        content = "".join(f"{line}\n" for line in lines).encode()
        try:
            self._append(content)
        except OSError as error:
            self._dropped += len(lines)
            if not self._has_failed:
                problem = error.strerror or str(error)
                log.error("cannot write the audit log", path=self._path, problem=problem)  # noqa: TRY400
            self._has_failed = True
        else:
            self._has_failed = False

    def _append(self, content: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
        with os.fdopen(descriptor, "ab") as file:
            file.write(content)
