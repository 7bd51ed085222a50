"""Run a broker in a separate process that tests can kill, pause and restart.

    with BrokerSubprocess(folder) as broker:
        broker.kill()
        broker.start()      # the same directory, the same port

All its processes write to one log file outside the data directory; `log_lines` reads it. The end of
the `with` block always ends the process.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from barnabas.config.keys import BY_PATH
from barnabas.testing.free_ports import free_port
from barnabas.testing.waiting import eventually

SERVE = "import sys; from barnabas.cli.serve import main; sys.exit(main(sys.argv[1:]))"
PATIENCE_S = 60.0


class BrokerFailedError(AssertionError):
    """The process ended, or did not become ready in time."""


class BrokerSubprocess:
    """One broker with a fixed directory and port, across restarts."""

    def __init__(
        self,
        data: str | Path,
        *,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        descriptors: int | None = None,
        listener: str = "",
    ) -> None:
        """Take a data directory, settings by their dotted names, and options of the process.

        Listeners need a file (`--config` in the arguments). `listener` is the plaintext one, which
        has the host and the port, and which is asked whether the broker is ready.
        """
        self.data = Path(data)
        self.host = host
        self.port = port or free_port(host)
        self.seconds_to_ready = 0.0
        self.listeners: dict[str, str] = {}
        """The addresses for clients, by the name of the listener, if it has several."""
        self.http_address: tuple[str, int] | None = None
        """The address for metrics and health, if it serves them."""
        self._listener = listener
        self._arguments = tuple(arguments)
        self._descriptors = descriptors
        self._environment = {**variables(settings or {}), **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        with tempfile.NamedTemporaryFile(prefix="barnabas-", suffix=".log", delete=False) as log:
            self.log_file = Path(log.name)

    @property
    def address(self) -> tuple[str, int]:
        """The address, for sockets."""
        return self.host, self.port

    @property
    def bootstrap(self) -> str:
        """The address, for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The current process, or the last one."""
        assert self._process is not None, "this broker was never started"
        return self._process

    def set_variable(self, name: str, value: str) -> None:
        """Set an environment variable for later starts of the broker."""
        self._environment[name] = value

    def start(self) -> "BrokerSubprocess":
        """Start it and return once it is ready."""
        self.spawn()
        self.wait_ready()
        return self

    def spawn(self) -> None:
        """Start the process and return immediately."""
        assert self._process is None or self._process.poll() is not None, "it is running"
        self._close_pipe()
        listen = f"{self._listener}={self.bootstrap}" if self._listener else self.bootstrap
        command = [sys.executable, "-c", SERVE, "--listen", listen, "--data", str(self.data)]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BARNABAS_")}
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*self._prefix(), *command, "--json", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**inherited, **self._environment},
            )

    def wait_ready(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until the broker prints that it is ready; raise with its log if it does not."""
        stdout = self.process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:  # select() stops at descriptor 1024
            selector.register(stdout, selectors.EVENT_READ)
            readable = selector.select(patience_s)
        line = stdout.readline() if readable else b""
        if not line:
            state = f"exit code {self.process.wait(10)}" if readable else "no output"
            raise BrokerFailedError(f"the broker did not start: {state}\n{self.log_text()[-4000:]}")
        said = json.loads(line)
        self.listeners = said.get("listeners", {})
        if "http" in said:
            place, _, number = said["http"].rpartition(":")
            self.http_address = place.strip("[]"), int(number)
        self.port = int(said["listen"].rpartition(":")[2])
        self.seconds_to_ready = float(said.get("seconds", 0))

    def kill(self) -> None:
        """End it with SIGKILL, like a crash; the page cache remains."""
        self.send(signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def terminate(self) -> int:
        """Stop it with SIGTERM; return its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def pause(self) -> None:
        """Suspend the process (SIGSTOP)."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a suspended process (SIGCONT)."""
        self.send(signal.SIGCONT)

    def restart(self) -> "BrokerSubprocess":
        """Kill it and start it again."""
        self.kill()
        return self.start()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait until it ends; return its exit code."""
        return self.process.wait(patience_s)

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def log_text(self) -> str:
        """Return the log of all its processes."""
        return self.log_file.read_text(errors="replace")

    def log_lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """Return its log lines, optionally those of one event."""
        lines = [json.loads(line) for line in self.log_text().splitlines() if line[:1] == "{"]
        return [line for line in lines if event is None or line["event"] == event]

    def wait_for_log(
        self, event: str, count: int = 1, patience_s: float = PATIENCE_S
    ) -> list[dict[str, Any]]:
        """Wait until it has logged an event `count` times."""

        def look() -> list[dict[str, Any]]:
            return found if len(found := self.log_lines(event)) >= count else []

        return eventually(look, patience_s)

    def memory_bytes(self) -> int:
        """Return its resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def close(self) -> None:
        """End the process and delete the log."""
        if self.running:
            self.send(signal.SIGCONT)
            self.kill()
        self._close_pipe()
        self.log_file.unlink(missing_ok=True)

    def __enter__(self) -> "BrokerSubprocess":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            sys.stderr.write(f"--- the broker's log\n{self.log_text()[-8000:]}\n")
        self.close()

    def _prefix(self) -> list[str]:
        if self._descriptors is None:
            return []
        return ["/bin/sh", "-c", f'ulimit -n {self._descriptors} && exec "$@"', "sh"]

    def _close_pipe(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()


def variables(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the environment variables for settings by dotted names."""
    found = {}
    for path, value in settings.items():
        section, _, name = path.partition(".")
        found[BY_PATH[section, name].variable] = str(value)
    return found
