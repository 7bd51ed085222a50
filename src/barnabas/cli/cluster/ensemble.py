"""Start, watch and stop the processes of a local cluster together.

They run in a session of their own, so that Ctrl-C on a terminal reaches only this process, which
sends each broker one SIGTERM. A second SIGTERM would stop a broker immediately.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from barnabas.cli.cluster.local_cluster import LocalBroker, LocalCluster, is_locked
from barnabas.cli.common.failure import CommandError, warn

LOOK_S = 0.1
STOP_PATIENCE_S = 60.0
LAST_LINES = 8
SERVE = (sys.executable, "-m", "barnabas.cli", "serve")


class Process:
    """One broker's process, and its log."""

    def __init__(
        self,
        cluster: LocalCluster,
        broker: LocalBroker,
        config: Path | None,
        program: Sequence[str] = SERVE,
    ) -> None:
        self.broker = broker
        self.log = cluster.log(broker.node_id)
        cluster.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*program, *cluster.arguments(broker, config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **cluster.settings()},
                start_new_session=True,
            )
        cluster.pid(broker.node_id).write_text(f"{self.pid}\n")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Stop it with SIGTERM; a second one stops it immediately."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        if self.exit_code is None:
            self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """Return the last lines of its log since this start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(f"    {_shown(line)}" for line in lines[-LAST_LINES:])


class Ensemble:
    """The processes of a cluster, or of some of its brokers."""

    def __init__(self, cluster: LocalCluster, brokers: Sequence[LocalBroker]) -> None:
        self._cluster = cluster
        self._brokers = brokers
        self.processes: list[Process] = []
        self.failed = False
        """Whether a broker ended without a request to stop."""
        self._told = threading.Event()
        self._seen: set[int] = set()

    def start(self, config: Path | None, program: Sequence[str] = SERVE) -> None:
        """Start every broker; return immediately."""
        for broker in self._brokers:
            if is_locked(self._cluster.data(broker.node_id)):
                pid = self._cluster.running_pid(broker.node_id)
                raise CommandError(
                    f"Broker {broker.node_id} of {self._cluster.folder} is already running "
                    f"(process {pid or 'unknown'}); stop it first"
                )
        for broker in self._brokers:
            self.processes.append(Process(self._cluster, broker, config, program))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Stop all processes at SIGTERM or Ctrl-C, and at the end of the block."""
        before = {number: signal.signal(number, self._tell) for number in _STOPS}
        try:
            yield
        finally:
            try:
                self._stop()
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def wait_until(self, is_ready: Callable[[], bool], patience_s: float) -> bool:
        """Wait for a condition; return False if a signal to stop came first.

        Raise `CommandError` if a broker ends meanwhile, or the wait takes too long.
        """
        deadline_s = time.monotonic() + patience_s
        while not self._told.is_set():
            for process in self.processes:
                if process.exit_code is not None:
                    self.failed = True
                    raise CommandError(_obituary(process))
            if is_ready():
                return True
            if time.monotonic() > deadline_s:
                return False
            self._told.wait(LOOK_S)
        return False

    @property
    def is_told_to_stop(self) -> bool:
        """Whether a signal to stop came."""
        return self._told.is_set()

    def watch(self) -> None:
        """Return at a signal to stop, or when no broker is left; report brokers that end before."""
        while not self._told.is_set() and len(self._seen) < len(self.processes):
            self._report_ended()
            self._told.wait(LOOK_S)

    def _report_ended(self) -> None:
        for process in self.processes:
            code = process.exit_code
            if code is None or process.broker.node_id in self._seen:
                continue
            self._seen.add(process.broker.node_id)
            if code == 0:
                warn(f"Broker {process.broker.node_id} was stopped")
            else:
                self.failed = True
                warn(f"{_obituary(process)}\nThe others continue")

    def _stop(self) -> None:
        """Stop all at the same time; kill those that take too long."""
        self._told.set()
        running = [each for each in self.processes if each.exit_code is None]
        for each in running:
            each.stop()
        deadline_s = time.monotonic() + STOP_PATIENCE_S
        while running and time.monotonic() < deadline_s:
            for each in running:
                if each.exit_code is not None:
                    warn(f"Broker {each.broker.node_id} has stopped")
                    self.failed |= each.exit_code != 0
            running = [each for each in running if each.exit_code is None]
            time.sleep(LOOK_S / 2)
        for each in running:
            warn(f"Broker {each.broker.node_id} did not stop in time, and was killed")
            self.failed = True
            each.kill()

    def _tell(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._told.is_set():
            for process in self.processes:
                process.stop()
        self._told.set()


_STOPS = (signal.SIGINT, signal.SIGTERM)


def _obituary(process: Process) -> str:
    code = process.exit_code
    assert code is not None
    how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return (
        f"Broker {process.broker.node_id} ended {how}; the last lines of {process.log}:\n"
        f"{process.last_words()}"
    )


def _shown(line: str) -> str:
    """Return a log line as plain text; a line of JSON has its message under `event`."""
    try:
        values: Mapping[str, object] = json.loads(line)
        event = values.get("event")
    except (ValueError, AttributeError):
        return line
    rest = " ".join(f"{k}={v}" for k, v in values.items() if k not in {"event", "timestamp"})
    return f"{event}  {rest}"
