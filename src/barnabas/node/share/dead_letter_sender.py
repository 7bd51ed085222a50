"""Sends the dead letters of one share partition, each once (ADR 37).

    offsets wait (ARCHIVING)
      -> their records are read, in steps, and become one batch
      -> the batch's offsets, producer and sequence are stored: the shipment
      -> the batch is produced
      -> its offsets are ARCHIVED

One shipment is on its way at a time. A later leader that finds offsets of the stored shipment
ARCHIVING sends the same batch again, and the dead-letter partition recognizes it by its sequence.
Offsets that wait and are in no shipment were never sent. A shipment is replaced only after it was
refused, or because it can never arrive; the next one then has a new producer epoch or id.

While the dead-letter topic cannot be written, attempts go on with growing delays. Waiting offsets
keep the start offset back, so the oldest are given up once the window is long: they never stop the
delivery of the source.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

from barnabas.model.dead_letter_rules import DeadLetterRules
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.share_state import DeliveryState, SharePartitionKey, Shipment, StateBatch
from barnabas.model.steps import Steps
from barnabas.model.timers import Timer
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.dead_letter_reading import LETTERS_MAX, filled, missing, read_letters
from barnabas.node.share.dead_letter_topics import DeadLetterTopics, Destination
from barnabas.share.dead_letter_records import Letter, Source, packed, runs_of
from barnabas.share.window import SPAN_MAX, Window
from barnabas.storage.producers import SEQUENCE_MASK

RETRY_MS = 1_000
RETRY_MAX_MS = 30_000
NOTICED_FAILURES = 2
"""A dead-letter partition whose leader changes refuses an attempt: that is not logged."""
WAITING_SPAN_MAX = SPAN_MAX // 2
"""How long the window may be while dead letters cannot be written."""
PRODUCER_EPOCH_MAX = (1 << 15) - 1
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
UNKNOWN_TO_PARTITION = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)
"""The dead-letter partition has lost what it knew of the producer, and has not taken the batch."""


class DeadSource(Protocol):
    """The share partition whose dead letters are sent."""

    key: SharePartitionKey
    partition: Partition
    window: Window | None

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition in the same epoch."""

    @property
    def deliveries_max(self) -> int:
        """How often a record is delivered."""

    def store_shipment(self, shipment: Shipment) -> Pending[None]:
        """Store what is about to be sent."""

    def archive(self, runs: Sequence[tuple[int, int]]) -> None:
        """End the wait of offsets."""


class _Plan(NamedTuple):
    """What is sent next."""

    to: Destination
    wanted: Sequence[StateBatch]
    rules: DeadLetterRules
    again: Shipment | None
    """The shipment that is sent again."""


class DeadLetterSender:
    """The dead letters of one share partition, in one leader epoch."""

    def __init__(
        self, source: DeadSource, topics: DeadLetterTopics, shipment: Shipment | None
    ) -> None:
        """Begin with the shipment that is stored."""
        self.sent = 0
        """How many dead letters were written."""
        self.given_up = 0
        """How many records were archived without one because it could not be written."""
        self._source = source
        self._topics = topics
        self._shipment = shipment
        self._is_stored = True
        self._is_open = True
        """Whether the shipment may have to be sent again."""
        self._is_acknowledged = False
        self._needs_producer_id = shipment is None or _is_last_epoch(shipment)
        self._failures = 0
        self._letters_max = LETTERS_MAX
        self._is_headers_only = False
        self._is_busy = False
        self._timer: Timer | None = None

    def look(self) -> None:
        """Send what waits, unless something is on its way."""
        window = self._source.window
        if window is None or not window.archiving_count:
            return
        if self._is_busy:
            self._make_room(window)
        elif self._source.is_current:
            self._is_busy = True
            self._topics.enter(self._begin)

    def stop(self) -> None:
        """Stop: another broker leads, or the topic is deleted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _open_shipment(self) -> Shipment | None:
        """The shipment that was not acknowledged, if there is still a need for it."""
        shipment, window = self._shipment, self._source.window
        if shipment is None or window is None or not self._is_open:
            return None
        return shipment if any(_waiting(window, run) for run in shipment.runs) else None

    def _begin(self) -> None:
        """Decide what to send, if there is still something."""
        window = self._source.window
        if window is None or not window.archiving_count or not self._source.is_current:
            self._end_turn()
            return
        try:
            plan = self._plan()
        except ApiError as error:
            self._failed(error)
            return
        if plan is None:
            self._go_on()
        elif plan.again is None and self._needs_producer_id:
            self._topics.new_producer_id().when_done(
                lambda found: self._read(plan, found), self._failed
            )
        else:
            self._read(plan, None)

    def _plan(self) -> _Plan | None:
        source, window = self._source, self._source.window
        assert window is not None
        name = source.partition.name
        rules = self._topics.rules_for(source.key.group_id, name.topic)
        if rules is None:
            self._give_up(window.end, "the group has no dead-letter topic any more")
            return None
        again = self._open_shipment
        if again is not None:
            to = self._topics.find(again.topic_id, again.partition)
            if to is not None and not (self._failures and to.topic != rules.topic):
                return _Plan(to, _wanted(window, again, source.deliveries_max), rules, again)
        to = self._topics.destination(rules.topic, name.partition)
        return _Plan(to, window.archiving(window.start, self._letters_max), rules, None)

    def _read(self, plan: _Plan, producer_id: int | None) -> None:
        owner = str(self._source.partition.name)
        self._topics.scan(owner, self._reading(plan, producer_id))

    def _reading(self, plan: _Plan, producer_id: int | None) -> Steps[None]:
        try:
            yield from self._read_and_send(plan, producer_id)
        except Exception as error:  # noqa: BLE001 - or it would keep its turn forever
            self._failed(error)

    def _read_and_send(self, plan: _Plan, producer_id: int | None) -> Steps[None]:
        limit = None if plan.again is not None else plan.to.batch_bytes_max
        letters, end = yield from read_letters(self._source.partition, plan.wanted, limit)
        shipment = plan.again
        if shipment is not None:
            letters = filled(letters, plan.wanted)
        elif letters:
            shipment = self._next_shipment(plan.to, letters, producer_id)
        if shipment is None:
            self._archive_missing(plan, letters, end)
            self._go_on()
            return
        if self._is_headers_only:
            letters = [each._replace(record=None) for each in letters]
        copies = plan.rules.copies
        name = self._source.partition.name
        source = Source(*name, self._source.key.group_id, self._source.deliveries_max)
        wall_ms = self._topics.timers.wall_ms
        batch = yield partial(packed, letters, source, shipment, wall_ms, copies=copies)
        if not self._source.is_current:
            self._end_turn()
            return
        if plan.again is None:
            self._archive_missing(plan, letters, end)
        self._store(shipment, plan.to, batch)

    def _next_shipment(
        self, to: Destination, letters: Sequence[Letter], producer_id: int | None
    ) -> Shipment:
        """Return a shipment that the dead-letter partition takes for no other."""
        place, runs, last = (to.topic_id, to.partition), runs_of(letters), self._shipment
        if producer_id is not None:
            return Shipment(*place, producer_id, 0, 0, runs)
        assert last is not None
        if self._is_acknowledged and last[:2] == place:
            sequence = (last.base_sequence + last.record_count) & SEQUENCE_MASK
            return Shipment(*place, last.producer_id, last.producer_epoch, sequence, runs)
        return Shipment(*place, last.producer_id, last.producer_epoch + 1, 0, runs)

    def _store(self, shipment: Shipment, to: Destination, batch: bytearray) -> None:
        if shipment is self._shipment and self._is_stored:
            self._send(to, batch)
            return
        self._shipment, self._is_stored, self._is_open = shipment, False, True
        self._is_acknowledged = False
        self._needs_producer_id = _is_last_epoch(shipment)

        def stored(_: None) -> None:
            self._is_stored = True
            self._send(to, batch)

        self._source.store_shipment(shipment).when_done(stored, self._not_stored)

    def _not_stored(self, error: Exception) -> None:
        if isinstance(error, ApiError) and error.code is ErrorCode.INVALID_REQUEST:
            self._end_turn()  # the state is deleted, and so is the group: its members would tell
        else:
            self._failed(error)

    def _send(self, to: Destination, batch: bytearray) -> None:
        if self._source.is_current:
            self._topics.produce(to, batch).when_done(lambda _: self._written(), self._refused)
        else:
            self._end_turn()

    def _written(self) -> None:
        shipment = self._shipment
        assert shipment is not None
        self._is_open, self._is_acknowledged = False, True
        self._letters_max, self._is_headers_only = LETTERS_MAX, False
        self.sent += shipment.record_count
        self._source.archive(shipment.runs)
        self._go_on()

    def _refused(self, error: Exception) -> None:
        code = error.code if isinstance(error, ApiError) else None
        if code in TOO_LARGE:
            self._make_smaller()
            self._go_on()
            return
        if code in UNKNOWN_TO_PARTITION:
            self._is_open, self._needs_producer_id = False, True
        self._failed(error)

    def _make_smaller(self) -> None:
        """Replace a shipment that is too large: by half of it, or by headers alone."""
        shipment = self._shipment
        assert shipment is not None
        self._is_open = False
        if shipment.record_count > 1:
            self._letters_max = shipment.record_count // 2
        elif not self._is_headers_only:
            self._is_headers_only, self._letters_max = True, 1
        else:
            reason = "max.message.bytes of the dead-letter topic is too small: raise it"
            self._give_up(shipment.runs[-1][1] + 1, reason)

    def _give_up(self, end: int, problem: str) -> None:
        """Archive what waits below an offset without dead letters."""
        window = self._source.window
        assert window is not None
        before = window.archiving_count
        self._source.archive([(window.start, end - 1)])
        count = before - window.archiving_count
        self.given_up += count
        facts = {"records": count, "partition": str(self._source.partition.name)}
        event = "records are archived without dead letters"
        self._topics.notice(self._source.key.group_id, event, problem=problem, **facts)

    def _make_room(self, window: Window) -> None:
        """Give up the oldest while they cannot be written, so that the source is delivered."""
        if self._failures and window.end - window.start > WAITING_SPAN_MAX:
            end = window.end - WAITING_SPAN_MAX
            if window.archiving(window.start, 1)[0].first < end:
                self._give_up(end, "the dead-letter topic cannot be written for too long")

    def _archive_missing(self, plan: _Plan, letters: Sequence[Letter], end: int) -> None:
        """Archive offsets that have no record: a marker, or compaction removed it."""
        gaps = missing(letters, plan.wanted, end)
        if gaps:
            self._source.archive(gaps)

    def _failed(self, error: Exception) -> None:
        """Try again later."""
        if not self._source.is_current:
            self._end_turn()
            return
        self._failures += 1
        if self._failures >= NOTICED_FAILURES:
            problem = (error.message if isinstance(error, ApiError) else "") or str(error)
            event = "dead letters cannot be written; retrying"
            partition = str(self._source.partition.name)
            group_id = self._source.key.group_id
            self._topics.notice(group_id, event, partition=partition, problem=problem)
        self._topics.leave()
        delay_ms = min(RETRY_MAX_MS, RETRY_MS << min(self._failures - 1, 10))
        self._timer = self._topics.timers.after(delay_ms, self._try_again)
        window = self._source.window
        if window is not None:
            self._make_room(window)

    def _try_again(self) -> None:
        self._timer = None
        self._topics.enter(self._begin)

    def _go_on(self) -> None:
        self._failures = 0
        self._end_turn()
        self.look()

    def _end_turn(self) -> None:
        self._topics.leave()
        self._is_busy = False


def _is_last_epoch(shipment: Shipment) -> bool:
    return shipment.producer_epoch >= PRODUCER_EPOCH_MAX


def _waiting(window: Window, run: tuple[int, int]) -> bool:
    """Return whether an offset of a run waits for its dead letter."""
    found = window.archiving(run[0], 1)
    return bool(found) and found[0].first <= run[1]


def _wanted(window: Window, shipment: Shipment, deliveries_max: int) -> list[StateBatch]:
    """Return the offsets of a shipment with their delivery counts, where they are known."""
    wanted: list[StateBatch] = []
    for first, last in shipment.runs:
        for each in window.archiving(first, last - first + 1):
            if each.first > last:
                break
            if each.first > first:
                wanted.append(_of_unknown_count(first, each.first - 1, deliveries_max))
            wanted.append(each._replace(last=min(each.last, last)))
            first = wanted[-1].last + 1  # noqa: PLW2901
        if first <= last:
            wanted.append(_of_unknown_count(first, last, deliveries_max))
    return wanted


def _of_unknown_count(first: int, last: int, deliveries_max: int) -> StateBatch:
    return StateBatch(first, last, DeliveryState.ARCHIVING, deliveries_max)
