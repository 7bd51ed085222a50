"""Reaches the share coordinators for the parts of this broker: the port `ShareStates`.

Questions of one turn of the event loop are gathered. Those for coordinators on this broker become
one operation for each coordinator, so one batch and one sync; those for another broker become one
request for each group. A share partition has one write at a time on its way: writes that come
meanwhile are joined, and follow it as one.

The metadata says which broker coordinates a share partition, and may be late. A question that
reaches the wrong broker, a coordinator that is loading, or no broker is asked again, with growing
delays, until the write timeout is over. All questions may be asked twice: the second time they
change nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from barnabas.effects import Effect, Scan
from barnabas.metadata.features import SHARE_LEVEL
from barnabas.metadata.image import SHARE_STATE_TOPIC, Image
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicId
from barnabas.model.pending import Pending
from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import (
    SharePartitionKey,
    StateSummary,
    StateUpdate,
    StoredState,
)
from barnabas.model.steps import Steps
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.share import share_state_requests as requests
from barnabas.node.share.share_coordinators import ShareCoordinators, as_refusal, run_on_each
from barnabas.node.share.share_state_requests import StateRequest
from barnabas.node.share.share_state_writes import ShareStateWrites
from barnabas.share.share_state_machine import Results

Q = TypeVar("Q")
R = TypeVar("R")

LANE = "share state"
RETRY_MS = 10
RETRY_MAX_MS = 500

ASKED_AGAIN = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class ShareStateHost(Protocol):
    """What the questions need from the broker."""

    @property
    def node_id(self) -> NodeId:
        """This broker's id."""

    @property
    def image(self) -> Image:
        """The committed metadata."""


@dataclass(slots=True)
class Question(Generic[Q, R]):
    """A question about one share partition."""

    kind: StateRequest[Q, R]
    key: SharePartitionKey
    item: Q
    deadline_ms: int
    answer: Pending[R] = field(default_factory=Pending)
    delay_ms: int = RETRY_MS
    """How long to wait before it is asked again."""


AnyQuestion = Question[Any, Any]


class ShareStateClient:
    """The questions of this broker to share coordinators."""

    def __init__(
        self,
        host: ShareStateHost,
        coordinators: ShareCoordinators,
        peers: BrokerRequests,
        timers: Timers,
        outbox: list[Effect],
        settings: ShareSettings,
    ) -> None:
        self._host = host
        self._coordinators = coordinators
        self._peers = peers
        self._timers = timers
        self._outbox = outbox
        self._patience_ms = settings.write_timeout_ms
        self._writes = ShareStateWrites(self._ask_write, self._wake)
        self._gathered: list[AnyQuestion] = []
        self._is_awake = False

    def initialize(
        self, group_id: str, topic_id: TopicId, starts: Mapping[int, int], state_epoch: int
    ) -> Pending[Mapping[int, ErrorCode]]:
        """Initialize partitions of a topic with their start offsets; answer with error codes."""
        items = {number: (state_epoch, start) for number, start in starts.items()}
        return self._ask_each(requests.INITIALIZE, group_id, topic_id, items).map(_codes)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Pending[StoredState]:
        """Return the stored state, and fence earlier leaders."""
        return self._ask(requests.READ, key, leader_epoch)

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        """Store a change, after the changes of the same share partition before it."""
        return self._writes.write(key, update, self._deadline_ms)

    def delete(
        self, group_id: str, topic_id: TopicId, partitions: Sequence[int]
    ) -> Pending[Mapping[int, ErrorCode]]:
        """Delete the state of partitions of a topic; answer with error codes."""
        items = dict.fromkeys(partitions)
        return self._ask_each(requests.DELETE, group_id, topic_id, items).map(_codes)

    def summarize(
        self, group_id: str, topic_id: TopicId, partitions: Mapping[int, int]
    ) -> Pending[Mapping[int, StateSummary | ErrorCode]]:
        """Return summaries; the mapping has the leader epoch that is known for each partition."""
        asked = self._ask_each(requests.SUMMARIZE, group_id, topic_id, partitions)
        return asked.map(_summaries)

    def _ask_each(
        self, kind: StateRequest[Q, R], group_id: str, topic_id: TopicId, items: Mapping[int, Q]
    ) -> Pending[dict[int, R | ApiError]]:
        """Ask about several partitions of a topic; answer once all answers are there."""
        results: dict[int, R | ApiError] = {}
        answer: Pending[dict[int, R | ApiError]] = Pending()

        def arrived(number: int, result: R | ApiError) -> None:
            results[number] = result
            if len(results) == len(items):
                answer.complete(results)

        for number, item in items.items():
            self._ask(kind, SharePartitionKey(group_id, topic_id, number), item).when_done(
                lambda result, number=number: arrived(number, result),  # type: ignore[misc]
                lambda error, number=number: arrived(number, as_refusal(error)),  # type: ignore[misc]
            )
        if not items:
            answer.complete(results)
        return answer

    @property
    def _deadline_ms(self) -> int:
        return self._timers.now_ms + self._patience_ms

    def _ask_write(
        self, key: SharePartitionKey, update: StateUpdate, deadline_ms: int
    ) -> Pending[None]:
        return self._ask(requests.WRITE, key, update, deadline_ms)

    def _ask(
        self,
        kind: StateRequest[Q, R],
        key: SharePartitionKey,
        item: Q,
        deadline_ms: int | None = None,
    ) -> Pending[R]:
        question = Question(kind, key, item, deadline_ms or self._deadline_ms)
        if self._host.image.feature_level < SHARE_LEVEL:
            problem = "share groups need a higher feature level; run `barnabas cluster upgrade`"
            question.answer.fail(ApiError(ErrorCode.UNSUPPORTED_VERSION, problem))
        else:
            self._gather(question)
        return question.answer

    def _gather(self, question: AnyQuestion) -> None:
        """Ask once the events that already wait were handled: they may have more questions."""
        self._gathered.append(question)
        self._wake()

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._outbox.append(Scan(LANE, LANE, self._turn()))

    def _turn(self) -> Steps[None]:
        yield from ()
        self._writes.send_ready()
        self._is_awake = False
        if self._writes.are_ready:  # a write failed at once, and others waited behind it
            self._wake()
        questions, self._gathered = self._gathered, []
        if SHARE_STATE_TOPIC in self._host.image.topics:
            self._send(questions)
        else:
            self._create_topic(questions)

    def _create_topic(self, questions: Sequence[AnyQuestion]) -> None:
        def failed(error: Exception) -> None:
            for question in questions:
                self._take(question, as_refusal(error))

        try:
            created = self._coordinators.ensure(self._timers.wall_ms)
        except ApiError as error:
            failed(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message))
        else:
            created.when_done(lambda _: self._send(questions), failed)

    def _send(self, questions: Sequence[AnyQuestion]) -> None:
        """Ask the brokers that coordinate; each gets the questions of one kind together."""
        by_broker: dict[tuple[NodeId, str], list[AnyQuestion]] = {}
        for question in questions:
            try:
                broker = self._coordinators.broker_for(question.key.coordinator_key)
            except ApiError as error:
                self._take(question, error)
            else:
                by_broker.setdefault((broker, question.kind.name), []).append(question)
        for (broker, _), asked in by_broker.items():
            for part in _without_repeats(asked):
                if broker == self._host.node_id:
                    self._ask_here(part)
                else:
                    self._ask_broker(broker, part)

    def _ask_here(self, asked: Mapping[SharePartitionKey, AnyQuestion]) -> None:
        kind = next(iter(asked.values())).kind
        items = {key: question.item for key, question in asked.items()}
        run_on_each(self._coordinators, items, kind.operation).when_done(
            lambda results: self._take_all(asked, results)
        )

    def _ask_broker(self, broker: NodeId, asked: Mapping[SharePartitionKey, AnyQuestion]) -> None:
        """Send one request for each group."""
        kind = next(iter(asked.values())).kind
        for group_id, part in requests.by_group(asked).items():
            items = {key: question.item for key, question in part.items()}
            left_ms = max(each.deadline_ms for each in part.values()) - self._timers.now_ms
            sent = self._peers.ask(
                broker, kind.message(group_id, items), lane=LANE, timeout_ms=max(1, left_ms)
            )
            sent.map(_reader(kind, group_id)).when_done(*self._takers(part))

    def _takers(
        self, asked: Mapping[SharePartitionKey, AnyQuestion]
    ) -> tuple[Callable[[Results[Any]], None], Callable[[Exception], None]]:
        """Return what takes the results, and what takes the loss of a request."""

        def lost(error: Exception) -> None:
            refusal = ApiError(ErrorCode.NETWORK_EXCEPTION, str(error))
            self._take_all(asked, dict.fromkeys(asked, refusal))

        return lambda results: self._take_all(asked, results), lost

    def _take_all(
        self, asked: Mapping[SharePartitionKey, AnyQuestion], results: Results[Any]
    ) -> None:
        missing = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator gave no answer")
        for key, question in asked.items():
            self._take(question, results.get(key, missing))

    def _take(self, question: AnyQuestion, result: object) -> None:
        """Answer, or ask again if the error may pass before the deadline."""
        if not isinstance(result, ApiError):
            question.answer.complete(result)
        elif result.code not in ASKED_AGAIN:
            question.answer.fail(result)
        elif self._timers.now_ms + question.delay_ms > question.deadline_ms:
            refusal = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, result.message)
            question.answer.fail(refusal)
        else:
            self._timers.after(question.delay_ms, lambda: self._gather(question))
            question.delay_ms = min(2 * question.delay_ms, RETRY_MAX_MS)


def _without_repeats(
    questions: Sequence[AnyQuestion],
) -> list[dict[SharePartitionKey, AnyQuestion]]:
    """Return questions by share partition; one that is asked about twice is in two parts."""
    parts: list[dict[SharePartitionKey, AnyQuestion]] = [{}]
    for question in questions:
        part = next((each for each in parts if question.key not in each), None)
        if part is None:
            parts.append(part := {})
        part[question.key] = question
    return parts


def _reader(kind: StateRequest[Any, R], group_id: str) -> Callable[[Any], Results[R]]:
    return lambda response: kind.results(group_id, response)


def _codes(results: Mapping[int, ApiError | None]) -> Mapping[int, ErrorCode]:
    return {
        number: ErrorCode.NONE if result is None else result.code
        for number, result in results.items()
    }


def _summaries(
    results: Mapping[int, StateSummary | ApiError],
) -> Mapping[int, StateSummary | ErrorCode]:
    return {
        number: result.code if isinstance(result, ApiError) else result
        for number, result in results.items()
    }
