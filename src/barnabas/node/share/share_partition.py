"""A partition as one share group sees it, on the broker that leads the partition.

It joins the window (`share/window.py`) to the log and to the stored state. It begins with the state
that the share coordinator has, and ends with the leader epoch: reading the state fences earlier
leaders, so two leaders never give out the same offset.

Acknowledgements are stored before they are answered. One write is under way at a time; whatever
arrives meanwhile becomes the next write. So the cost of a write is shared by all members.

Where the group has a dead-letter topic, what is not delivered again waits until a
`DeadLetterSender` has sent it. There is none before the first such record.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.model.ports import FileSlice
from barnabas.model.share_state import (
    COMPLETE,
    UNKNOWN_OFFSET,
    SharePartitionKey,
    ShareStates,
    Shipment,
    StateBatch,
    StateUpdate,
    StoredState,
)
from barnabas.model.timers import Timer, Timers
from barnabas.node.partitions.partition import Partition
from barnabas.node.share.acquired_batches import Batches, read_batches
from barnabas.node.share.dead_letter_sender import DeadLetterSender
from barnabas.node.share.dead_letter_topics import DeadLetterTopics
from barnabas.share.cells import Acquired
from barnabas.share.flood_breaker import FloodBreaker
from barnabas.share.state_batches import merged
from barnabas.share.window import Acknowledgement, AcknowledgeType, Change, Window, WindowLimits
from barnabas.storage.trust import Allowance

ENDED = {
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
"""Errors of the share coordinator after which this leader may not continue: another one has the
state, or the state is deleted."""
OFFSETS_MAX = (1 << 31) - 1
RETRY_MS = 100
RETRY_MAX_MS = 10_000
"""How long it waits after a write that failed, at first and at most."""


class ShareRules(Protocol):
    """The configs of a group that a share partition applies."""

    @property
    def lock_duration_ms(self) -> int:
        """How long a member may hold a record."""

    @property
    def deliveries_max(self) -> int:
        """How often a record is delivered before it is archived."""

    @property
    def locks_max(self) -> int:
        """How many records of a partition members may hold."""

    @property
    def reads_committed(self) -> bool:
        """Whether records of aborted and open transactions are left out."""

    @property
    def can_renew(self) -> bool:
        """Whether a member may ask for more time."""

    @property
    def backoff_ms(self) -> int:
        """How long a record that was released waits the first time; 0 for not at all."""

    @property
    def backoff_max_ms(self) -> int:
        """How long it waits at most."""


class FetchLimits(NamedTuple):
    """What a request takes at most."""

    size: int
    records: int
    is_exact: bool
    """Whether the number of records may not be exceeded to complete a batch."""


class Piece(NamedTuple):
    """Whole batches, and what of them the member has acquired."""

    records: FileSlice
    runs: Sequence[Acquired]


Stored = tuple[Change, Pending[None]]
"""A change that is being stored, and the answer to the member."""
StoredShipment = tuple[Shipment, Pending[None]]
"""What is about to be sent to a dead-letter topic, and the answer to the sender."""
Start = Callable[[Partition], Pending[int]]
"""Looks up where a group begins that has no state yet."""


class SharePartition:
    """One partition of one share group, in one leader epoch."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        states: ShareStates,
        timers: Timers,
        rules: Callable[[], ShareRules],
        first_offset: Start,
        dead_letters: DeadLetterTopics | None = None,
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.window: Window | None = None
        """None while the stored state is read."""
        self.error: ErrorCode | None = None
        """Why it has ended, once it has."""
        self.is_unused = False
        """Whether it ends as soon as everything is stored: the group has no member here."""
        self.waiting: dict[Callable[[], None], None] = {}
        """Has fetches that wait for records look again."""
        self._states = states
        self._timers = timers
        self._rules = rules
        self._first_offset = first_offset
        self._state_epoch = 0
        self._queued: list[Stored] = []
        self._extra: list[StateBatch] = []
        """Ends of deliveries that apply already, for the next write."""
        self._is_start_unstored = False
        self._is_writing = False
        self._retry_delay_ms = RETRY_MS
        self._timer: Timer | None = None
        self._retry: Timer | None = None
        """Writes again what could not be stored."""
        self._dead_letters = dead_letters
        self.sender: DeadLetterSender | None = None
        """Sends dead letters; None before the first."""
        self._loaded_shipment: Shipment | None = None
        self._shipment: StoredShipment | None = None
        """What is about to be sent, for the next write."""
        self._breaker = FloodBreaker()
        self._pause: Timer | None = None
        """Ends a pause of the delivery."""
        partition.watermark.watchers[self] = None
        states.read(key, self.leader_epoch).when_done(self._loaded, self._end)

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition in the same epoch."""
        partition = self.partition
        return (
            self.error is None
            and partition.leads
            and partition.leader_epoch == self.leader_epoch
            and not partition.retired
        )

    @property
    def deadline_ms(self) -> int | None:
        """When it looks for deliveries that end by themselves; None while it need not."""
        timer = self._timer
        return None if timer is None or timer.action is None else timer.deadline_ms

    @property
    def has_more(self) -> bool:
        """Whether there may be something to acquire."""
        window = self.window
        if window is None or (window.dead_count and self._is_paused(window)):
            return False
        offset = window.next_offset
        return offset is not None and offset < self._upper

    def acquire(
        self, member: str, limits: FetchLimits, allowance: Allowance, *, at_least_one: bool
    ) -> Piece | None:
        """Give a member what it can have at present; raise `ApiError` if the log cannot be read."""
        self._apply_rules()
        window = self.window
        if window is not None and window.dead_count and self._is_paused(window):
            return None
        while window is not None and (offset := window.next_offset) is not None:
            batches = read_batches(
                self.partition,
                offset,
                limits.size,
                allowance,
                committed_only=self._rules().reads_committed,
                at_least_one=at_least_one,
            )
            if batches is None:
                return None
            for gap in batches.gaps(offset):
                self._store_also(window.skip(*gap))
            found = self._acquire_from(window, batches, member, offset, limits)
            if found is not None:
                return found
            if window.next_offset == offset:
                return None
        return None

    def acknowledge(self, member: str, acks: Sequence[Acknowledgement]) -> Pending[None]:
        """Store what a member says; answer once it is stored.

        Raises `ApiError`, as the answer may fail with it.
        """
        window = self.window
        if window is None:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "this broker has only begun to lead")
        rules = self._apply_rules()
        if not rules.can_renew and any(ack.kind is AcknowledgeType.RENEW for ack in acks):
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "the group's members cannot renew")
        change = window.acknowledge(member, acks)
        window.renew(member, acks, self._timers.now_ms + rules.lock_duration_ms)
        self._watch_deadline()
        if change is None:
            renews = any(ack.kind is AcknowledgeType.RENEW for ack in acks)
            if renews or not self._has_unstored:
                return Pending.of(None)
            change = Change(())  # all is done with, but that must be stored before it is promised
        answer: Pending[None] = Pending()
        self._queued.append((change, answer))
        self._store()
        return answer

    def release(self, member: str) -> None:
        """Give back what a member holds: it has left, or its connection is lost."""
        if self.window is not None:
            self._apply_rules()
            self._store_also(self.window.release(member))
            self._wake()

    def retire_when_idle(self) -> None:
        """End once nothing is to be stored, unless a member comes before."""
        self.is_unused = True
        self._store()

    @property
    def deliveries_max(self) -> int:
        """How often a record is delivered."""
        return self._rules().deliveries_max

    def store_shipment(self, shipment: Shipment) -> Pending[None]:
        """Store what is about to be sent to the dead-letter topic."""
        answer: Pending[None] = Pending()
        if self.error is None:
            self._shipment = shipment, answer
            self._store()
        else:
            answer.fail(ApiError(self.error))
        return answer

    def archive(self, runs: Sequence[tuple[int, int]]) -> None:
        """End the wait of offsets: their dead letters are written, or given up."""
        if self.window is not None and self.error is None:
            archived = [each for run in runs for each in self.window.archive(*run)]
            self._store_also(archived)
            self._wake()

    def on_progress(self) -> None:
        """Have waiting fetches look: records were appended, or the leadership changed."""
        if not self.is_current:
            self._end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif self.waiting:
            self._wake()

    def on_retired(self) -> None:
        """End: the topic is deleted."""
        self._end(ApiError(ErrorCode.UNKNOWN_TOPIC_ID))

    @property
    def _has_unstored(self) -> bool:
        return bool(self._is_writing or self._extra or self._is_start_unstored)

    @property
    def _upper(self) -> int:
        watermark = self.partition.watermark
        return watermark.last_stable if self._rules().reads_committed else watermark.high

    def _apply_rules(self) -> ShareRules:
        """Apply the group's configs, and the beginning of the log."""
        rules, window = self._rules(), self.window
        if window is not None:
            window.limits = WindowLimits(
                rules.deliveries_max,
                rules.locks_max,
                has_dead_letters=self._has_dead_letters,
                backoff_ms=rules.backoff_ms,
                backoff_max_ms=rules.backoff_max_ms,
            )
            if window.move_start(self.partition.log.start_offset):
                self._is_start_unstored = True
        return rules

    def _acquire_from(
        self, window: Window, batches: Batches, member: str, offset: int, limits: FetchLimits
    ) -> Piece | None:
        last, records_max = batches.last_offset, limits.records
        if not limits.is_exact:
            last, records_max = batches.end_after(offset, limits.records), OFFSETS_MAX
        deadline_ms = self._timers.now_ms + self._rules().lock_duration_ms
        runs = window.acquire(
            member, offset, last, records_max=records_max, deadline_ms=deadline_ms
        )
        if not runs:
            return None
        self._watch_deadline()
        return Piece(batches.slice_with(runs[0].first, runs[-1].last), runs)

    def _loaded(self, stored: StoredState) -> None:
        if self.error is not None:
            return
        self._state_epoch, self._loaded_shipment = stored.state_epoch, stored.shipment
        if stored.start_offset != UNKNOWN_OFFSET:
            self._open(stored.start_offset, stored.batches)
            return

        def begin(offset: int) -> None:
            self._is_start_unstored = True  # or another leader might begin elsewhere
            self._open(offset, ())

        self._first_offset(self.partition).when_done(begin, self._end)

    def _open(self, start: int, batches: Sequence[StateBatch]) -> None:
        if self.error is None:
            self.window = Window(start, batches)
            self._apply_rules()
            self._store()
            self._send_dead_letters()
            self._wake()

    def _end(self, error: Exception) -> None:
        """End: later requests make a new share partition, if this broker still leads."""
        if self.error is not None:
            return
        code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
        self.error = ErrorCode.NOT_LEADER_OR_FOLLOWER if code in ENDED else code
        self.partition.watermark.watchers.pop(self, None)
        for timer in (self._timer, self._pause, self._retry):
            if timer is not None:
                timer.cancel()
        if self.sender is not None:
            self.sender.stop()
        shipment, self._shipment = self._shipment, None
        if shipment is not None:
            shipment[1].fail(ApiError(self.error))
        queued, self._queued = self._queued, []
        for _, answer in queued:
            answer.fail(ApiError(self.error))
        for look in list(self.waiting):
            look()
        self.waiting.clear()

    def _store_also(self, batches: Sequence[StateBatch]) -> None:
        """Store ends of deliveries that apply already."""
        if batches:
            self._extra += batches
            self._store()
            self._send_dead_letters()

    def _store(self) -> None:
        """Write what changed, unless a write is under way."""
        window = self.window
        if self._is_writing or window is None or self.error is not None:
            return
        has_changes = self._queued or self._extra or self._shipment
        if not (has_changes or self._is_start_unstored):
            self._end_if_unused()
            return
        self._is_writing = True
        # The last of several ends counts, where an earlier write was refused.
        extra, self._extra = merged((), self._extra, window.start), []
        shipment, self._shipment = self._shipment, None
        queued, self._queued = self._queued, []
        changed = [each for change, _ in queued for each in window.batches(change)]
        if overlap(extra, changed):  # delivered again meanwhile: one write after the other
            self._queued, queued, changed = queued, [], []
        start = window.start_after([change for change, _ in queued])
        completed = [each for each in changed if each.state in COMPLETE]
        count = window.complete_count + sum(each.last - each.first + 1 for each in completed)
        update = StateUpdate(
            self._state_epoch,
            self.leader_epoch,
            start,
            count - (start - window.start),
            sorted(each for each in [*extra, *changed] if each.last >= start),
            None if shipment is None else shipment[0],
        )
        self._is_start_unstored = False
        self._states.write(self.key, update).when_done(
            lambda _: self._stored(queued, shipment),
            lambda error: self._refused(queued, extra, shipment, error),
        )

    def _stored(self, queued: Sequence[Stored], shipment: StoredShipment | None) -> None:
        window = self.window
        assert window is not None
        for change, _ in queued:
            window.commit(change, self._timers.now_ms)
        self._is_writing = False
        self._retry_delay_ms = RETRY_MS
        self._watch_deadline()
        for _, answer in queued:
            answer.complete(None)
        if shipment is not None:
            shipment[1].complete(None)
        self._store()
        self._send_dead_letters()
        self._wake()

    def _refused(
        self,
        queued: Sequence[Stored],
        extra: Sequence[StateBatch],
        shipment: StoredShipment | None,
        error: Exception,
    ) -> None:
        window = self.window
        assert window is not None
        self._is_writing = False
        # They were not stored, or it is not known: the next write has them.
        self._extra = [*extra, *self._extra]
        self._is_start_unstored = True
        for change, _ in queued:
            self._extra += window.roll_back(change)
        code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
        if code in ENDED:
            self._end(error)
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        for _, answer in queued:
            answer.fail(ApiError(code))
        if shipment is not None:
            shipment[1].fail(ApiError(code))
        if code is ErrorCode.COORDINATOR_NOT_AVAILABLE and self._retry is None:
            # Acknowledgements that came meanwhile wait, too: no other event may ever begin a write.
            self._retry = self._timers.after(self._retry_delay_ms, self._store_again)
            self._retry_delay_ms = min(2 * self._retry_delay_ms, RETRY_MAX_MS)
        self._watch_deadline()
        self._wake()

    def _store_again(self) -> None:
        """Write what could not be stored, even if nothing else changes."""
        self._retry = None
        self._store()

    def _end_if_unused(self) -> None:
        """End if the group has no member here, and no dead letter is on its way."""
        window = self.window
        if self.is_unused and window is not None and not window.archiving_count:
            self._end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _watch_deadline(self) -> None:
        """Set the timer for the next delivery, or backoff, that ends by itself."""
        deadline_ms = _first_of(self.window)
        timer = self._timer
        if timer is not None:
            if timer.deadline_ms == deadline_ms:
                return
            timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            self._timer = self._timers.after(deadline_ms - self._timers.now_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        window = self.window
        if window is not None and self.error is None:
            self._apply_rules()
            self._store_also(window.expire(self._timers.now_ms))
            window.end_backoffs(self._timers.now_ms)
            self._watch_deadline()
            self._wake()

    @property
    def _has_dead_letters(self) -> bool:
        topics, source = self._dead_letters, self.partition.name.topic
        return topics is not None and topics.rules_for(self.key.group_id, source) is not None

    def _send_dead_letters(self) -> None:
        """Send what waits for a dead letter."""
        window, topics = self.window, self._dead_letters
        if window is None or topics is None or not window.archiving_count:
            return
        if self.sender is None:
            self.sender = DeadLetterSender(self, topics, self._loaded_shipment)
        self.sender.look()

    def _is_paused(self, window: Window) -> bool:
        """Return whether nothing is delivered for now: too many records became dead letters."""
        topics = self._dead_letters
        assert topics is not None
        rules = topics.rules_for(self.key.group_id, self.partition.name.topic)
        limit = 0 if rules is None else rules.flood_limit
        pause_ms = self._breaker.pause_ms(window.dead_count, limit, self._timers.now_ms)
        if pause_ms and self._pause is None:
            self._pause = self._timers.after(pause_ms, self._end_pause)
            problem = f"{limit} dead letters within a minute: look for a fault of the consumers"
            facts = {"partition": str(self.partition.name), "problem": problem}
            topics.notice(self.key.group_id, "delivery to a share group pauses", **facts)
        return pause_ms > 0

    def _end_pause(self) -> None:
        self._pause = None
        self._wake()

    def _wake(self) -> None:
        """Have waiting fetches look, one after the other, as long as there is something left."""
        for look in list(self.waiting):
            if not self.has_more:
                return
            look()


def _first_of(window: Window | None) -> int | None:
    """Return when the next delivery or backoff is over; None if nothing waits for its end."""
    ends_ms = () if window is None else (window.next_deadline_ms, window.next_ready_ms)
    return min((each for each in ends_ms if each is not None), default=None)


def overlap(some: Sequence[StateBatch], others: Sequence[StateBatch]) -> bool:
    """Return whether two lists of batches have an offset in common, or one has it twice."""
    before = -1
    for each in sorted([*some, *others]):
        if each.first <= before:
            return True
        before = each.last
    return False
