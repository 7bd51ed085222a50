"""A share coordinator in a dialogue: no disk, no clock, no other broker.

    talk = ShareTalk(topics={"orders": 2})
    talk.initialize()
    assert talk.write("0-4 k1") is ErrorCode.NONE
    assert talk.state() == (0, 0, "0-4 k1")

Runs of offsets are text: `a`, `k`, `x` and `w` are available, acknowledged, archived and waiting
for a dead letter; the number after it counts deliveries.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.metadata.image import Image
from barnabas.metadata.metadata_records import TopicCreated, TopicDeleted
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import (
    DeliveryState,
    SharePartitionKey,
    StateBatch,
    StateUpdate,
    StoredState,
)
from barnabas.share.share_state_machine import ShareStateMachine
from tests.support.talk.coordination import MachineRunner

STATES = {
    "a": DeliveryState.AVAILABLE,
    "k": DeliveryState.ACKNOWLEDGED,
    "x": DeliveryState.ARCHIVED,
    "q": DeliveryState.ACQUIRED,
    "w": DeliveryState.ARCHIVING,
}
LETTERS = {state: letter for letter, state in STATES.items()}
GROUP = "workers"
TOPIC = TopicId(bytes([7] * 16))
KEY = SharePartitionKey(GROUP, TOPIC, 0)


def runs(text: str) -> list[StateBatch]:
    """Read runs such as `0-4 a1, 5 k2`."""
    found = []
    for item in filter(None, text.split(", ")):
        offsets, state = item.split(" ")
        first, _, last = offsets.partition("-")
        found.append(StateBatch(int(first), int(last or first), STATES[state[0]], int(state[1:])))
    return found


def told(batches: list[StateBatch]) -> str:
    """Return runs as text."""
    return ", ".join(
        f"{b.first if b.first == b.last else f'{b.first}-{b.last}'} "
        f"{LETTERS[b.state]}{b.deliveries}"
        for b in batches
    )


def update(
    text: str = "", *, start: int = -1, state_epoch: int = 0, leader_epoch: int = 0, count: int = -1
) -> StateUpdate:
    """Return a change."""
    return StateUpdate(state_epoch, leader_epoch, start, count, runs(text))


class RunnersLog:
    """The log of a runner, an offset for each record."""

    def __init__(self) -> None:
        self.runner: MachineRunner[ShareStateMachine] | None = None
        self.deleted_before = 0

    @property
    def end_offset(self) -> int:
        """Where the next record will be."""
        return 0 if self.runner is None else len(self.runner.records)

    def delete_before(self, offset: int) -> None:
        """Delete the records below an offset."""
        self.deleted_before = max(self.deleted_before, offset)


class ShareTalk:
    """A machine, and what a test says to it."""

    def __init__(
        self, settings: ShareSettings | None = None, topics: Mapping[TopicId, int] | None = None
    ) -> None:
        self.settings = settings or ShareSettings()
        self.image = Image()
        for topic_id, partitions in (topics or {TOPIC: 3}).items():
            self.create_topic(topic_id, partitions)
        self.log = RunnersLog()
        self.runner = MachineRunner(
            lambda scheduler: ShareStateMachine(
                self.settings, scheduler, lambda: self.image, self.log
            )
        )
        self.log.runner = self.runner

    @property
    def machine(self) -> ShareStateMachine:
        """The machine."""
        return self.runner.machine

    def create_topic(self, topic_id: TopicId, partitions: int) -> None:
        """Create a topic."""
        name, replicas = topic_id.hex(), [[1]] * partitions
        self.image.replay(TopicCreated(name=name, topic_id=topic_id.hex(), replicas=replicas))

    def delete_topic(self, topic_id: TopicId = TOPIC) -> None:
        """Delete a topic."""
        self.image.replay(TopicDeleted(topic_id=topic_id.hex()))

    def initialize(
        self, start: int = 0, *, state_epoch: int = 0, key: SharePartitionKey = KEY
    ) -> ErrorCode:
        """Let a share partition begin anew."""
        starts = {key: (state_epoch, start)}
        return _code(self.only(self.runner.run(lambda machine: machine.initialize(starts))))

    def write(self, text: str = "", *, key: SharePartitionKey = KEY, **facts: int) -> ErrorCode:
        """Store a change."""
        updates = {key: update(text, **facts)}
        return _code(self.only(self.runner.run(lambda machine: machine.write(updates))))

    def write_update(self, change: StateUpdate, key: SharePartitionKey = KEY) -> ErrorCode:
        """Store a change as it is."""
        return _code(self.only(self.runner.run(lambda machine: machine.write({key: change}))))

    def read(self, leader_epoch: int = 0, key: SharePartitionKey = KEY) -> StoredState | ErrorCode:
        """Read a state."""
        found = self.only(self.runner.run(lambda machine: machine.read({key: leader_epoch})))
        return found if isinstance(found, StoredState) else _code(found)

    def delete(self, key: SharePartitionKey = KEY) -> ErrorCode:
        """Delete a state."""
        return _code(self.only(self.runner.run(lambda machine: machine.delete([key]))))

    def summary(self, key: SharePartitionKey = KEY) -> Any:
        """Return a summary."""
        found = self.only(self.runner.run(lambda machine: machine.summarize([key])))
        return found.code if isinstance(found, ApiError) else found

    def state(self, key: SharePartitionKey = KEY) -> tuple[int, int, str]:
        """Return the state epoch, the start offset and the runs."""
        found = self.machine.state_of(key)
        assert found is not None
        return found.state_epoch, found.start_offset, told(found.batches)

    def only(self, answer: Pending[dict[SharePartitionKey, Any]]) -> Any:
        """Return the one result of an operation that is complete."""
        results: list[dict[SharePartitionKey, Any]] = []
        answer.when_done(results.append)
        (result,) = results[0].values()
        return result


def _code(result: object) -> ErrorCode:
    return result.code if isinstance(result, ApiError) else ErrorCode.NONE
