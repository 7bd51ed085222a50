"""The processes of an exactly-once test: clients and a broker that can be killed.

The test starts one Barnabas broker on its own folder, or several (BARNABAS_BROKERS) that it kills
in turn. If CHAOS_BOOTSTRAP is set, the test uses that broker instead, to compare with Apache Kafka.
It kills that broker only if CHAOS_RESTART is set to a command that kills and restarts it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from barnabas.testing.cluster_processes import ClusterProcesses
from barnabas.testing.process import BrokerSubprocess
from tests.support.clusters.cluster_choice import brokers, cluster_of

PATIENCE_S = 60.0
BROKER_SETTINGS = {
    "transactions.abort_check_interval": "1s",
    "groups.consumer_session_timeout": "6s",
    "groups.consumer_heartbeat_interval": "1s",
}
IMPATIENT = {"cluster.broker_session_timeout": "3s"}


@dataclass(frozen=True)
class Cluster:
    """The broker interface that the tests use."""

    bootstrap: str
    restart: Callable[[], object] | None
    """Kills the broker and starts it again; None if the test may not do that."""
    several: bool = False
    """Whether other brokers take over: then librdkafka may wait forever (see `worker`)."""


@contextmanager
def any_cluster(data: Path, environment: Mapping[str, str] = os.environ) -> Iterator[Cluster]:
    """Start a Barnabas broker, or use the one in the environment."""
    if bootstrap := environment.get("CHAOS_BOOTSTRAP"):
        command = environment.get("CHAOS_RESTART")
        yield Cluster(bootstrap, (lambda: _run(command)) if command else None)
        return
    if brokers(environment) > 1:
        with cluster_of(data, {**BROKER_SETTINGS, **IMPATIENT}) as members:
            turns = cycle(members.nodes)
            yield Cluster(members.bootstrap, lambda: _fail_over(members, next(turns)), several=True)
        return
    with BrokerSubprocess(data, settings=BROKER_SETTINGS) as broker:
        yield Cluster(broker.bootstrap, broker.restart)


def _fail_over(members: ClusterProcesses, number: int) -> None:
    """Kill one broker of a cluster and restart it once others lead; wait until all are in sync."""
    node = members.nodes[number]
    node.kill()
    members.wait_replaced(number)
    node.start()
    members.wait_healthy()


def _run(command: str) -> None:
    subprocess.run(command, shell=True, check=True, timeout=PATIENCE_S)


class Client:
    """A client in a separate process, which can be restarted."""

    def __init__(
        self,
        name: str,
        command: Callable[[int], Sequence[str]],
        last_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        """Take the command of each life, counted from 0, and the cleanup for a failed test."""
        self.name = name
        self._last_signal = last_signal
        self.lives = 0
        self.said: Counter[str] = Counter()
        """How often each line was written to stdout, in all lives."""
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._heard = threading.Condition()
        with tempfile.NamedTemporaryFile(prefix=f"{name}-", suffix=".log", delete=False) as log:
            self._log_file = Path(log.name)

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> "Client":
        """Start the next life."""
        assert not self.running, f"{self.name} is running"
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(self.lives),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.lives += 1
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()
        return self

    def wait_for(self, line: str, more: int = 1) -> None:
        """Return once a line was written the given number of further times."""
        with self._heard:
            goal = self.said[line] + more
            came = self._heard.wait_for(lambda: self.said[line] >= goal, PATIENCE_S)
        assert came, f"{self.name} did not print {line}; running: {self.running}"

    def kill(self) -> None:
        """Kill the process with SIGKILL; it must be running."""
        assert self.running, f"{self.name} exited by itself\n{self.log_text()[-4000:]}"
        self._end(signal.SIGKILL)

    def die_in_next_step(self) -> None:
        """Let it die in the middle of its next step (a worker's SIGUSR1)."""
        assert self._end(signal.SIGUSR1) == -signal.SIGKILL, self.log_text()[-4000:]

    def terminate(self) -> int:
        """Ask the process to stop; return its exit code."""
        return self._end(signal.SIGTERM)

    def log_text(self) -> str:
        """Return its stderr of all lives."""
        return self._log_file.read_text(errors="replace")

    def __enter__(self) -> "Client":
        return self.start()

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if self.running:
            self._end(signal.SIGKILL if error is None else self._last_signal)
        if error is not None:
            said = dict(self.said)
            sys.stderr.write(f"--- {self.name} said {said}\n{self.log_text()[-8000:]}\n")
        self._log_file.unlink(missing_ok=True)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        assert self._listener is not None
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE_S)
        self._listener.join(PATIENCE_S)
        return code

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                with self._heard:
                    self.said[line.strip()] += 1
                    self._heard.notify_all()


def worker(bootstrap: str, name: str, arguments: Mapping[str, object]) -> Client:
    """Return a consume-transform-produce loop, not started yet."""
    module = "tests.support.loads.exactly_once_worker"
    given = [f"--{key}={value}" for key, value in arguments.items()]

    def command(life: int) -> list[str]:
        fixed = ["--bootstrap", bootstrap, "--name", name, "--seed", str(life)]
        return [sys.executable, "-X", "faulthandler", "-m", module, *fixed, *given]

    return Client(name, command, signal.SIGABRT)
