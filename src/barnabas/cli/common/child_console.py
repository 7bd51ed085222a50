"""A console as a child process of `serve` and `cluster up`; it ends with them in every case."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

from barnabas.cli.common.extras import needs_extra

STOP_PATIENCE_S = 10.0
PROGRAM = (sys.executable, "-m", "barnabas.cli", "console")
REQUIRED = ("starlette", "uvicorn")
"""What a console needs to start."""

OnReady = Callable[[str], None]
OnEnd = Callable[[int], object]


def require_extra() -> None:
    """Raise with what to install, before a broker starts, if a console could not start."""
    with needs_extra("console"):
        for name in REQUIRED:
            if find_spec(name) is None:
                raise ModuleNotFoundError(name=name)


class ChildConsole:
    """One console process."""

    def __init__(
        self,
        bootstrap: str,
        listen: str,
        more: Sequence[str] = (),
        *,
        on_ready: OnReady,
        on_end: OnEnd,
    ) -> None:
        """Start it. Its messages go to our stderr.

        On a thread, `on_ready` gets its URL; `on_end` gets its exit code if it ends before `stop`.
        """
        words = ["--bootstrap", bootstrap, "--listen", listen, "--with-parent", "--json", *more]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment(os.environ),
            start_new_session=True,
        )
        self._is_known = threading.Event()
        self._is_stopping = False
        self._reader = threading.Thread(target=self._read, args=(on_ready, on_end), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until its first line was read, or it ended without one."""
        self._is_known.wait(timeout_s)

    def stop(self) -> None:
        """End it; kill it if it takes too long."""
        self._is_stopping = True
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self, on_ready: OnReady, on_end: OnEnd) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not self._is_known.is_set():
                on_ready(str(json.loads(line)["url"]))
                self._is_known.set()
        code = self._process.wait()
        if not self._is_stopping:
            on_end(code)
        self._is_known.set()


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the console: those of the broker without its passwords."""
    return {key: value for key, value in inherited.items() if not key.endswith("_PASSWORD")}
