"""What both consumers share: a read-ahead buffer, and the books on what was handed out.

librdkafka calls a message consumed when it leaves its queue. We fetch many at a time, so the
books are kept here instead:

    fetched --fill--> buffer --take--> handed out --settle--> done, may be committed

A message is done with when the next one is asked for, so a crash while working on it leads
to its being read again, never to its loss. `seek`, `pause` and a rebalance throw away what
the buffer holds of their partitions; it is fetched again when it is wanted.

Without a group, partitions are assigned by hand. librdkafka looks for a coordinator even
then; whatever comes of that is ignored, so such a consumer works on brokers without groups.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Message as RawMessage
from confluent_kafka import TopicPartition as RawPartition

from barnabas.client.errors import ClosedError, GroupError, from_error, from_exception
from barnabas.client.messages import Message, message_from
from barnabas.client.settings import Setting, setting_error
from barnabas.model.ids import TopicPartition

READ_AHEAD = 500
METADATA_TIMEOUT_S = 10.0

START_NAMES = ("beginning", "end")
NO_OFFSET_YET = {KafkaError._NO_OFFSET, KafkaError._STATE, KafkaError._UNKNOWN_PARTITION}
COORDINATOR_TROUBLE = {
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError._WAIT_COORD,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}

Start = Literal["beginning", "end"] | int
"""Where to begin: "beginning", "end", or an offset."""
T = TypeVar("T")
OnPartitions = Callable[[list[TopicPartition]], None]


class Session:
    """One confluent-kafka consumer with its buffer; not for several threads at once."""

    def __init__(self, properties: dict[str, Setting], *, grouped: bool) -> None:
        try:
            self._kafka = confluent_kafka.Consumer(properties)
        except (KafkaException, TypeError, ValueError) as exception:
            raise setting_error(exception) from exception
        self._grouped = grouped
        self._buffer: deque[RawMessage] = deque()
        self._handed_out: dict[TopicPartition, RawMessage] = {}
        self._next_offset: dict[TopicPartition, int] = {}
        self.closed = False

    def subscribe(
        self, topics: Iterable[str], on_assign: OnPartitions | None, on_revoke: OnPartitions | None
    ) -> None:
        """Join the group for these topics."""
        self.require_open()
        if not self._grouped:
            raise GroupError("subscribe needs a group: pass group=..., or use assign")

        def assigned(_: object, partitions: list[RawPartition]) -> None:
            if on_assign is not None:
                on_assign(_plain(partitions))

        def revoked(_: object, partitions: list[RawPartition]) -> None:
            self.forget(_plain(partitions))
            if on_revoke is not None:
                on_revoke(_plain(partitions))

        self._call(
            self._kafka.subscribe,
            list(topics),
            on_assign=assigned,
            on_revoke=revoked,
            on_lost=revoked,
        )

    def assign(self, partitions: Iterable[TopicPartition], start: Start) -> None:
        """Read these partitions and no others, from one start."""
        self.require_open()
        self.forget(list(self._next_offset))
        native = [_native(each, self._resolve(each, start)) for each in partitions]
        self._call(self._kafka.assign, native)

    def fill(self, timeout_s: float) -> None:
        """Wait for one message, unless one is buffered, then take along what else has arrived.

        Each call of librdkafka may revoke partitions or raise. What was read before that call is
        in the buffer by then: `forget` finds it, and an exception does not lose it.
        """
        if self._buffer:
            return
        first = self._call(self._kafka.poll, timeout_s)
        if first is None:
            return
        self._keep([first])
        # `consume` with a timeout would wait for all it was asked for, not for the first.
        self._keep(self._call(self._kafka.consume, READ_AHEAD, 0))

    def take(self) -> Message | None:
        """Hand out the next buffered message, or raise the error that stands in its place."""
        if not self._buffer:
            return None
        raw = self._buffer.popleft()
        if raw.error() is not None:
            raise from_error(raw.error())
        message = message_from(raw)
        place = TopicPartition(message.topic, message.partition)
        self._handed_out[place] = raw
        self._next_offset[place] = message.offset + 1
        return message

    def settle(self) -> None:
        """Mark everything handed out so far as done, so that it may be committed."""
        if self._grouped:
            for raw in self._handed_out.values():
                self._store(raw)
        self._handed_out.clear()

    def commit(self, offsets: Mapping[TopicPartition, int] | None, *, wait: bool) -> None:
        """Commit given offsets, or everything that is done with."""
        self.require_open()
        if not self._grouped:
            raise GroupError("commit needs a group: pass group=... to the consumer")
        try:
            if offsets is None:
                self._kafka.commit(asynchronous=not wait)
            else:
                native = [_native(place, offset) for place, offset in offsets.items()]
                self._kafka.commit(offsets=native, asynchronous=not wait)
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._NO_OFFSET:
                raise from_exception(exception) from exception

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading; what was read ahead goes back."""
        for place in partitions:
            self._call(self._kafka.pause, [_native(place)])
            offset = self._first_buffered(place)
            if offset is not None:
                self.seek(place, offset)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read on."""
        self._call(self._kafka.resume, [_native(each) for each in partitions])

    def seek(self, place: TopicPartition, start: Start) -> None:
        """Read on from elsewhere."""
        self.require_open()
        self.forget([place])
        self._call(self._kafka.seek, _native(place, self._resolve(place, start)))

    def position(self, place: TopicPartition) -> int | None:
        """Return the offset that would be handed out next, if anything has been read."""
        self.require_open()
        if place in self._next_offset:
            return self._next_offset[place]
        offset = int(self._call(self._kafka.position, [_native(place)])[0].offset)
        return offset if offset >= 0 else None

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop what is buffered and noted of some partitions."""
        gone = set(partitions)
        kept = [raw for raw in self._buffer if _place(raw) not in gone]
        self._buffer = deque(kept)
        for place in gone:
            self._handed_out.pop(place, None)
            self._next_offset.pop(place, None)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions, in order."""
        self.require_open()
        found = self._call(self._kafka.list_topics, topic, METADATA_TIMEOUT_S).topics[topic]
        if found.error is not None:
            raise from_error(found.error)
        return [TopicPartition(topic, number) for number in sorted(found.partitions)]

    def offsets(self, place: TopicPartition) -> tuple[int, int]:
        """Return a partition's first offset, and the one the next record will get."""
        self.require_open()
        low, high = self._call(
            self._kafka.get_watermark_offsets, _native(place), METADATA_TIMEOUT_S
        )
        return int(low), int(high)

    def close(self) -> None:
        """Leave the group, committing what is done with where commits are automatic."""
        if not self.closed:
            self.closed = True
            self._kafka.close()

    def require_open(self) -> None:
        """Raise where the session has ended."""
        if self.closed:
            raise ClosedError("this consumer is closed; make another one")

    def _resolve(self, place: TopicPartition, start: Start) -> int:
        # librdkafka looks "beginning" and "end" up in the background, and a seek made
        # meanwhile is undone when the answer comes: records would be read twice.
        if isinstance(start, int):
            return start
        return self.offsets(place)[START_NAMES.index(start)]

    def _keep(self, read: Iterable[RawMessage]) -> None:
        self._buffer.extend(raw for raw in read if self._matters(raw))

    def _matters(self, raw: RawMessage) -> bool:
        if raw.error() is None:
            return True
        code = raw.error().code()
        if code == KafkaError._PARTITION_EOF:
            return False
        return self._grouped or code not in COORDINATOR_TROUBLE

    def _store(self, raw: RawMessage) -> None:
        try:
            self._kafka.store_offsets(message=raw)
        except KafkaException as exception:
            # The partition went to another member in the meantime: it will read this again.
            if exception.args[0].code() not in NO_OFFSET_YET:
                raise from_exception(exception) from exception

    def _first_buffered(self, place: TopicPartition) -> int | None:
        found = (raw.offset() for raw in self._buffer if _place(raw) == place)
        return next(found, None)

    def _call(self, method: Callable[..., T], *arguments: object, **named: object) -> T:
        try:
            return method(*arguments, **named)
        except KafkaException as exception:
            raise from_exception(exception) from exception


def _place(raw: RawMessage) -> TopicPartition:
    return TopicPartition(raw.topic(), raw.partition())


def _native(place: TopicPartition, offset: int = confluent_kafka.OFFSET_INVALID) -> RawPartition:
    return RawPartition(place.topic, place.partition, offset)


def _plain(partitions: list[RawPartition]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]
