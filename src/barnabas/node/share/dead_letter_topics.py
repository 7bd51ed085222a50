"""The dead-letter topics, as the share partitions of a broker write to them.

A dead-letter topic exists already, as in Kafka: no broker creates it. Its config
`errors.deadletterqueue.group.enable` must allow dead letters. The dead letters of a partition go to
the partition with its number, modulo their count. This broker appends them itself if it leads that
partition; otherwise it sends a Produce request to the leader, as for the audit log.

A few share partitions send at a time, and the others wait for their turn: that bounds the memory
that dead letters take.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from barnabas.effects import Effect, Notice, Scan
from barnabas.metadata import topic_config
from barnabas.metadata.image import Image, TopicImage
from barnabas.model.dead_letter_rules import GROUP_ENABLE, DeadLetterRules, problem_with
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicId
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.partitions.batch_checking import Checking, Outcome, Waiting
from barnabas.node.partitions.batch_validation import MustWaitError
from barnabas.node.partitions.leader_role import Appended
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.records import parse_header

LANE = "dead letters"
SENDERS_MAX = 16
"""How many share partitions send at a time; each has one batch."""
BATCH_BYTES_MAX = 512 << 10
TIMEOUT_MS = 5_000
ACKS_ALL = -1
NO_LEADER = -1
NOTICE_EVERY_MS = 60_000
NOTICES_MAX = 1_000
"""For how many groups and events it is remembered when a notice was logged."""


class DeadLetterHost(Protocol):
    """What dead letters need from the broker."""

    @property
    def node_id(self) -> NodeId:
        """This broker's id."""

    @property
    def image(self) -> Image:
        """The committed metadata."""

    @property
    def topic_defaults(self) -> Mapping[str, str]:
        """The configs that topics inherit."""

    @property
    def checking(self) -> Checking:
        """The queues of batches whose records take long to check."""

    def find(self, key: str | bytes, partition: int) -> Partition:
        """Return a partition that this broker leads, or raise `ApiError`."""

    def next_producer_id(self, now_ms: int) -> Pending[int]:
        """Return an id that no producer ever had."""


class Destination(NamedTuple):
    """A partition of a dead-letter topic."""

    topic: str
    topic_id: TopicId
    partition: int
    leader: int
    batch_bytes_max: int


class DeadLetterTopics:
    """The way of dead letters to their topics."""

    def __init__(
        self,
        host: DeadLetterHost,
        peers: BrokerRequests,
        timers: Timers,
        outbox: list[Effect],
        rules: Callable[[str], DeadLetterRules | None],
    ) -> None:
        self._host = host
        self._peers = peers
        self.timers = timers
        self._outbox = outbox
        self._rules = rules
        self._sending = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self._noticed_ms: dict[tuple[str, str], int] = {}

    def rules_for(self, group_id: str, source: str) -> DeadLetterRules | None:
        """Return what applies to the records of a topic; None if they have no dead letters.

        A topic that is its own dead-letter topic would fill itself: its records have none. The
        config refuses that, but a group may begin to read its dead-letter topic later.
        """
        rules = self._rules(group_id)
        if rules is None or not rules.topic:
            return None
        problem = problem_with(rules.topic, (source,))
        if problem is None:
            return rules
        self.notice(group_id, "records are archived without dead letters", problem=problem)
        return None

    def destination(self, name: str, source_partition: int) -> Destination:
        """Return where the dead letters of a partition go; raise `ApiError` with what to do."""
        topic = self._host.image.topics.get(name)
        if topic is None:
            problem = f'topic "{name}" does not exist: create it with {GROUP_ENABLE}=true'
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
        if not self._config(topic).errors_deadletterqueue_group_enable:
            problem = f'topic "{name}" takes no dead letters: set its config {GROUP_ENABLE}=true'
            raise ApiError(ErrorCode.POLICY_VIOLATION, problem)
        return self._destination(topic, source_partition % len(topic.partitions))

    def find(self, topic_id: TopicId, partition: int) -> Destination | None:
        """Return where a batch was sent before; None if the topic is deleted."""
        topic = self._host.image.topic_by_id(topic_id)
        if topic is None or partition >= len(topic.partitions):
            return None
        return self._destination(topic, partition)

    def new_producer_id(self) -> Pending[int]:
        """Return an id that no producer ever had."""
        return self._host.next_producer_id(self.timers.wall_ms)

    def produce(self, to: Destination, batch: bytearray) -> Pending[None]:
        """Write a batch; answer once it is committed, or was before.

        If the answer is no refusal but a failure, the batch may have been written or not.
        """
        answer: Pending[None] = Pending()
        late = ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{to.topic}-{to.partition} is too slow")
        timer = self.timers.after(TIMEOUT_MS, lambda: answer.fail(late))
        try:
            if to.leader == NO_LEADER:
                problem = f"{to.topic}-{to.partition} has no leader: start its brokers"
                raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, problem)  # noqa: TRY301
            if to.leader == self._host.node_id:
                self._append(to, memoryview(batch), answer)
            else:
                self._send(to, batch, answer)
        except ApiError as error:
            answer.fail(error)

        def done(_: None) -> None:
            timer.cancel()

        return answer.map(done)

    def scan(self, owner: str, steps: Steps[None]) -> None:
        """Have long work done in steps."""
        self._outbox.append(Scan(LANE, owner, steps))

    def enter(self, begin: Callable[[], None]) -> None:
        """Begin to send once few enough others do."""
        if self._sending < SENDERS_MAX:
            self._sending += 1
            begin()
        else:
            self._waiting.append(begin)

    def leave(self) -> None:
        """End a turn; the next one begins."""
        if self._waiting:
            self.timers.after(0, self._waiting.popleft())
        else:
            self._sending -= 1

    def notice(self, group_id: str, event: str, **facts: object) -> None:
        """Log a line about a group, once a minute at most."""
        now_ms, key = self.timers.now_ms, (group_id, event)
        before_ms = self._noticed_ms.get(key)
        if before_ms is not None and now_ms - before_ms < NOTICE_EVERY_MS:
            return
        if len(self._noticed_ms) >= NOTICES_MAX:
            self._noticed_ms.clear()
        self._noticed_ms[key] = now_ms
        self._outbox.append(Notice("warning", event, {"group": group_id, **facts}))

    def _config(self, topic: TopicImage) -> topic_config.TopicConfig:
        return topic_config.resolve(topic.config, self._host.topic_defaults)

    def _destination(self, topic: TopicImage, partition: int) -> Destination:
        most = min(BATCH_BYTES_MAX, self._config(topic).max_message_bytes)
        leader = topic.partitions[partition].leader
        return Destination(topic.name, topic.topic_id, partition, leader, most)

    def _append(self, to: Destination, batch: memoryview, answer: Pending[None]) -> None:
        partition = self._host.find(to.topic_id, to.partition)
        partition.leader.check_min_isr()
        epoch, now_ms = partition.leader_epoch, self.timers.wall_ms

        def proceed(outcome: Outcome) -> None:
            if isinstance(outcome, ApiError):
                answer.fail(outcome)
            elif partition.retired or partition.leader_epoch != epoch:
                answer.fail(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            else:
                self._append_checked(partition, batch, outcome, answer)

        try:
            appended = partition.leader.append(batch, now_ms)
        except MustWaitError:
            waiting = Waiting(batch, parse_header(batch), now_ms, proceed)
            self._host.checking.enter(partition, LANE, waiting)
        else:
            _when_committed(partition, appended, answer)

    def _append_checked(
        self, partition: Partition, batch: memoryview, checked: memoryview, answer: Pending[None]
    ) -> None:
        try:
            appended = partition.leader.append(batch, self.timers.wall_ms, checked)
        except ApiError as error:
            answer.fail(error)
        else:
            _when_committed(partition, appended, answer)

    def _send(self, to: Destination, batch: bytearray, answer: Pending[None]) -> None:
        part = PartitionProduceData(index=to.partition, records=memoryview(batch))
        data = TopicProduceData(name=to.topic, topic_id=to.topic_id, partition_data=[part])
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=[data])

        def received(response: ProduceResponse) -> None:
            (result,) = response.responses[0].partition_responses
            code = ErrorCode(result.error_code)
            if code is ErrorCode.NONE:
                answer.complete(None)
            else:
                answer.fail(ApiError(code, result.error_message or code.name))

        asked = self._peers.ask(NodeId(to.leader), request, lane=LANE, timeout_ms=TIMEOUT_MS)
        asked.when_done(received, answer.fail)


def _when_committed(partition: Partition, appended: Appended, answer: Pending[None]) -> None:
    lost = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader changed")
    partition.when_safe(
        appended.required_offset, lambda: answer.complete(None), lambda: answer.fail(lost)
    )
