"""A console as a child process of `serve` and `cluster up`; it ends with them in every case."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

STOP_PATIENCE_S = 10.0
PROGRAM = (sys.executable, "-m", "barnabas.cli", "console")

OnReady = Callable[[str], None]


class ChildConsole:
    """One console process."""

    def __init__(
        self, bootstrap: str, listen: str, more: Sequence[str] = (), on_ready: OnReady = print
    ) -> None:
        """Start it; `on_ready` gets its URL, on a thread. Its messages go to our stderr."""
        words = ["--bootstrap", bootstrap, "--listen", listen, "--with-parent", "--json", *more]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment(os.environ),
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(on_ready,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until its first line was read, or it ended without one."""
        self._reader.join(timeout_s)

    def stop(self) -> None:
        """End it; kill it if it takes too long."""
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self, on_ready: OnReady) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            on_ready(str(json.loads(line)["url"]))


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the console: those of the broker without its passwords."""
    return {key: value for key, value in inherited.items() if not key.endswith("_PASSWORD")}
