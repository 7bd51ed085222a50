"""Read partitions from a start to a stop position, with or without a consumer group.

    start: the first offset to read        stop: the offset before which reading ends

Both are computed once, from the partition's first and next offset and, for times, from the
broker's time index. A partition is done when the next record is at or after its stop.
Compaction and transaction markers leave gaps, so librdkafka's end-of-partition event also counts.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from barnabas.admin.admin_errors import AdminError, kafka_sentence
from barnabas.admin.connecting import ANSWER_TIMEOUT_S
from barnabas.admin.topic_positions import At, Before, Beginning, End, Position, Since

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

FETCH_MAX = 500
SLICE_S = 0.25
GROUP_PATIENCE_S = 10.0

# librdkafka looks for a coordinator even without a group; brokers name none for this group.
COORDINATOR_TROUBLE = {
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError._WAIT_COORD,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Span:
    """The range of offsets to read from one partition; without a stop it has no end."""

    start: int
    stop: int | None
    stop_time_ms: int | None = None
    """For a time in the future: the first record at or after it ends the partition."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.stop is not None and self.start >= self.stop


def span(
    consumer: "Consumer", place: Place, start: Position, until: End | At | Since | None
) -> Span:
    """Compute the range of offsets to read from a partition."""
    low, high = consumer.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_TIMEOUT_S)
    first = _resolve(consumer, place, start, low, high)
    match until:
        case None:
            return Span(first, None)
        case Since(timestamp_ms) if timestamp_ms > time.time() * 1000:
            return Span(first, None, timestamp_ms)
        case _:
            return Span(first, _resolve(consumer, place, until, 0, high))


def _resolve(consumer: "Consumer", place: Place, position: Position, low: int, high: int) -> int:
    match position:
        case Beginning():
            return low
        case End():
            return high
        case At(offset):
            return max(low, offset)
        case Before(count):
            return max(low, high - count)
        case Since(timestamp_ms):
            wanted = [TopicPartition(*place, timestamp_ms)]
            found = consumer.offsets_for_times(wanted, timeout=ANSWER_TIMEOUT_S)[0]
            if found.error is not None:
                raise AdminError(f"{place[0]}-{place[1]}: {kafka_sentence(found.error)}")
            return int(found.offset) if found.offset >= 0 else high


class Reading:
    """Reads the records of several spans as they arrive."""

    def __init__(self, consumer: "Consumer", spans: dict[Place, Span], *, to_end: bool) -> None:
        self._consumer = consumer
        self._to_end = to_end
        self._open = {place: each for place, each in spans.items() if not each.is_empty}
        starts = [TopicPartition(*place, each.start) for place, each in self._open.items()]
        consumer.assign(starts)

    def __iter__(self) -> Iterator[list["Message"]]:
        """Yield batches of records as they arrive; an empty one if none arrived for a while."""
        while self._open:
            yield [message for message in fetch(self._consumer) if self._wanted(message)]

    def _wanted(self, message: "Message") -> bool:
        place = (message.topic(), message.partition())
        if message.error() is not None:
            self._on_event(message, place)
            return False
        span = self._open.get(place)
        if span is None:
            return False
        if span.stop_time_ms is not None and message.timestamp()[1] >= span.stop_time_ms:
            self._close(place)
            return False
        if span.stop is not None and message.offset() >= span.stop - 1:
            self._close(place)
        return span.stop is None or message.offset() < span.stop

    def _on_event(self, message: "Message", place: Place) -> None:
        code = message.error().code()
        if code == KafkaError._PARTITION_EOF:
            span = self._open.get(place)
            # With an open transaction the visible end is before the stop.
            reached = span is not None and span.stop is not None and message.offset() >= span.stop
            if reached or self._to_end:
                self._close(place)
        elif code not in COORDINATOR_TROUBLE:
            raise KafkaException(message.error())

    def _close(self, place: Place) -> None:
        if self._open.pop(place, None) is not None and self._open:
            self._consumer.pause([TopicPartition(*place)])


def fetch(consumer: "Consumer") -> list["Message"]:
    """Wait for one record or event, and return it with all that are already available."""
    first = consumer.poll(SLICE_S)
    if first is None:
        return []
    # `consume` with a timeout would wait for all records, not for the first.
    return [first, *consumer.consume(FETCH_MAX, 0)]


class GroupReading:
    """Reads as a member of a group; `to_end` stops at the end of all assigned partitions."""

    def __init__(
        self,
        consumer: "Consumer",
        topics: list[str],
        *,
        to_end: bool,
        on_warning: Callable[[str], None],
    ) -> None:
        self._consumer = consumer
        self._to_end = to_end
        self._on_warning = on_warning
        self._behind: set[Place] | None = None
        consumer.subscribe(
            topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def __iter__(self) -> Iterator[list["Message"]]:
        """Yield batches of records as they arrive; an empty one if none arrived for a while."""
        warn_at_s = time.monotonic() + GROUP_PATIENCE_S
        while not self._to_end or self._behind != set():
            if self._behind is None and time.monotonic() > warn_at_s:
                self._on_warning("No partition assigned yet; check that the broker supports groups")
                warn_at_s = math.inf
            yield [message for message in fetch(self._consumer) if self._wanted(message)]

    def store(self, messages: list["Message"]) -> None:
        """Mark printed records for the next commit."""
        latest = {(each.topic(), each.partition()): each for each in messages}
        for message in latest.values():
            try:
                self._consumer.store_offsets(message=message)
            except KafkaException as error:
                # The partition now belongs to another member, which reads the record again.
                if error.args[0].code() != KafkaError._STATE:
                    raise

    def _wanted(self, message: "Message") -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if self._behind is not None:
            self._behind.discard((message.topic(), message.partition()))
        return False

    def _on_assign(self, _: "Consumer", partitions: list[TopicPartition]) -> None:
        places = {(each.topic, each.partition) for each in partitions}
        self._behind = (self._behind or set()) | places

    def _on_revoke(self, _: "Consumer", partitions: list[TopicPartition]) -> None:
        if self._behind is not None:
            self._behind -= {(each.topic, each.partition) for each in partitions}
