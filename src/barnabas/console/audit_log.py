"""The audit log of the console: one line of JSON for each change and each refused change.

    {"time": "2026-03-01T12:00:00.000Z", "user": "alice", "address": "10.0.0.5", "action":
     "topic.delete", "target": "orders", "result": "done", "details": {}}

Results are done, planned (a dry run), refused (the console or a broker did not allow it) and
failed. Values of records are never written.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from barnabas.admin.admin_errors import AdminError

TEXT_MAX = 1_000
DETAILS_MAX = 16_000

Write = Callable[[str], None]


class AuditLog:
    """Writes lines to a file, or to stderr."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        if path is not None:
            try:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._descriptor = os.open(path, flags, 0o600)
            except OSError as error:
                raise AdminError(f"--audit {path}: {error.strerror}") from None

    def write(
        self,
        *,
        user: str | None,
        address: str,
        action: str,
        target: str,
        result: str,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one line."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found = json.dumps(details or {}, default=str)
        fields = {
            "time": moment,
            "user": user,
            "address": address,
            "action": action,
            "target": target[:TEXT_MAX],
            "result": result,
            "details": json.loads(found)
            if len(found) <= DETAILS_MAX
            else {"cut": found[:TEXT_MAX]},
        }
        line = json.dumps(fields) + "\n"
        with self._lock:
            if self._descriptor is None:
                sys.stderr.write(line)
                sys.stderr.flush()
            else:
                os.write(self._descriptor, line.encode())

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
