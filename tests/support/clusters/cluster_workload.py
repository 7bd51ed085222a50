"""Starts and checks the client processes of a cluster storm: producers, transactors, readers,
members.

    with Workload(cluster.bootstrap, folder) as load:
        load.wait_for(10_000)       # acknowledgements
        ...
        load.finish()
        verdict = load.verdict()

The topic `load` has plain records of idempotent producers, `ledger` has transactions. Readers read
both during the storm, and again from the beginning after it.

In a cluster with security each kind of client is a user with the rights that it needs, and no
others (`RIGHTS`).
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.model.permissions import Operation, ResourceType
from barnabas.testing.waiting import eventually
from tests.support.clusters.cluster_check import (
    Transaction,
    check_commits,
    check_log,
    check_reader,
    check_shown_committed,
    check_transactions,
    transactions_of,
)
from tests.support.clusters.cluster_ledger import (
    Reading,
    count_rows,
    read_acks,
    read_diary,
    read_reading,
)
from tests.support.clusters.cluster_security import ADMIN, Allowed, ClusterSecurity

LOAD = "load"
LEDGER = "ledger"
GROUP = "members"
PATIENCE_S = 120.0
READ_S = 900.0
UNCOMMITTED = "read_uncommitted"
COMMITTED = "read_committed"
LEDGER_READERS = ((LEDGER, UNCOMMITTED), (LEDGER, COMMITTED))
PRODUCER, TRANSACTOR, READER, MEMBER = "producer", "transactor", "reader", "member"
USERS = {
    "cluster_producer": PRODUCER,
    "cluster_transactor": TRANSACTOR,
    "cluster_reader": READER,
    "cluster_member": MEMBER,
}
"""The user of each module of clients."""
RIGHTS: dict[str, tuple[Allowed, ...]] = {
    PRODUCER: (Allowed(Operation.WRITE, ResourceType.TOPIC, LOAD),),
    TRANSACTOR: (
        Allowed(Operation.WRITE, ResourceType.TOPIC, LEDGER),
        Allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactor-", prefix=True),
    ),
    READER: (
        Allowed(Operation.READ, ResourceType.TOPIC, LOAD),
        Allowed(Operation.READ, ResourceType.TOPIC, LEDGER),
        Allowed(Operation.DESCRIBE, ResourceType.GROUP, READER),  # librdkafka looks for it
    ),
    MEMBER: (
        Allowed(Operation.READ, ResourceType.TOPIC, LOAD),
        Allowed(Operation.READ, ResourceType.GROUP, GROUP),
    ),
}
"""What each user may do."""
PATIENT: dict[str, object] = {"socket.connection.setup.timeout.ms": 5000}
"""TLS and SCRAM take several round trips, and links may be slow."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """How many clients of each kind there are, and their rates."""

    partitions: int = 6
    producers: int = 2
    rate: int = 1000
    """Records a second of each producer."""
    ledger_partitions: int = 3
    transactors: int = 1
    members: int = 2
    watched: int = 2
    """How many partitions of `load` have readers during the storm."""
    copies: int = 3


@dataclass
class Verdict:
    """The numbers of what was checked, and the problems."""

    acknowledged: int = 0
    committed: int = 0
    """Committed transactions; aborted ones, and those with an unknown outcome."""
    aborted: int = 0
    unknown: int = 0
    read: int = 0
    commits: int = 0
    """Offsets that were acknowledged as committed to a group."""
    problems: list[str] = field(default_factory=list)


class ClientProcess:
    """Runs one client until it is stopped."""

    def __init__(self, module: str, ledger: Path, **arguments: object) -> None:
        self.name = ledger.stem
        self.ledger = ledger
        words = [f"--{key.replace('_', '-')}={value}" for key, value in arguments.items()]
        command = [sys.executable, "-m", f"tests.support.clusters.{module}", f"--ledger={ledger}"]
        self._errors = ledger.with_suffix(".err")
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, *words], stdin=subprocess.DEVNULL, stderr=errors
            )

    @property
    def failure(self) -> str:
        """Return the client's error if it ended by itself; empty while it runs."""
        code = self.process.poll()
        return f"{self.name} ended with {code}: {self.stderr_tail()}" if code else ""

    def stderr_tail(self) -> str:
        """Return the end of its stderr."""
        return self._errors.read_text(errors="replace")[-2000:]

    def request_stop(self) -> None:
        """Send SIGTERM without waiting."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, patience_s: float = PATIENCE_S) -> str:
        """Wait until the client ends; return its problem, if any."""
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"{self.name} did not end within {patience_s} s"
        return self.failure

    def close(self) -> None:
        """Kill the client."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Workload:
    """Runs all clients, from their start to the last check."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        crowd: Crowd | None = None,
        security: ClusterSecurity | None = None,
    ) -> None:
        """Take the addresses, a folder for ledgers, and the cluster's security if it has any."""
        self._security = security
        self.crowd = crowd or Crowd()
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._bootstrap = bootstrap
        self.producers: list[ClientProcess] = []
        self._transactors: list[ClientProcess] = []
        self._readers: list[tuple[str, str, ClientProcess]] = []
        self._members: list[ClientProcess] = []
        self._problems: list[str] = []

    @property
    def clients(self) -> list[ClientProcess]:
        """Return all clients."""
        readers = [reader for _, _, reader in self._readers]
        return [*self.producers, *self._transactors, *readers, *self._members]

    @property
    def acknowledged(self) -> int:
        """How many records of idempotent producers were acknowledged so far."""
        return sum(count_rows(producer.ledger) for producer in self.producers)

    def create_topics(self) -> None:
        """Create both topics."""
        crowd = self.crowd
        admin = AdminClient({**self._connection(ADMIN), "log_level": 0})
        wanted = [(LOAD, crowd.partitions), (LEDGER, crowd.ledger_partitions)]
        made = admin.create_topics([NewTopic(name, n, crowd.copies) for name, n in wanted])
        for done in made.values():
            done.result(PATIENCE_S)

    def start(self) -> "Workload":
        """Start all clients."""
        crowd = self.crowd
        for number in range(1, crowd.producers + 1):
            self.producers.append(
                self._client(
                    "cluster_producer",
                    f"acks-{number}",
                    topic=LOAD,
                    partitions=crowd.partitions,
                    number=number,
                    rate=crowd.rate,
                )
            )
        for number in range(101, 101 + crowd.transactors):
            self._transactors.append(
                self._client(
                    "cluster_transactor",
                    f"transactions-{number}",
                    topic=LEDGER,
                    partitions=crowd.ledger_partitions,
                    number=number,
                )
            )
        self._start_readers()
        return self

    def _start_readers(self) -> None:
        watched = {LOAD: self.crowd.watched, LEDGER: self.crowd.ledger_partitions}
        for topic, isolation in ((LOAD, UNCOMMITTED), *LEDGER_READERS):
            if watched[topic]:
                name = f"shown-{topic}-{isolation}"
                reader = self._reader(topic, isolation, name, range(watched[topic]))
                self._readers.append((topic, isolation, reader))
        for number in range(self.crowd.members):
            name = f"commits-{number}"
            member = self._client("cluster_member", name, topic=LOAD, group=GROUP)
            self._members.append(member)

    def wait_for(self, more: int, patience_s: float = PATIENCE_S) -> None:
        """Return once the given number of further records was acknowledged."""
        goal = self.acknowledged + more
        eventually(lambda: self.acknowledged >= goal or self.failures(), patience_s)
        assert not self.failures(), self.failures()

    def failures(self) -> list[str]:
        """Return the errors of clients that gave up."""
        return [client.failure for client in self.clients if client.failure]

    def errors(self) -> list[str]:
        """Return the client errors that are not retriable."""
        return [
            f"{client.name}: {stderr_tail}"
            for client in self.clients
            if (stderr_tail := client.stderr_tail())
        ]

    def retried(self) -> dict[str, int]:
        """Return the errors that members and transactors retried, with counts."""
        diaries = [read_diary(each.ledger) for each in (*self._transactors, *self._members)]
        lines = [line for diary in diaries for line in diary if "reason" in line]
        return dict(Counter(f"{line['event']}: {line['reason']}" for line in lines))

    def finish(self) -> None:
        """Stop the producers, then the readers; record the problems of each."""
        for group in (self.producers, self._transactors):
            for client in group:
                client.request_stop()
            self._problems += [problem for client in group if (problem := client.wait())]
        for _, _, reader in self._readers:
            reader.request_stop()
        for member in self._members:
            member.request_stop()
        others = [*(reader for _, _, reader in self._readers), *self._members]
        self._problems += [problem for client in others if (problem := client.wait())]

    def verdict(self) -> Verdict:
        """Read everything once more, and compare it with the clients' records."""
        found = Verdict(problems=list(self._problems))
        acks = {number: read_acks(client.ledger) for number, client in enumerate(self.producers, 1)}
        found.acknowledged = sum(len(a.numbers) for each in acks.values() for a in each.values())
        final = self._read_again(found)
        stored = final[LOAD, UNCOMMITTED]
        found.read = sum(len(reading.offsets) for reading in stored.values())
        found.problems += [f"{LOAD}: {problem}" for problem in check_log(acks, stored)]
        self._check_transactions(final[LEDGER, UNCOMMITTED], final[LEDGER, COMMITTED], found)
        for topic, isolation, reader in self._readers:
            problems = check_reader(read_reading(reader.ledger), final[topic, isolation])
            found.problems += [f"{topic}, {isolation}: {problem}" for problem in problems]
            if isolation == COMMITTED:
                found.problems += check_shown_committed(read_reading(reader.ledger))
        self._check_commits(found)
        return found

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        """Return the end offset of each partition."""
        consumer = Consumer({**self._connection(READER), "group.id": "ends"})
        try:
            return {
                place: consumer.get_watermark_offsets(TopicPartition(*place), PATIENCE_S)[1]
                for place in self.places()
            }
        finally:
            consumer.close()

    def places(self) -> list[tuple[str, int]]:
        """Return all partitions."""
        counts = {LOAD: self.crowd.partitions, LEDGER: self.crowd.ledger_partitions}
        return [(topic, number) for topic, count in counts.items() for number in range(count)]

    def create_users(self) -> None:
        """Create the users of a cluster with security; write their properties to files."""
        if self._security is None:
            return
        for user, rights in RIGHTS.items():
            self._security.add_user(user, rights)
            properties = {**PATIENT, **self._security.properties(user)}
            self._properties(user).write_text(json.dumps(properties))

    def __enter__(self) -> "Workload":
        self.create_users()
        self.create_topics()
        return self.start()

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()

    def _check_transactions(
        self, stored: dict[int, Reading], committed: dict[int, Reading], found: Verdict
    ) -> None:
        diaries: dict[int, Sequence[Transaction]] = {
            101 + number: transactions_of(read_diary(client.ledger))
            for number, client in enumerate(self._transactors)
        }
        outcomes = [each.outcome for diary in diaries.values() for each in diary]
        found.committed = outcomes.count("committed")
        found.aborted = outcomes.count("aborted")
        found.unknown = outcomes.count("unknown")
        problems = check_transactions(diaries, committed, self.crowd.ledger_partitions)
        problems += check_log({}, stored) + check_log({}, committed)
        problems += check_reader(committed, stored, whole=False)
        found.problems += [f"{LEDGER}: {problem}" for problem in problems]

    def _check_commits(self, found: Verdict) -> None:
        diaries = [list(read_diary(member.ledger)) for member in self._members]
        found.commits = sum(line["event"] == "committed" for diary in diaries for line in diary)
        found.problems += [f"{GROUP}: {problem}" for problem in check_commits(diaries)]

    def _read_again(self, found: Verdict) -> dict[tuple[str, str], dict[int, Reading]]:
        counts = {LOAD: self.crowd.partitions, LEDGER: self.crowd.ledger_partitions}
        readers = {
            (topic, isolation): self._reader(
                topic,
                isolation,
                f"final-{topic}-{isolation}",
                range(counts[topic]),
                until_end=1,
            )
            for topic, isolation in ((LOAD, UNCOMMITTED), *LEDGER_READERS)
        }
        found.problems += [told for reader in readers.values() if (told := reader.wait(READ_S))]
        return {place: read_reading(reader.ledger) for place, reader in readers.items()}

    def _reader(
        self,
        topic: str,
        isolation: str,
        name: str,
        partitions: Sequence[int],
        *,
        until_end: int = 0,
    ) -> ClientProcess:
        return self._client(
            "cluster_reader",
            name,
            topic=topic,
            isolation=isolation,
            partitions=",".join(map(str, partitions)),
            until_end=until_end,
        )

    def _client(self, module: str, name: str, **arguments: object) -> ClientProcess:
        ledger = self.folder / f"{name}.ledger"
        if self._security is not None:
            arguments["security"] = self._properties(USERS[module])
        return ClientProcess(module, ledger, bootstrap=self._bootstrap, **arguments)

    def _connection(self, user: str) -> dict[str, str]:
        secure = {} if self._security is None else self._security.properties(user)
        return {"bootstrap.servers": self._bootstrap, **secure}

    def _properties(self, user: str) -> Path:
        return self.folder / f"{user}.json"
