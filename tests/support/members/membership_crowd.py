"""Starts a group of real consumers in processes, and a producer of numbered records.

    with Crowd(folder, plan) as crowd:
        first = crowd.host("m0", "m1")      # one process, two members
        second = crowd.host("m2")
        crowd.wait_stable()
        second.kill()
        crowd.host("m2")                    # the member returns
        findings = crowd.finish()           # all records were processed, all members have left

A kill ends a whole process: a member that is to crash alone needs its own process.
"""

import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.support.members.membership import Findings, Life, examine
from tests.support.members.membership_log import Kind, LogReader

PATIENCE_S = 90.0
SEND_EVERY_S = 0.01
LOOK_EVERY_S = 0.05
PYTHON_HOST = (sys.executable, "-m", "tests.support.members.membership_member")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The common settings of all members of a group."""

    bootstrap: str
    topic: str
    partitions: int
    group: str
    client: str
    """The module of a Python client (`membership_CLIENT`), or "java"."""
    protocol: str = "classic"
    assignor: str = "range"
    static: bool = False
    session_ms: int = 6000
    heartbeat_ms: int = 500
    command: Sequence[str] = ()
    """The process that runs members; by default the one for Python clients."""

    def host_command(self) -> list[str]:
        """Return the command of the process."""
        return list(self.command) or [*PYTHON_HOST, self.client]

    def words(self, name: str) -> list[str]:
        """Return a member's settings as its process reads them."""
        told = {
            "bootstrap": self.bootstrap,
            "topic": self.topic,
            "group": self.group,
            "protocol": self.protocol,
            "assignor": self.assignor,
            "instance": f"{self.group}-{name}" if self.static else "",
            "session_ms": self.session_ms,
            "heartbeat_ms": self.heartbeat_ms,
        }
        return [f"{key}={value}" for key, value in told.items()]


class Host:
    """A process that runs members."""

    def __init__(self, plan: Plan, folder: Path, number: int) -> None:
        self._plan = plan
        self._folder = folder
        self._number = number
        self.members: dict[str, Path] = {}
        """The logs of the members that should be running, by name."""
        self.logs: list[Path] = []
        """The logs of all members that have ever started."""
        self.errors = folder / f"host-{number}.err"
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                plan.host_command(), stdin=subprocess.PIPE, stderr=errors, text=True
            )

    def join(self, name: str) -> None:
        """Start a member; a process uses each name once."""
        log = self._folder / f"{name}.{self._number}.log"
        self._command("join", name, str(log), *self._plan.words(name))
        self.members[name] = log
        self.logs.append(log)

    def leave(self, name: str) -> None:
        """Ask a member to close its client; that takes a moment."""
        self._command("leave", name)
        del self.members[name]

    def kill(self) -> None:
        """Kill the process, as in a crash."""
        self._process.kill()
        self._process.wait()
        self._end()

    def ask_to_leave(self) -> None:
        """Ask all members to leave."""
        try:
            self._input.close()
        except BrokenPipeError:
            return

    def close(self) -> None:
        """Ask all members to leave, and wait until the process ends."""
        self.ask_to_leave()
        if self._process.poll() is None:
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self._end()

    @property
    def _input(self) -> Any:
        assert self._process.stdin is not None
        return self._process.stdin

    def _end(self) -> None:
        self.members.clear()
        self.ask_to_leave()

    def _command(self, *words: str) -> None:
        self._input.write("\t".join(words) + "\n")
        self._input.flush()


class Numbers:
    """A producer that writes numbered records to each partition at a given rate."""

    def __init__(self, plan: Plan, rate: int) -> None:
        self.acknowledged: dict[int, dict[int, int]] = defaultdict(dict)
        self.failures: list[str] = []
        self.count = 0
        self._plan = plan
        self._rate = rate
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def start(self) -> None:
        """Start producing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sending."""
        self._ending.set()

    def finish(self) -> None:
        """Stop sending, and wait until all sent records are acknowledged."""
        self.stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the producer does not finish"
        assert self.failures == []

    def _produce(self) -> None:
        settings = {"bootstrap.servers": self._plan.bootstrap, "linger.ms": 2, "log_level": 2}
        producer = Producer({**settings, "enable.idempotence": True})
        numbers = count()
        due = time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            for _ in range(max(1, int(self._rate * SEND_EVERY_S))):
                self._send(producer, next(numbers))
            producer.poll(0)
            due += SEND_EVERY_S
        producer.flush(PATIENCE_S)

    def _send(self, producer: Any, number: int) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failures.append(f"{number}: {error}")
                return
            self.acknowledged[message.partition()][message.offset()] = number
            self.count += 1

        where = number % self._plan.partitions
        producer.produce(self._plan.topic, str(number), partition=where, on_delivery=delivered)


class Follower:
    """Reads a member's log as it grows."""

    def __init__(self, path: Path) -> None:
        self.log = LogReader(path)
        self.life = Life(path.stem)
        self.seen: set[tuple[int, int]] = set()
        """Partition and offset of every processed record."""

    def look(self) -> "Follower":
        """Read new lines."""
        for line in self.log.refresh():
            self.life.read(line)
            if line.kind is Kind.PROCESSED:
                self.seen.update(line.offsets)
        return self


@dataclass
class Crowd:
    """A running group, from `start` to `finish`."""

    folder: Path
    plan: Plan
    rate: int = 500
    """Records per second."""
    hosts: list[Host] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers = Numbers(self.plan, self.rate)
        self._followers: dict[Path, Follower] = {}

    def host(self, *names: str, **changes: Any) -> Host:
        """Start a process with members; `changes` modifies the plan for these members."""
        host = Host(replace(self.plan, **changes), self.folder, len(self.hosts))
        self.hosts.append(host)
        for name in names:
            host.join(name)
        return host

    def wait_stable(self, patience_s: float = PATIENCE_S) -> None:
        """Return once each partition has an owner, and each member enough partitions."""
        self._wait(self._is_stable, "stable", patience_s)

    def wait_processed(self, records: int, patience_s: float = PATIENCE_S) -> None:
        """Return once the given number of further records was processed."""
        goal = len(self._seen()) + records
        self._wait(lambda: len(self._seen()) >= goal, f"{goal} processed", patience_s)

    def wait_seen_by_all(self, records: int, patience_s: float = PATIENCE_S) -> None:
        """Return once every running member has processed the given number of records."""

        def look() -> bool:
            return all(len(follower.look().seen) >= records for follower in self._there())

        self._wait(look, f"{records} processed by all", patience_s)

    def finish(self) -> Findings:
        """Stop producing, wait until all is processed, let the members leave; return findings."""
        self.numbers.finish()
        self._wait(self._is_all_processed, "all processed", PATIENCE_S)
        for host in self.hosts:
            host.ask_to_leave()
        for host in self.hosts:
            host.close()
        return self.findings()

    def findings(self) -> Findings:
        """Check the logs written so far."""
        logs = {path.stem: follower.look().log.lines for path, follower in self._all().items()}
        return examine(logs, self.numbers.acknowledged)

    def __enter__(self) -> "Crowd":
        self.numbers.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        self.numbers.stop()
        for host in self.hosts:
            if error is not None:
                sys.stderr.write(host.errors.read_text()[-2000:])
            host.kill()

    def _wait(self, look: Callable[[], bool], what: str, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        pause = threading.Event()
        while not look():
            assert time.monotonic() < deadline, f"not {what} in {patience_s:g} s: {self._state()}"
            pause.wait(LOOK_EVERY_S)

    def _all(self) -> dict[Path, Follower]:
        """Return all members that have ever started."""
        for host in self.hosts:
            for path in host.logs:
                self._followers.setdefault(path, Follower(path))
        return self._followers

    def _there(self) -> list[Follower]:
        """Return all running members."""
        followers = self._all()
        return [followers[path] for host in self.hosts for path in host.members.values()]

    def _present(self) -> list[Life]:
        return [follower.look().life for follower in self._there()]

    def _state(self) -> str:
        present = self._present()
        owned = {life.name: sorted(life.owned) for life in present}
        failures = [f"; {life.name}: {failure}" for life in present for failure in life.failures]
        seen = f"{len(self._seen())} processed of {self.numbers.count}"
        return f"{owned}, {seen}{''.join(failures)}"

    def _is_stable(self) -> bool:
        owned = [life.owned for life in self._present()]
        everything: set[int] = set().union(*owned)
        least = self.plan.partitions // max(1, len(owned))
        return (
            sum(map(len, owned)) == len(everything) == self.plan.partitions
            and min(map(len, owned), default=0) >= least
        )

    def _seen(self) -> set[tuple[int, int]]:
        return set().union(*(follower.look().seen for follower in self._all().values()))

    def _is_all_processed(self) -> bool:
        acknowledged = self.numbers.acknowledged
        wanted = {(p, offset) for p, offsets in acknowledged.items() for offset in offsets}
        return wanted <= self._seen()
