"""Asks share coordinators about the partitions of a group, and continues once they have answered.

An answer may come at any time, also before the request returns. What follows from it is therefore
an operation of the group coordinator, which the scheduler runs in its turn. If the group
coordinator moves meanwhile, the operation never runs: the next one reads in the stored partition
states what is still to be done.
"""

from collections.abc import Callable, Collection, Mapping

from barnabas.model.coordination import Outcome, Scheduler
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import ShareStates

AT_ONCE_MS = 0

Codes = Mapping[int, ErrorCode]
"""The error code of each partition."""
Answers = Mapping[TopicId, Codes]
Continue = Callable[[Answers], Outcome[None]]


class StateRequests:
    """The requests of one group coordinator."""

    def __init__(self, states: ShareStates, scheduler: Scheduler) -> None:
        self._states = states
        self._scheduler = scheduler
        self._asked = 0

    def initialize(
        self,
        group_id: str,
        starts: Mapping[TopicId, Mapping[int, int]],
        state_epoch: int,
        then: Continue,
    ) -> None:
        """Initialize partitions with their start offsets."""
        self._ask(
            {
                topic_id: _always(
                    self._states.initialize(group_id, topic_id, offsets, state_epoch), offsets
                )
                for topic_id, offsets in starts.items()
            },
            then,
        )

    def delete(
        self, group_id: str, topics: Mapping[TopicId, Collection[int]], then: Continue
    ) -> None:
        """Delete the state of partitions."""
        self._ask(
            {
                topic_id: _always(self._states.delete(group_id, topic_id, sorted(numbers)), numbers)
                if numbers
                else Pending.of({})
                for topic_id, numbers in topics.items()
            },
            then,
        )

    def _ask(self, questions: Mapping[TopicId, Pending[Codes]], then: Continue) -> None:
        """Continue once every question is answered; one that fails has an error code as answer."""
        self._asked += 1
        name = f"share states {self._asked}"
        answers: dict[TopicId, Codes] = {}

        def take(topic_id: TopicId, codes: Codes) -> None:
            answers[topic_id] = codes
            if len(answers) == len(questions):
                self._scheduler.schedule(name, AT_ONCE_MS, lambda: then(answers))

        assert questions
        for topic_id, question in questions.items():
            question.when_done(lambda codes, topic_id=topic_id: take(topic_id, codes))  # type: ignore[misc]


def _always(answer: Pending[Codes], partitions: Collection[int]) -> Pending[Codes]:
    """Return an answer that does not fail: all partitions get the error code instead."""
    sure: Pending[Codes] = Pending()

    def failed(error: Exception) -> None:
        code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
        sure.complete(dict.fromkeys(partitions, code))

    answer.when_done(sure.complete, failed)
    return sure


def failure_in(codes: Codes) -> ErrorCode:
    """Return the first error code of some partitions, or NONE."""
    return next((code for code in codes.values() if code is not ErrorCode.NONE), ErrorCode.NONE)
