"""Starts a group of real consumers in processes, and a producer of numbered records.

    with Crowd(folder, plan) as crowd:
        first = crowd.host("m0", "m1")      # one process, two members
        second = crowd.host("m2")
        crowd.wait_stable()
        second.kill()
        crowd.host("m2")                    # it returns
        findings = crowd.finish()           # everything was processed, all have left

A kill takes a whole process: who is to crash alone needs a host alone.
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
    """What all members of a group have in common."""

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
    """The process that hosts members; by default the one for Python clients."""

    def host_command(self) -> list[str]:
        """Return the process to start."""
        return list(self.command) or [*PYTHON_HOST, self.client]

    def words(self, name: str) -> list[str]:
        """Return what a member is told, as its host reads it."""
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
    """One process with members in it."""

    def __init__(self, plan: Plan, folder: Path, number: int) -> None:
        self._plan = plan
        self._folder = folder
        self._number = number
        self.members: dict[str, Path] = {}
        """The logs of those that should be at work, by name."""
        self.logs: list[Path] = []
        """The logs of all that ever were."""
        self.errors = folder / f"host-{number}.err"
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                plan.host_command(), stdin=subprocess.PIPE, stderr=errors, text=True
            )

    def join(self, name: str) -> None:
        """Let a member begin; a name is used once in a process."""
        log = self._folder / f"{name}.{self._number}.log"
        self._command("join", name, str(log), *self._plan.words(name))
        self.members[name] = log
        self.logs.append(log)

    def leave(self, name: str) -> None:
        """Let a member close its client; it takes a moment."""
        self._command("leave", name)
        del self.members[name]

    def kill(self) -> None:
        """End the process as a crash does."""
        self._process.kill()
        self._process.wait()
        self._end()

    def let_go(self) -> None:
        """Let all members leave."""
        try:
            self._input.close()
        except BrokenPipeError:
            return

    def close(self) -> None:
        """Let all members leave, and wait for the end of the process."""
        self.let_go()
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
        self.let_go()

    def _command(self, *words: str) -> None:
        self._input.write("\t".join(words) + "\n")
        self._input.flush()


class Numbers:
    """A producer that writes records with a number each, partition by partition, at a rate."""

    def __init__(self, plan: Plan, rate: int) -> None:
        self.acknowledged: dict[int, dict[int, int]] = defaultdict(dict)
        self.failures: list[str] = []
        self.count = 0
        self._plan = plan
        self._rate = rate
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._ending.set()

    def finish(self) -> None:
        """Send no more, and wait until all that was sent is acknowledged."""
        self.stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the producer is stuck"
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
    """Reads one member's log as it grows."""

    def __init__(self, path: Path) -> None:
        self.log = LogReader(path)
        self.life = Life(path.stem)
        self.seen: set[tuple[int, int]] = set()
        """Partition and offset of every record it processed."""

    def look(self) -> "Follower":
        """Take in what is new."""
        for line in self.log.refresh():
            self.life.read(line)
            if line.kind is Kind.PROCESSED:
                self.seen.update(line.offsets)
        return self


@dataclass
class Crowd:
    """A group at work, from `start` to `finish`."""

    folder: Path
    plan: Plan
    rate: int = 500
    """Records a second."""
    hosts: list[Host] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers = Numbers(self.plan, self.rate)
        self._followers: dict[Path, Follower] = {}

    def host(self, *names: str, **changes: Any) -> Host:
        """Start a process with members; changes are to the plan, for these members alone."""
        host = Host(replace(self.plan, **changes), self.folder, len(self.hosts))
        self.hosts.append(host)
        for name in names:
            host.join(name)
        return host

    def wait_stable(self, patience_s: float = PATIENCE_S) -> None:
        """Return once every partition has one owner, and no member has too few."""
        self._wait(self._is_stable, "stable", patience_s)

    def wait_processed(self, records: int, patience_s: float = PATIENCE_S) -> None:
        """Return once so many more records were processed."""
        goal = len(self._seen()) + records
        self._wait(lambda: len(self._seen()) >= goal, f"{goal} processed", patience_s)

    def wait_seen_by_all(self, records: int, patience_s: float = PATIENCE_S) -> None:
        """Return once every member that is there has processed so many records."""

        def look() -> bool:
            return all(len(follower.look().seen) >= records for follower in self._there())

        self._wait(look, f"{records} processed by all", patience_s)

    def finish(self) -> Findings:
        """Stop producing, see everything processed, let all leave; return what the logs show."""
        self.numbers.finish()
        self._wait(self._is_all_processed, "all processed", PATIENCE_S)
        for host in self.hosts:
            host.let_go()
        for host in self.hosts:
            host.close()
        return self.findings()

    def findings(self) -> Findings:
        """Examine what was logged so far."""
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
        """Everyone who ever was a member."""
        for host in self.hosts:
            for path in host.logs:
                self._followers.setdefault(path, Follower(path))
        return self._followers

    def _there(self) -> list[Follower]:
        """Everyone who is a member now."""
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
