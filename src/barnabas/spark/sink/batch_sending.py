"""Sends record batches to partition leaders, several in flight, each delivered once and in order.

Every batch has the producer's id and a sequence number, so that a broker detects repeated batches.
A request has at most one batch for each partition, and at most five requests are in flight to a
broker, since brokers remember five batches of a producer in each partition. When a connection
breaks or a leader has moved, all unacknowledged batches are sent again in the order of their
sequence numbers, until the delivery timeout.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.model.errors import ErrorCode
from barnabas.protocol.compression import Codec
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.spark.sink.record_encoding import Encoded, Producer, frame
from barnabas.spark.sink.sink_cluster import PAUSE_MAX_S, PAUSE_S, Address, Cluster
from barnabas.wire.wire_failures import LinkError

REQUEST_BYTES_MAX = 8 << 20
SEQUENCES = 1 << 31

AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Errors after which a batch is sent again."""

FENCED = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""The error codes that a fenced producer gets."""

REMEDIES: dict[int, str] = {
    ErrorCode.MESSAGE_TOO_LARGE: (
        "a batch is larger than the topic allows; lower the option kafka.batch.size, or raise the "
        "topic's max.message.bytes if single rows are that large"
    ),
    ErrorCode.RECORD_LIST_TOO_LARGE: "raise segment.bytes of the topic, or lower kafka.batch.size",
    ErrorCode.INVALID_TIMESTAMP: (
        "a value of column timestamp is further from now than message.timestamp.before.max.ms or "
        "message.timestamp.after.max.ms of the topic allows; raise them, or drop the column"
    ),
    ErrorCode.INVALID_RECORD: (
        "the broker refused a record: a topic with cleanup.policy=compact takes no rows without "
        "a key; set column key in every row"
    ),
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic cannot be written to; check its name",
    ErrorCode.POLICY_VIOLATION: "the broker's policy refuses the rows; see the broker's log",
}
FENCED_REMEDY = (
    "the transaction was taken over by a newer attempt of this task, or ran longer than the option "
    "kafka.transaction.timeout.ms; Spark tries the task again"
)


class DeliveryError(Exception):
    """Rows could not be written; the message names them, the reason, and what to change."""


class Delivery(NamedTuple):
    """How batches are made and sent."""

    codec: Codec
    level: int | None
    acks: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    in_flight_max: int


@dataclass(slots=True)
class Batch:
    """A record batch that is not yet acknowledged."""

    topic: str
    partition: int
    sequence: int
    number: int
    """Its place among all batches of the task; sequences start over after 2^31 - 1."""
    data: bytearray


@dataclass
class Sender:
    """All batches of one task, from first to last."""

    cluster: Cluster
    delivery: Delivery
    producer: Producer
    transactional_id: str | None = None
    sent_bytes: int = 0
    _batches: int = 0
    _opened: set[tuple[str, int]] = field(default_factory=set)
    """The partitions that have answered a batch."""
    _sequences: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    _in_flight: dict[Address, deque[list[Batch]]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def send(self, encoded: Iterable[Encoded]) -> None:
        """Send batches; return when at most five requests per broker are in flight."""
        failed: list[Batch] = []
        for group in _rounds([self._framed(each) for each in encoded]):
            # Batches after a failed one would leave a gap in front of them.
            failed += group if failed else self._open(group)
        if failed:
            self._recover(failed)

    def flush(self) -> None:
        """Return when every batch is acknowledged."""
        failed = self._drain()
        if failed:
            self._recover(failed)

    def _framed(self, encoded: Encoded) -> Batch:
        chunk = encoded.chunk
        place = (chunk.topic, chunk.partition)
        sequence = self._sequences[place] if self.producer.producer_id >= 0 else -1
        data = frame(encoded, self.delivery.codec, self.delivery.level, self.producer, sequence)
        self._sequences[place] = (self._sequences[place] + encoded.records) % SEQUENCES
        self.sent_bytes += len(data)
        self._batches += 1
        return Batch(chunk.topic, chunk.partition, sequence, self._batches, data)

    def _open(self, batches: list[Batch]) -> list[Batch]:
        """Send batches, and wait for the answer if a partition gets its first one.

        A broker that does not know a producer accepts any sequence number from it. If the first
        batch failed with the second in flight behind it, the second would be accepted first.
        """
        failed = self._dispatch(batches)
        new = {(batch.topic, batch.partition) for batch in batches} - self._opened
        if new and not failed:
            failed = self._drain()
        if not failed:
            self._opened |= new
        return failed

    def _dispatch(self, batches: list[Batch]) -> list[Batch]:
        """Send batches of different partitions; return those, and earlier ones, that failed."""
        failed: list[Batch] = []
        by_leader: dict[Address, list[Batch]] = defaultdict(list)
        for batch in batches:
            leader = self._leader(batch)
            if leader is None:
                failed.append(batch)
            else:
                by_leader[leader].append(batch)
        for leader, together in by_leader.items():
            for few in _requests(together):
                failed += self._send(leader, few)
        return failed

    def _leader(self, batch: Batch) -> Address | None:
        try:
            return self.cluster.topic(batch.topic).leaders.get(batch.partition)
        except LinkError:
            return None

    def _send(self, leader: Address, batches: list[Batch]) -> list[Batch]:
        """Send one request, once there is room for it; return the batches that failed by then."""
        failed = self._make_room(leader)
        if failed:
            return failed + batches
        answered = self.delivery.acks != 0
        if answered:
            self._in_flight[leader].append(batches)
        try:
            self.cluster.pipeline(leader).send(self._request(batches), answered=answered)
        except LinkError:
            return self._lost(leader) if answered else batches
        return []

    def _make_room(self, leader: Address) -> list[Batch]:
        waiting = self._in_flight[leader]
        failed: list[Batch] = []
        try:
            while len(waiting) >= self.delivery.in_flight_max:
                failed += self._receive(leader)
        except LinkError:
            failed += self._lost(leader)
        return failed

    def _request(self, batches: list[Batch]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
        for batch in batches:
            topics[batch.topic].append(
                PartitionProduceData(index=batch.partition, records=batch.data)
            )
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.delivery.acks,
            timeout_ms=self.delivery.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, partition_data=parts) for name, parts in topics.items()
            ],
        )

    def _receive(self, leader: Address) -> list[Batch]:
        """Process one answer; return the batches to send again."""
        answer = self.cluster.pipeline(leader).receive(ProduceResponse)
        batches = {(each.topic, each.partition): each for each in self._in_flight[leader][0]}
        failed = []
        for topic in answer.responses:
            for part in topic.partition_responses:
                batch = batches[topic.name, part.index]
                if self._must_repeat(batch, part.error_code, part.error_message):
                    failed.append(batch)
        self._in_flight[leader].popleft()
        return failed

    def _must_repeat(self, batch: Batch, code: int, message: str | None) -> bool:
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            return False
        # A gap in front of a batch is closed when the one before it has been sent again.
        if code in AGAIN or (code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.sequence > 0):
            return True
        raise DeliveryError(explained(batch.topic, batch.partition, code, message))

    def _lost(self, leader: Address) -> list[Batch]:
        """Drop a connection; return the batches that were in flight."""
        lost = [batch for batches in self._in_flight[leader] for batch in batches]
        self._in_flight[leader].clear()
        self.cluster.hang_up(leader)
        return lost

    def _drain(self) -> list[Batch]:
        failed: list[Batch] = []
        for leader, waiting in self._in_flight.items():
            try:
                while waiting:
                    failed += self._receive(leader)
            except LinkError:
                failed += self._lost(leader)
        return failed

    def _recover(self, failed: list[Batch]) -> None:
        """Send again, in order, until everything is acknowledged or the timeout is over."""
        deadline_s = time.monotonic() + self.delivery.delivery_timeout_ms / 1000
        pause_s = PAUSE_S
        while failed := self._drain() + failed:
            if time.monotonic() > deadline_s:
                raise DeliveryError(_late(failed[0], self.delivery))
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
            failed = self._again(failed)

    def _again(self, failed: list[Batch]) -> list[Batch]:
        """Send again, one batch of each partition at a time, up to the first that fails."""
        self.cluster.forget()
        rest: list[Batch] = []
        for group in _rounds(sorted(failed, key=lambda batch: batch.number)):
            rest += group if rest else self._dispatch(group) + self._drain()
        return rest


def _rounds(batches: list[Batch]) -> list[list[Batch]]:
    """Return the batches in groups with at most one for each partition, in order."""
    rounds: list[list[Batch]] = []
    seen: dict[tuple[str, int], int] = defaultdict(int)
    for batch in batches:
        place = (batch.topic, batch.partition)
        if seen[place] == len(rounds):
            rounds.append([])
        rounds[seen[place]].append(batch)
        seen[place] += 1
    return rounds


def _requests(batches: list[Batch]) -> list[list[Batch]]:
    """Return the batches in groups of a size that brokers accept."""
    found: list[list[Batch]] = []
    size = REQUEST_BYTES_MAX
    for batch in batches:
        if size + len(batch.data) > REQUEST_BYTES_MAX:
            found.append([])
            size = 0
        found[-1].append(batch)
        size += len(batch.data)
    return found


def explained(topic: str, partition: int, code: int, message: str | None) -> str:
    """Return why a broker refused rows, and what to change."""
    remedy = FENCED_REMEDY if code in FENCED else REMEDIES.get(code, "see the log of its leader")
    said = f" ({message})" if message else ""
    return f"{topic}-{partition} refused rows: {name_of(code)}{said}: {remedy}"


def name_of(code: int) -> str:
    """Return the name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def _late(batch: Batch, delivery: Delivery) -> str:
    return (
        f"Rows for {batch.topic}-{batch.partition} could not be delivered within "
        f"{delivery.delivery_timeout_ms} ms (kafka.delivery.timeout.ms); check that its "
        "leader runs, or raise the option"
    )
