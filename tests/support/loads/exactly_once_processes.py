"""The processes of an exactly-once test: clients and a broker that can be killed.

The broker is ours, on a folder of its own, or several are (BARNABAS_BROKERS), killed in turn. Where
CHAOS_BOOTSTRAP names another one, that is used instead, so that the same tests say what Apache
Kafka does; it is killed only where CHAOS_RESTART is a command that kills it and starts it again.
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
    """What the tests need of a broker."""

    bootstrap: str
    restart: Callable[[], object] | None
    """Kills it and starts it again; None where that is not ours to do."""
    several: bool = False
    """Whether there are others that take over: then librdkafka may wait for ever (see `worker`)."""


@contextmanager
def any_cluster(data: Path, environment: Mapping[str, str] = os.environ) -> Iterator[Cluster]:
    """Start our broker, or find the one that the environment names."""
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
    """Kill one broker of a cluster, start it again once others lead in its place; be whole then."""
    node = members.nodes[number]
    node.kill()
    members.wait_replaced(number)
    node.start()
    members.wait_healthy()


def _run(command: str) -> None:
    subprocess.run(command, shell=True, check=True, timeout=PATIENCE_S)


class Client:
    """A client in a process of its own, life after life."""

    def __init__(
        self,
        name: str,
        command: Callable[[int], Sequence[str]],
        last_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        """Take the command of each life, counted from 0, and what ends it where a test fails."""
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
        """Whether there is a process."""
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
        """Return as soon as a line was written so many more times."""
        with self._heard:
            goal = self.said[line] + more
            came = self._heard.wait_for(lambda: self.said[line] >= goal, PATIENCE_S)
        assert came, f"{self.name} does not say {line}; running: {self.running}"

    def kill(self) -> None:
        """End it with SIGKILL; it must be alive until then."""
        assert self.running, f"{self.name} ended by itself\n{self.log_text()[-4000:]}"
        self._end(signal.SIGKILL)

    def doom(self) -> None:
        """Let it die in the middle of what it does next (a worker's SIGUSR1)."""
        assert self._end(signal.SIGUSR1) == -signal.SIGKILL, self.log_text()[-4000:]

    def terminate(self) -> int:
        """Ask it to stop; return its exit code."""
        return self._end(signal.SIGTERM)

    def log_text(self) -> str:
        """Return what it wrote to stderr in all its lives."""
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
    """Return a loop that reads, transforms and writes, not started yet."""
    module = "tests.support.loads.exactly_once_worker"
    given = [f"--{key}={value}" for key, value in arguments.items()]

    def command(life: int) -> list[str]:
        fixed = ["--bootstrap", bootstrap, "--name", name, "--seed", str(life)]
        return [sys.executable, "-X", "faulthandler", "-m", module, *fixed, *given]

    return Client(name, command, signal.SIGABRT)
