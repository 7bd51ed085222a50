"""Writes the lines of the audit log to a topic (`security.audit_topic`), besides the file.

Lines wait in a queue that is bounded in bytes. A timer sends them in batches, one at a time, so
they keep their order. This broker appends a batch itself if it leads the partition, as coordinators
do. Otherwise it sends a Produce request to the leader's listener for brokers, on a lane of its own.
This needs the least: every release serves Produce there, brokers have no quotas and no ACLs on that
listener, and only this queue waits for the answer. A separate API would need a feature level, and a
Kafka client inside the broker would need a login.

No request ever waits for the topic. While it cannot be written, the next attempts are made with
growing delays, and lines that do not fit into the queue are dropped and counted. A line of the
topic and of the log says how many once there is room. A batch whose answer was lost is sent again,
so a line may be there twice.

The topic is created with the first line, and again if it was deleted. Writing to it adds no lines
to the audit log: brokers are not denied anything, and creating a topic does not change rights.
"""

from collections import deque
from typing import NamedTuple

from barnabas.effects import Effect, Notice
from barnabas.metadata.image import TopicImage
from barnabas.model.errors import ApiError, BrokerError, ErrorCode
from barnabas.model.ids import NodeId
from barnabas.model.pending import Pending
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.internal_topic_host import InternalTopicHost
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.records import build_own
from barnabas.security.audit import dropped_line

LANE = "audit"
QUEUE_BYTES_MAX = 4 << 20
LINE_OVERHEAD_BYTES = 64
"""The memory that a line in the queue takes besides its text."""
BATCH_BYTES_MAX = 256 << 10
LINGER_MS = 50
RETRY_MS = 100
RETRY_MAX_MS = 5_000
LOGGED_FAILURES = 4
"""A new topic, and one whose leader changes, refuse one attempt or two: that is not logged."""
PRODUCE_TIMEOUT_MS = 4_000
ACKS_ALL = -1
NO_LEADER = -1
PARTITIONS = 1
DAY_MS = 24 * 3600 * 1000
CONFIG = {"cleanup.policy": "delete", "retention.ms": str(30 * DAY_MS)}
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Line(NamedTuple):
    """A line that waits, with the time of its event."""

    text: str
    wall_ms: int

    @property
    def size(self) -> int:
        """How many bytes of the queue it takes. The text is ASCII."""
        return len(self.text) + LINE_OVERHEAD_BYTES


class AuditTopic:
    """The lines of one broker on their way to the topic."""

    def __init__(
        self,
        host: InternalTopicHost,
        topic: str,
        peers: BrokerRequests,
        timers: Timers,
        outbox: list[Effect],
    ) -> None:
        self._host = host
        self._topic = topic
        self._peers = peers
        self._timers = timers
        self._outbox = outbox
        self._lines: deque[Line] = deque()
        """The waiting lines; those of the batch that is being sent are at the front."""
        self._bytes = 0
        self._dropped = 0
        self._is_busy = False
        """Whether a batch is being sent, or a timer will send one."""
        self._failures = 0
        """How many attempts in a row failed."""
        self._batch_bytes = BATCH_BYTES_MAX

    def add(self, text: str) -> None:
        """Queue a line."""
        line = Line(text, self._timers.wall_ms)
        if self._bytes + line.size > QUEUE_BYTES_MAX:
            if not self._dropped:
                self._notice("error", "lines of the audit topic are dropped: it is too slow")
            self._dropped += 1
            return
        self._queue(line)
        self._send_after(LINGER_MS)

    def _queue(self, line: Line) -> None:
        self._lines.append(line)
        self._bytes += line.size

    def _send_after(self, delay_ms: int) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._timers.after(delay_ms, self._send)

    def _send(self) -> None:
        """Send a batch, or create the topic first."""
        try:
            topic = self._host.image.topics.get(self._topic)
            if topic is None:
                self._create().when_done(lambda _: self._send_again(), self._failed)
            else:
                self._send_to(topic)
        except BrokerError as error:
            self._failed(error)

    def _create(self) -> Pending[None]:
        replicas = self._host.settings.replication.default_replication_factor
        return self._host.ensure_topic(
            self._topic, PARTITIONS, CONFIG, self._timers.wall_ms, replication_factor=replicas
        )

    def _send_again(self) -> None:
        self._is_busy = False
        self._send_after(0)

    def _send_to(self, topic: TopicImage) -> None:
        # A topic that an operator made may have several partitions; each broker keeps to one.
        number = self._host.node_id % len(topic.partitions)
        leader = topic.partitions[number].leader
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "its partition has no leader")
        count = self._batch_length()
        lines = [self._lines[place] for place in range(count)]
        key = str(self._host.node_id).encode()
        records = [(key, line.text.encode()) for line in lines]
        batch = build_own(records, lines[0].wall_ms)
        if leader == self._host.node_id:
            self._append(number, batch, count)
        else:
            self._produce(NodeId(leader), topic, number, batch, count)

    def _batch_length(self) -> int:
        """Return how many lines the next batch has, at least one."""
        count = size = 0
        for line in self._lines:
            size += line.size
            if count and size > self._batch_bytes:
                break
            count += 1
        return count

    def _append(self, number: int, batch: bytearray, count: int) -> None:
        partition = self._host.find(self._topic, number)
        partition.leader.append_own(batch)
        lost = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader changed")
        partition.when_safe(
            partition.log.end_offset, lambda: self._written(count), lambda: self._failed(lost)
        )

    def _produce(
        self, leader: NodeId, topic: TopicImage, number: int, batch: bytearray, count: int
    ) -> None:
        part = PartitionProduceData(index=number, records=memoryview(batch))
        data = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[part])
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[data])

        def received(response: ProduceResponse) -> None:
            (result,) = response.responses[0].partition_responses
            code = ErrorCode(result.error_code)
            if code is ErrorCode.NONE:
                self._written(count)
            else:
                self._refused(ApiError(code, result.error_message or code.name), count)

        self._peers.ask(leader, request, lane=LANE).when_done(received, self._failed)

    def _written(self, count: int) -> None:
        if self._failures >= LOGGED_FAILURES:
            self._notice("info", "the audit topic is written again")
        self._failures, self._batch_bytes = 0, BATCH_BYTES_MAX
        self._remove(count)

    def _remove(self, count: int) -> None:
        """Remove lines from the queue, and write how many were dropped because it was full."""
        for _ in range(count):
            self._bytes -= self._lines.popleft().size
        dropped, self._dropped = self._dropped, 0
        if dropped:
            wall_ms = self._timers.wall_ms
            self._queue(Line(dropped_line(wall_ms, self._host.node_id, dropped), wall_ms))
            self._notice("warning", "dropped lines of the audit topic", lines=dropped)
        self._is_busy = False
        if self._lines:
            self._send_after(0 if self._bytes >= BATCH_BYTES_MAX else LINGER_MS)

    def _refused(self, error: ApiError, count: int) -> None:
        """Try again, with fewer lines if they are too large together."""
        if error.code not in TOO_LARGE:
            self._failed(error)
        elif count == 1:
            self._dropped += 1
            self._remove(1)
        else:
            self._batch_bytes = sum(self._lines[place].size for place in range(count)) // 2
            self._send_again()

    def _failed(self, error: Exception) -> None:
        """Try again later."""
        self._failures += 1
        if self._failures == LOGGED_FAILURES:
            problem = (error.message if isinstance(error, ApiError) else "") or str(error)
            self._notice("error", "cannot write to the audit topic; retrying", problem=problem)
        self._is_busy = False
        self._send_after(min(RETRY_MAX_MS, RETRY_MS << min(self._failures - 1, 10)))

    def _notice(self, level: str, event: str, **facts: object) -> None:
        self._outbox.append(Notice(level, event, {"topic": self._topic, **facts}))
