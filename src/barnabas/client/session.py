"""The common part of both consumers: a prefetch buffer, and the offsets of processed messages.

librdkafka counts a message as consumed when it leaves its queue. We take many at a time, so this
module keeps track instead:

    fetched --fill--> buffer --take--> returned --settle--> processed, may be committed

A message is processed when the program requests the next one, so after a crash it is read again and
never lost. `seek`, `pause` and a rebalance drop the buffered messages of their partitions; they are
fetched again later.

Callbacks of the program run inside librdkafka's calls. Their exceptions are raised after the call:
otherwise confluent-kafka would drop the messages that the call returns.

Without a group, partitions are assigned explicitly. librdkafka looks for a coordinator even then;
the result is ignored, so such a consumer works with brokers without groups.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Message as RawMessage
from confluent_kafka import TopicPartition as RawPartition

from barnabas.client.arguments import (
    Place,
    Start,
    as_offsets,
    as_partition,
    as_partitions,
    as_start,
    as_topic,
    as_topics,
)
from barnabas.client.assigning import LOGICAL, adopt, is_state, native, readmit
from barnabas.client.client_messages import Message, message_from
from barnabas.client.client_settings import Setting, setting_error
from barnabas.client.errors import (
    ClientError,
    ClosedError,
    GroupError,
    OffsetOutOfRangeError,
    UsageError,
    from_error,
    from_exception,
)
from barnabas.client.turns import Turn
from barnabas.model.ids import TopicPartition

READ_AHEAD = 500
METADATA_TIMEOUT_S = 10.0

NO_OFFSET_YET = {KafkaError._NO_OFFSET, KafkaError._STATE, KafkaError._UNKNOWN_PARTITION}
COORDINATOR_TROUBLE = {
    KafkaError._UNSUPPORTED_FEATURE,
    KafkaError._WAIT_COORD,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}

T = TypeVar("T")
OnPartitions = Callable[[list[TopicPartition]], None]


class Failure(NamedTuple):
    """An error in place of a message."""

    place: TopicPartition | None
    error: ClientError


class Session:
    """One confluent-kafka consumer with its buffer; one thread at a time may use it."""

    def __init__(
        self, properties: dict[str, Setting], *, grouped: bool, start: Place | None = None
    ) -> None:
        try:
            self._kafka = confluent_kafka.Consumer(properties)
        except (KafkaException, TypeError, ValueError) as exception:
            raise setting_error(exception) from exception
        self._grouped = grouped
        self._start = start
        self._buffer: deque[RawMessage | Failure] = deque()
        self._handed_out: dict[TopicPartition, RawMessage] = {}
        self._next_offset: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._stopped: dict[TopicPartition, OffsetOutOfRangeError] = {}
        self._turn = Turn(self.require_open)
        self._reader: int | None = None
        self._calls = 0
        self._raised: BaseException | None = None
        self._leaving: int | None = None
        self._left = False
        self.closed = False

    def subscribe(
        self, topics: Iterable[str], on_assign: OnPartitions | None, on_revoke: OnPartitions | None
    ) -> None:
        """Join the group for these topics."""
        self.require_open()
        if not self._grouped:
            raise GroupError("subscribe needs a group: pass group=..., or use assign")

        def assigned(kafka: confluent_kafka.Consumer, partitions: list[RawPartition]) -> None:
            self._call_back(self._call, adopt, kafka, partitions, self._start)
            if on_assign is not None:
                self._call_back(on_assign, _plain(partitions))

        def revoked(_: object, partitions: list[RawPartition]) -> None:
            self.forget(_plain(partitions))
            self._paused.difference_update(_plain(partitions))
            if on_revoke is not None:
                self._call_back(on_revoke, _plain(partitions))

        with self._turn:
            self._call(
                self._kafka.subscribe,
                as_topics(topics),
                on_assign=assigned,
                on_revoke=revoked,
                on_lost=revoked,
            )

    def assign(self, partitions: Iterable[TopicPartition], start: Start) -> None:
        """Read exactly these partitions, from one start position."""
        self.require_open()
        wanted, begin = as_partitions(partitions), as_start(start)
        with self._turn:
            placed = [native(each, self._resolve(each, begin)) for each in wanted]
            for noted in (self._buffer, self._handed_out, self._next_offset, self._stopped):
                noted.clear()
            self._paused.clear()
            self._call(self._kafka.assign, placed)

    def fill(self, timeout_s: float) -> None:
        """Wait for one message, unless one is buffered, then take all that have arrived.

        Each call of librdkafka may revoke partitions or raise. Messages from earlier calls are
        already in the buffer: `forget` can drop them, and an exception does not lose them.
        """
        if self._buffer:
            return
        with self._turn:
            self.require_open()
            self._reader = threading.get_ident()
            first = self._call(self._kafka.poll, timeout_s)
            if first is not None:
                self._keep([first])
                # `consume` with a timeout would wait for all messages, not for the first.
                self._keep(self._call(self._kafka.consume, READ_AHEAD, 0))
            self._after_callbacks()
            if first is None and self._stopped:
                # Raised repeatedly, so that a stopped partition is not overlooked.
                self._buffer.extend(Failure(*each) for each in self._stopped.items())

    def take(self) -> Message | None:
        """Return the next buffered message, or raise the error in its place."""
        try:
            raw = self._buffer.popleft()
        except IndexError:
            return None
        if isinstance(raw, Failure):
            raise raw.error.with_traceback(None)
        message = message_from(raw)
        place = TopicPartition(message.topic, message.partition)
        self._handed_out[place] = raw
        self._next_offset[place] = message.offset + 1
        return message

    def settle(self) -> None:
        """Mark all returned messages as processed, so that they may be committed."""
        done, self._handed_out = self._handed_out, {}
        if self._grouped:
            for raw in done.values():
                self._store(raw)

    def commit(self, offsets: Mapping[TopicPartition, int] | None, *, wait: bool) -> None:
        """Commit given offsets, or all returned messages."""
        self.require_open()
        if not self._grouped:
            raise GroupError("commit needs a group: pass group=... to the consumer")
        given = None if offsets is None else as_offsets(offsets)
        with self._turn:
            self.settle()
            try:
                if given is None:
                    self._kafka.commit(asynchronous=not wait)
                else:
                    wanted = [native(place, offset) for place, offset in given.items()]
                    self._kafka.commit(offsets=wanted, asynchronous=not wait)
            except KafkaException as exception:
                if exception.args[0].code() != KafkaError._NO_OFFSET:
                    raise from_exception(exception) from exception

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pause partitions and drop their buffered messages."""
        self.require_open()
        with self._turn:
            for place in self._assigned(as_partitions(partitions)):
                self._call(self._kafka.pause, [native(place)])
                self._paused.add(place)
                offset = self._first_buffered(place)
                if offset is not None:
                    self.seek(place, offset)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read on."""
        self.require_open()
        with self._turn:
            wanted = self._assigned(as_partitions(partitions))
            self._call(self._kafka.resume, [native(each) for each in wanted])
            self._paused.difference_update(wanted)

    def seek(self, partition: TopicPartition, start: Start) -> None:
        """Continue a partition at another offset."""
        self.require_open()
        place, begin = as_partition(partition), as_start(start)
        with self._turn:
            self._assigned([place])
            target = native(place, self._resolve(place, begin))
            self.forget([place])
            self._seek(target)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next message, if any has been read."""
        self.require_open()
        place = as_partition(partition)
        with self._turn:
            if place in self._next_offset:
                return self._next_offset[place]
            offset = int(self._call(self._kafka.position, [native(place)])[0].offset)
        return offset if offset >= 0 else None

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the buffered messages and offsets of some partitions."""
        gone = set(partitions)
        self._buffer = deque(raw for raw in self._buffer if _place(raw) not in gone)
        for place in gone:
            self._handed_out.pop(place, None)
            self._next_offset.pop(place, None)
            self._stopped.pop(place, None)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions, in order."""
        self.require_open()
        name = as_topic(topic)
        with self._turn:
            found = self._call(self._kafka.list_topics, name, METADATA_TIMEOUT_S).topics[name]
        if found.error is not None:
            raise from_error(found.error)
        return [TopicPartition(name, number) for number in sorted(found.partitions)]

    def offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return a partition's first offset, and the offset of the next record to be written."""
        self.require_open()
        place = as_partition(partition)
        with self._turn:
            low, high = self._call(
                self._kafka.get_watermark_offsets, native(place), METADATA_TIMEOUT_S
            )
        return int(low), int(high)

    def close(self, *, settled: bool) -> None:
        """Leave the group; commit processed messages if commits are automatic.

        Another thread that polls must leave first. The message that it processes stays uncommitted.
        """
        self.closed = True
        with self._turn.waited_for():
            if self._calls:  # from a callback: librdkafka cannot be closed inside one of its calls
                return
            self._leave(settled=settled and self._reader in (None, threading.get_ident()))

    def require_open(self) -> None:
        """Raise if the session has ended; callbacks during `close` may still use it."""
        if self.closed and threading.get_ident() != self._leaving:
            raise ClosedError("this consumer is closed; create another one")

    def _leave(self, *, settled: bool) -> None:
        if self._left:
            return
        self._left = True
        self._leaving = threading.get_ident()
        try:
            if settled:
                self.settle()
        finally:
            try:
                self._call(self._kafka.close)
            finally:
                self._leaving = None
        self._after_callbacks()

    def _resolve(self, place: TopicPartition, start: Place | int) -> int:
        # librdkafka looks "beginning" and "end" up in the background, and a seek made
        # meanwhile is undone when the response arrives: records would be read twice.
        if isinstance(start, int):
            return start
        return self.offsets(place)[0 if start == "beginning" else 1]

    def _seek(self, target: RawPartition) -> None:
        try:
            self._kafka.seek(target)
        except KafkaException as exception:
            if not is_state(exception):
                raise from_exception(exception) from exception
            self._call(readmit, self._kafka, target, paused=self._paused, done=self._done_offsets())

    def _assigned(self, wanted: list[TopicPartition]) -> list[TopicPartition]:
        """Return partitions that are assigned to this consumer, or raise if one is not."""
        have = set(_plain(self._call(self._kafka.assignment)))
        for place in wanted:
            if place not in have:
                raise UsageError(f"partition {place} is not assigned to this consumer now")
        return wanted

    def _done_offsets(self) -> dict[TopicPartition, int]:
        """Return the offsets that the next commit would commit."""
        at_hand = {place: int(raw.offset()) for place, raw in self._handed_out.items()}
        return {**self._next_offset, **at_hand} if self._grouped else {}

    def _keep(self, read: Iterable[RawMessage]) -> None:
        for raw in read:
            if raw.error() is None:
                self._buffer.append(raw)
            else:
                self._keep_error(raw)

    def _keep_error(self, raw: RawMessage) -> None:
        code = raw.error().code()
        if code == KafkaError._PARTITION_EOF:
            return
        if code == KafkaError._AUTO_OFFSET_RESET:
            self._keep_reset(raw)
        elif self._grouped or code not in COORDINATOR_TROUBLE:
            self._buffer.append(Failure(_place(raw), from_error(raw.error())))

    def _keep_reset(self, raw: RawMessage) -> None:
        """Handle a stopped partition: it has no committed offset, or one that is out of range."""
        place, offset = TopicPartition(raw.topic(), raw.partition()), raw.offset()
        if offset is None and self._start is not None:
            self._seek(native(place, LOGICAL[self._start]))
            return
        if offset is None:
            self._buffer.append(Failure(place, from_error(raw.error())))
            return
        self._stopped[place] = self._out_of_range(place, int(offset), raw.error().code())
        self._buffer.append(Failure(place, self._stopped[place]))

    def _out_of_range(self, place: TopicPartition, offset: int, code: int) -> OffsetOutOfRangeError:
        try:
            first, end = self.offsets(place)
            held = f"the log has offsets {first} to {end - 1}" if end > first else "it is empty"
        except ClientError as error:
            held = f"its offsets could not be requested ({error})"
        return OffsetOutOfRangeError(
            f"partition {place} does not have offset {offset}; {held}. Use seek to continue at "
            'one of them, or create the consumer with out_of_range="beginning" or "end"',
            code,
            place,
            offset,
        )

    def _store(self, raw: RawMessage) -> None:
        try:
            self._kafka.store_offsets(message=raw)
        except KafkaException as exception:
            # The partition now belongs to another member, which will read this again.
            if exception.args[0].code() not in NO_OFFSET_YET:
                raise from_exception(exception) from exception

    def _first_buffered(self, place: TopicPartition) -> int | None:
        for raw in self._buffer:
            if not isinstance(raw, Failure) and _place(raw) == place:
                return int(raw.offset())
        return None

    def _call_back(self, callback: Callable[..., object], *arguments: object) -> None:
        """Run a callback inside librdkafka; raise its exception after librdkafka's call."""
        try:
            callback(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised after librdkafka's call
            self._raised = self._raised or error

    def _after_callbacks(self) -> None:
        """Do what callbacks requested for after librdkafka's call: raise, or close."""
        raised, self._raised = self._raised, None
        try:
            if self.closed:
                self._leave(settled=False)
        finally:
            if raised is not None:
                raise raised

    def _call(self, method: Callable[..., T], *arguments: object, **named: object) -> T:
        self._calls += 1
        try:
            return method(*arguments, **named)
        except KafkaException as exception:
            raise from_exception(exception) from exception
        finally:
            self._calls -= 1


def _place(raw: RawMessage | Failure) -> TopicPartition | None:
    if isinstance(raw, Failure):
        return raw.place
    return TopicPartition(raw.topic(), raw.partition())


def _plain(partitions: list[RawPartition]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]
