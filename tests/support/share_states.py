"""Share coordinators in memory: the state of share partitions in a dict.

states = StatesInMemory()
states.answers_at_once = False   # questions wait for `answer_all`
states.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import (
    SharePartitionKey,
    StateSummary,
    StateUpdate,
    StoredState,
)

T = TypeVar("T")
Codes = Mapping[int, ErrorCode]


@dataclass
class Kept:
    """The state of one share partition."""

    state_epoch: int
    start_offset: int
    complete_count: int
    leader_epoch: int = 0


class StatesInMemory:
    """The port `ShareStates`; acknowledged batches are not kept."""

    def __init__(self) -> None:
        self.kept: dict[SharePartitionKey, Kept] = {}
        self.asked: list[tuple[str, str, TopicId]] = []
        """What was asked: the name of the method, the group and the topic."""
        self.refusal: ErrorCode | None = None
        """Fails every question, if set."""
        self.refused_partitions: dict[int, ErrorCode] = {}
        self.answers_at_once = True
        self._waiting: list[Callable[[], None]] = []

    def answer_all(self) -> None:
        """Answer the questions that wait."""
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer()

    def lose_all(self) -> None:
        """Never answer the questions that wait."""
        self._waiting.clear()

    def initialize(
        self, group_id: str, topic_id: TopicId, starts: Mapping[int, int], state_epoch: int
    ) -> Pending[Codes]:
        """Keep new states; refuse those with an earlier epoch."""

        def put(number: int) -> ErrorCode:
            key = SharePartitionKey(group_id, topic_id, number)
            known = self.kept.get(key)
            if known is not None and known.state_epoch > state_epoch:
                return ErrorCode.FENCED_STATE_EPOCH
            count = 0 if starts[number] >= 0 else -1
            self.kept[key] = Kept(state_epoch, starts[number], count)
            return ErrorCode.NONE

        self.asked.append(("initialize", group_id, topic_id))
        return self._answer(lambda: self._each(starts, put))

    def delete(self, group_id: str, topic_id: TopicId, partitions: Sequence[int]) -> Pending[Codes]:
        """Forget states."""

        def drop(number: int) -> ErrorCode:
            self.kept.pop(SharePartitionKey(group_id, topic_id, number), None)
            return ErrorCode.NONE

        self.asked.append(("delete", group_id, topic_id))
        return self._answer(lambda: self._each(partitions, drop))

    def summarize(
        self, group_id: str, topic_id: TopicId, partitions: Mapping[int, int]
    ) -> Pending[Mapping[int, StateSummary | ErrorCode]]:
        """Return summaries; without state all is unknown, as in Kafka."""

        def summary(number: int) -> StateSummary | ErrorCode:
            if number in self.refused_partitions:
                return self.refused_partitions[number]
            kept = self.kept.get(SharePartitionKey(group_id, topic_id, number))
            if kept is None:
                return StateSummary(0, 0, -1, -1)
            return StateSummary(
                kept.state_epoch, kept.leader_epoch, kept.start_offset, kept.complete_count
            )

        self.asked.append(("summarize", group_id, topic_id))
        return self._answer(lambda: {number: summary(number) for number in partitions})

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Pending[StoredState]:
        """Return a state without batches."""
        kept = self.kept[key]
        kept.leader_epoch = leader_epoch
        return self._answer(lambda: StoredState(kept.state_epoch, kept.start_offset, ()))

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        """Keep the start offset and the count."""
        kept = self.kept[key]
        kept.start_offset = max(kept.start_offset, update.start_offset)
        kept.complete_count = update.complete_count
        return self._answer(lambda: None)

    def _each(
        self, partitions: Mapping[int, int] | Sequence[int], act: Callable[[int], ErrorCode]
    ) -> Codes:
        return {number: self.refused_partitions.get(number) or act(number) for number in partitions}

    def _answer(self, make: Callable[[], T]) -> Pending[T]:
        answer: Pending[T] = Pending()

        def complete() -> None:
            if self.refusal is not None:
                answer.fail(ApiError(self.refusal))
            else:
                answer.complete(make())

        self._waiting.append(complete)
        if self.answers_at_once:
            self.answer_all()
        return answer
