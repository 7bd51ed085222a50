"""A group coordinator whose log is a list: no disk, no clock, no other partition.

    runner = GroupRunner({"a": 2})
    answer = runner.run(lambda machine: machine.offsets.commit(request, runner.caller(9)))

Records are kept as bytes, and `reload` replays them, so that a machine with its state in memory can
be compared with one that has only the log.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple, TypeVar

from barnabas.groups.group_machine import GroupMachine
from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import TopicCreated, TopicDeleted
from barnabas.model.coordination import Caller, CoordinatorRecord, Outcome, ProducerIdAndEpoch
from barnabas.model.pending import Pending
from barnabas.model.settings import GroupSettings

START_MS = 1_700_000_000_000

T = TypeVar("T")


class Written(NamedTuple):
    """A batch of records; without records, the end of a transaction."""

    records: tuple[CoordinatorRecord, ...]
    producer: ProducerIdAndEpoch | None
    committed: bool = False


class GroupRunner:
    """Runs operations one by one; also the machine's scheduler."""

    def __init__(self, topics: Mapping[str, int], settings: GroupSettings | None = None) -> None:
        self.settings = settings or GroupSettings()
        self.image = Image()
        self.now_ms = 0
        self.log: list[Written] = []
        self._due: dict[str, tuple[int, Callable[[], Outcome[None]]]] = {}
        for name, partitions in topics.items():
            self.create_topic(name, partitions)
        self.machine = self._load()

    @property
    def wall_ms(self) -> int:
        """The wall clock."""
        return START_MS + self.now_ms

    def caller(self, version: int) -> Caller:
        """Return a caller at the current time."""
        return Caller("client", "/127.0.0.1", version, self.wall_ms)

    def run(self, operation: Callable[[GroupMachine], Outcome[T]]) -> T:
        """Run an operation; its records are committed at once."""
        outcome = operation(self.machine)
        if outcome.records:
            plain = tuple(CoordinatorRecord(*record) for record in outcome.records)
            self.log.append(Written(plain, outcome.producer))
            for record in outcome.records:
                self.machine.replay(record, outcome.producer)
        assert not isinstance(outcome.response, Pending)
        return outcome.response

    def end_transaction(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Append a marker."""
        self.log.append(Written((), producer, committed))
        self.machine.replay_marker(producer, committed=committed)

    def reload(self) -> None:
        """Forget everything except the log, and replay it."""
        self._due.clear()
        self.machine = self._load()

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass, and fire the timers that are due."""
        end_ms = self.now_ms + duration_ms
        while self._due:
            name = min(self._due, key=lambda name: self._due[name][0])
            due_ms, operation = self._due[name]
            if due_ms > end_ms:
                break
            self.now_ms = due_ms
            del self._due[name]
            self.run(lambda _, operation=operation: operation())  # type: ignore[misc]
        self.now_ms = end_ms

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Schedule an operation."""
        self._due[name] = (self.now_ms + max(1, delay_ms), operation)

    def cancel(self, name: str) -> None:
        """Cancel an operation."""
        self._due.pop(name, None)

    def create_topic(self, name: str, partitions: int) -> bytes:
        """Create a topic; return its id."""
        topic_id = Random(f"{name} {len(self.log)}").randbytes(16)
        replicas = [[1]] * partitions
        self.image.replay(
            TopicCreated(name=name, topic_id=topic_id.hex(), replicas=replicas, config={})
        )
        return topic_id

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and notify the machine."""
        self.image.replay(TopicDeleted(topic_id=self.image.topics[name].topic_id.hex()))
        self.run(lambda machine: machine.topics_changed([name]))

    def _load(self) -> GroupMachine:
        machine = GroupMachine(self.settings, self, lambda: self.image, Random(1))
        for written in self.log:
            for record in written.records:
                machine.replay(record, written.producer)
            if not written.records:
                assert written.producer is not None
                machine.replay_marker(written.producer, committed=written.committed)
        machine.loaded()
        return machine
