"""The window of a share partition: which offsets are available, acquired, or done with.

    AVAILABLE --acquire--> ACQUIRED --accept--> ACKNOWLEDGED
        ^                     |-----reject----> ARCHIVED
        `--release, timeout---'-(at the limit)> ARCHIVED

The window begins at the start offset: everything below it is done with. It ends where nothing was
acquired yet. The leader of the partition has one window for each share group.

An acknowledgement changes an offset in two steps. First it is STORING: no other request can change
it while the share coordinator stores the result. Then the change is committed, or rolled back if it
could not be stored. If the member's time passes in between, that counts once the change is over.

The end of a delivery by a timeout, or by a member that leaves, applies at once. It is stored, too;
if that fails, only the delivery count is lost.

With a backoff, a record that a member releases waits before it is available again.

A record that fails again and again must not take its neighbours with it. From half of the allowed
deliveries on, a run of offsets is delivered alone and in smaller and smaller parts.

Where a group has a dead-letter topic, a record that is not delivered again waits for its dead
letter (ARCHIVING). Members neither hold nor get it; `archive` ends that once it is written.
"""

from collections.abc import Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.share_state import COMPLETE, DeliveryState, StateBatch
from barnabas.share.cells import (
    ACQUIRED_RUN,
    ARCHIVING_RUN,
    AVAILABLE,
    AVAILABLE_RUN,
    COMPLETE_RUN,
    STORING,
    WAITING,
    WAITING_RUN,
    Acquired,
    batches_of,
    cell,
    change_to,
    count_archiving,
    count_complete,
    deliveries_of,
    end_of_delivery,
)
from barnabas.share.record_leases import Lease, Leases

SPAN_MAX = 100_000
"""How long the window may become; a byte and the number of a lease are kept for each offset."""


class AcknowledgeType(IntEnum):
    """What a member says of an offset."""

    GAP = 0
    """There is no record at the offset."""
    ACCEPT = 1
    RELEASE = 2
    """Deliver it again."""
    REJECT = 3
    """Never deliver it again."""
    RENEW = 4
    """Give the member more time."""


class Acknowledgement(NamedTuple):
    """One answer for a run of offsets."""

    first: int
    last: int
    kind: AcknowledgeType


class WindowLimits(NamedTuple):
    """The configs of a group that the window applies; they may change at any time."""

    deliveries_max: int = 5
    locks_max: int = 2000
    span_max: int = SPAN_MAX
    has_dead_letters: bool = False
    """Whether what is not delivered again waits for a dead letter before it is archived."""
    backoff_ms: int = 0
    """How long a record that was released waits before it is delivered again; it doubles with each
    delivery."""
    backoff_max_ms: int = 0


class _Run(NamedTuple):
    """Offsets that become something else; the table says what."""

    first: int
    last: int
    table: bytes
    is_released: bool = False


class Change(NamedTuple):
    """Acknowledgements that are being stored."""

    runs: Sequence[_Run]


class Window:
    """The offsets of one share partition that are in flight."""

    def __init__(
        self,
        start: int,
        batches: Sequence[StateBatch] = (),
        limits: WindowLimits = WindowLimits(),  # noqa: B008 - immutable
    ) -> None:
        """Load a stored state: what is not in a batch is available and was never delivered."""
        self.limits = limits
        self.start = start
        """The start offset: everything below it is done with."""
        self.complete_count = 0
        """How many offsets from the start offset on are acknowledged or archived."""
        self.archiving_count = 0
        """How many offsets wait for a dead letter."""
        self.dead_count = 0
        """How many offsets began to wait for one, ever since."""
        self._had_dead_letters = False
        """Whether a run may become ARCHIVING, even if the group has no dead letters by now."""
        self._cells = bytearray()
        self._leases = Leases()
        self._hint = 0
        """No offset before this index is available."""
        self._held_back: list[tuple[int, int, int]] = []
        """A heap of runs that wait for the end of their backoff: when that is, first and last
        offset. Another leader knows nothing of them, and delivers them at once."""
        for batch in batches:
            self._load(batch)
        self.complete_count = count_complete(self._cells)
        self.archiving_count = count_archiving(self._cells)
        self._advance()

    @property
    def end(self) -> int:
        """The first offset that was never acquired."""
        return self.start + len(self._cells)

    @property
    def locks(self) -> int:
        """How many offsets members hold."""
        return self._leases.held

    @property
    def cells(self) -> bytes:
        """The state and the count of each offset from the start offset on; see `cells.py`."""
        return bytes(self._cells)

    def lease_at(self, offset: int) -> Lease | None:
        """Return the lease of an offset of the window; None if no member holds it."""
        return self._leases.by_number.get(self._leases.numbers[offset - self.start])

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `expire`; None while nothing is acquired."""
        return self._leases.next_deadline_ms

    @property
    def next_offset(self) -> int | None:
        """The first offset that can be acquired; None while the limits allow no more."""
        if self.locks >= self.limits.locks_max:
            return None
        found = AVAILABLE.search(self._cells, self._hint)
        if found is not None:
            self._hint = found.start()
            return self.start + found.start()
        self._hint = len(self._cells)
        return self.end if len(self._cells) < self.limits.span_max else None

    def acquire(
        self, member: str, first: int, last: int, *, records_max: int, deadline_ms: int
    ) -> list[Acquired]:
        """Give a member what is available between two offsets."""
        limits = self.limits
        most = min(records_max, limits.locks_max - self.locks)
        first = max(first, self.start)
        if first > last or most <= 0:
            return []
        self._extend(min(last, max(self.end, first) + most - 1))
        index, end = first - self.start, min(last - self.start + 1, len(self._cells))
        runs: list[tuple[int, int]] = []
        while most > 0 and (found := AVAILABLE_RUN.search(self._cells, index, end)) is not None:
            index = found.start()
            size = found.end() - index
            part = self._part(deliveries_of(found[1][0]) + 1, size)
            if part is not None and runs:
                break
            taken = min(size if part is None else part, most)
            runs.append((index, taken))
            index += taken
            most -= taken
            if part is not None:
                break
        if not runs:
            return []
        lease = self._leases.open(member, self.start + runs[0][0], deadline_ms)
        return [self._give(lease, *run) for run in runs]

    def skip(self, first: int, last: int) -> list[StateBatch]:
        """Archive what is available between two offsets: the log has no records there.

        Return what to store. A gap behind the window's end is skipped as far as the window may
        reach; once the window is empty, the rest costs nothing.
        """
        if not self._cells and first <= self.start <= last:
            self.start = last + 1
            return []
        if last >= self.end:
            self._extend(last)  # else what is acquired next would reach over the gap
        index, end = max(0, first - self.start), max(0, last - self.start + 1)
        skipped: list[StateBatch] = []
        for run in list(AVAILABLE_RUN.finditer(self._cells, index, end)):
            self._end_delivery(run.start(), run.end(), change_to(DeliveryState.ARCHIVED))
            content = self._cells[run.start() : run.end()]
            skipped += batches_of(self.start + run.start(), content)
        self._advance()
        return skipped

    def acknowledge(self, member: str, acks: Sequence[Acknowledgement]) -> Change | None:
        """Begin to store what a member says; None if there is nothing to store.

        Raise `ApiError`, and change nothing, if one of the offsets is not the member's.
        """
        found = self._checked(member, acks)
        table = {
            AcknowledgeType.GAP: change_to(DeliveryState.ARCHIVED),
            AcknowledgeType.ACCEPT: change_to(DeliveryState.ACKNOWLEDGED),
            AcknowledgeType.REJECT: change_to(self._last_state()),
            AcknowledgeType.RELEASE: self._end_of_delivery(),
        }
        runs = [
            _Run(ack.first, ack.last, table[ack.kind], ack.kind is AcknowledgeType.RELEASE)
            for ack in found
            if ack.kind in table
        ]
        for run in runs:
            self._translate(run.first - self.start, run.last - self.start + 1, change_to(STORING))
        return Change(runs) if runs else None

    def renew(self, member: str, acks: Sequence[Acknowledgement], deadline_ms: int) -> None:
        """Give a member more time for offsets; `acknowledge` has checked that they are its own."""
        for ack in acks:
            first = max(ack.first, self.start)
            if ack.kind is AcknowledgeType.RENEW and first <= ack.last:
                index, count = first - self.start, ack.last - first + 1
                lease = self._leases.open(member, first, deadline_ms)
                self._leases.take(index, index + count)
                self._leases.give(lease, first, index, count)

    def batches(self, change: Change) -> list[StateBatch]:
        """Return what a change will make of its offsets, to be stored."""
        found: list[StateBatch] = []
        for run in change.runs:
            index, end = self._clipped(run)
            found += batches_of(self.start + index, self._cells[index:end].translate(run.table))
        return found

    def complete_count_after(self, change: Change) -> int:
        """Return the count of complete offsets once a change is committed."""
        return self.complete_count + sum(
            each.last - each.first + 1 for each in self.batches(change) if each.state in COMPLETE
        )

    def start_after(self, changes: Sequence[Change]) -> int:
        """Return the start offset once changes are committed."""
        clipped = [(*self._clipped(run), run.table) for each in changes for run in each.runs]
        if not any(index == 0 < end for index, end, _ in clipped):
            return self.start
        cells = bytearray(self._cells)
        for index, end, table in clipped:
            cells[index:end] = cells[index:end].translate(table)
        done = COMPLETE_RUN.match(cells)
        return self.start if done is None else self.start + done.end()

    def commit(self, change: Change, now_ms: int = 0) -> None:
        """Apply a change that is stored."""
        for run in change.runs:
            index, end = self._clipped(run)
            self._end_delivery(index, end, run.table)
            if run.is_released and self.limits.backoff_ms:
                self._hold_back(index, end, now_ms)
        self._advance()

    @property
    def next_ready_ms(self) -> int | None:
        """When to call `end_backoffs`; None while no record waits."""
        return self._held_back[0][0] if self._held_back else None

    def end_backoffs(self, now_ms: int) -> None:
        """Make records available whose backoff is over."""
        while self._held_back and self._held_back[0][0] <= now_ms:
            _, first, last = heappop(self._held_back)
            index, end = max(0, first - self.start), max(0, last - self.start + 1)
            for run in list(WAITING_RUN.finditer(self._cells, index, end)):
                self._translate(run.start(), run.end(), change_to(DeliveryState.AVAILABLE))
                self._hint = min(self._hint, run.start())

    def roll_back(self, change: Change) -> list[StateBatch]:
        """Undo a change that could not be stored; return what timed out meanwhile."""
        ended: list[StateBatch] = []
        for run in change.runs:
            index, end = self._clipped(run)
            self._translate(index, end, change_to(DeliveryState.ACQUIRED))
            numbers = set(self._leases.numbers[index:end])
            for number in sorted(numbers):
                lease = self._leases.by_number[number]
                if lease.is_over:
                    ended += self._end_lease(lease)
        self._advance()
        return ended

    def expire(self, now_ms: int) -> list[StateBatch]:
        """End deliveries whose time has passed; return what to store."""
        ended: list[StateBatch] = []
        for lease in self._leases.due(now_ms):
            ended += self._end_lease(lease)
        self._advance()
        return ended

    def release(self, member: str) -> list[StateBatch]:
        """End the deliveries of a member that left; return what to store."""
        ended: list[StateBatch] = []
        for lease in self._leases.of_member(member):
            lease.is_over = True
            ended += self._end_lease(lease)
        self._advance()
        return ended

    def archiving(self, first: int, count_max: int) -> list[StateBatch]:
        """Return the first offsets from one on that wait for a dead letter, as equal runs."""
        found: list[StateBatch] = []
        for run in ARCHIVING_RUN.finditer(self._cells, max(0, first - self.start)):
            if count_max <= 0:
                break
            content = self._cells[run.start() : min(run.end(), run.start() + count_max)]
            found += batches_of(self.start + run.start(), content)
            count_max -= len(content)
        return found

    def archive(self, first: int, last: int) -> list[StateBatch]:
        """Archive what waits for a dead letter between two offsets; return what to store."""
        index, end = max(0, first - self.start), max(0, last - self.start + 1)
        archived: list[StateBatch] = []
        for run in list(ARCHIVING_RUN.finditer(self._cells, index, end)):
            self.archiving_count -= run.end() - run.start()
            self._translate(run.start(), run.end(), change_to(DeliveryState.ARCHIVED))
            self.complete_count += run.end() - run.start()
            content = self._cells[run.start() : run.end()]
            archived += batches_of(self.start + run.start(), content)
        self._advance()
        return archived

    def move_start(self, offset: int) -> bool:
        """Forget everything below an offset: the log begins there now. Return whether that moved.

        Members may still acknowledge such offsets; that changes nothing.
        """
        if offset <= self.start:
            return False
        self._drop(min(offset - self.start, len(self._cells)))
        self.start = offset
        self._advance()
        return True

    def _hold_back(self, index: int, end: int, now_ms: int) -> None:
        """Have offsets that were released wait; the longer, the more often they were delivered."""
        limits = self.limits
        for run in list(AVAILABLE_RUN.finditer(self._cells, index, end)):
            backoff_ms = limits.backoff_ms << deliveries_of(run[1][0]) - 1
            due_ms = now_ms + min(backoff_ms, max(limits.backoff_ms, limits.backoff_max_ms))
            first = self.start + run.start()
            heappush(self._held_back, (due_ms, first, first + run.end() - run.start() - 1))
            self._translate(run.start(), run.end(), change_to(WAITING))

    def _load(self, batch: StateBatch) -> None:
        first = max(batch.first, self.start)
        if first > batch.last:
            return
        self._extend(batch.last)
        stored = batch.state
        if stored not in COMPLETE and stored is not DeliveryState.ARCHIVING:
            stored = DeliveryState.AVAILABLE
        value, size = cell(stored, batch.deliveries), batch.last - first + 1
        index = first - self.start
        self._cells[index : index + size] = bytes([value]) * size

    def _extend(self, last: int) -> None:
        """Have the window end behind an offset, as far as it may be that long."""
        missing = min(last + 1 - self.start, max(self.limits.span_max, 0)) - len(self._cells)
        if missing > 0:
            self._cells += bytes(missing)
            self._leases.numbers.frombytes(bytes(missing * self._leases.numbers.itemsize))

    def _part(self, deliveries: int, size: int) -> int | None:
        """Return how many offsets of a run to deliver; None if it may be delivered whole."""
        suspicious_from = max(2, -(-self.limits.deliveries_max // 2))
        if deliveries < suspicious_from:
            return None
        return max(1, size >> (deliveries - suspicious_from + 1))

    def _give(self, lease: Lease, index: int, count: int) -> Acquired:
        """Give a lease a run of offsets with the same delivery count."""
        deliveries = deliveries_of(self._cells[index]) + 1
        self._cells[index : index + count] = (
            bytes([cell(DeliveryState.ACQUIRED, deliveries)]) * count
        )
        first = self.start + index
        self._leases.give(lease, first, index, count)
        return Acquired(first, first + count - 1, deliveries)

    def _checked(self, member: str, acks: Sequence[Acknowledgement]) -> list[Acknowledgement]:
        """Return what concerns the window; raise if an offset is not the member's."""
        before = None
        for ack in acks:
            is_behind = before is None or ack.first >= before.first
            if ack.first > ack.last or not is_behind or ack.last >= self.end:
                problem = f"{ack.first} to {ack.last} was not acquired, or is not in order"
                raise ApiError(ErrorCode.INVALID_REQUEST, problem)
            if before is not None and ack.first <= before.last:
                problem = f"{ack.first} to {before.last} is acknowledged twice"
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, problem)
            before = ack
        found = [
            ack._replace(first=max(ack.first, self.start)) for ack in acks if ack.last >= self.start
        ]
        for ack in found:
            index, end = ack.first - self.start, ack.last - self.start + 1
            is_acquired = ACQUIRED_RUN.fullmatch(self._cells, index, end) is not None
            if not is_acquired or not self._leases.are_all_of(member, index, end):
                problem = f"member {member} has not acquired all of {ack.first} to {ack.last}"
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, problem)
        return found

    def _end_of_delivery(self) -> bytes:
        return end_of_delivery(self.limits.deliveries_max, self._last_state())

    def _last_state(self) -> DeliveryState:
        """Return what becomes of an offset that is not delivered again."""
        if not self.limits.has_dead_letters:
            return DeliveryState.ARCHIVED
        self._had_dead_letters = True
        return DeliveryState.ARCHIVING

    def _end_lease(self, lease: Lease) -> list[StateBatch]:
        """End the deliveries of a lease, except what is being stored."""
        table = self._end_of_delivery()
        ended: list[StateBatch] = []
        for index, end in list(self._leases.runs(lease, self.start)):
            for run in list(ACQUIRED_RUN.finditer(self._cells, index, end)):
                self._end_delivery(run.start(), run.end(), table)
                content = self._cells[run.start() : run.end()]
                ended += batches_of(self.start + run.start(), content)
        return ended

    def _end_delivery(self, index: int, end: int, table: bytes) -> None:
        if index >= end:
            return
        self._translate(index, end, table)
        self._leases.take(index, end)
        self.complete_count += count_complete(self._cells[index:end])
        if self._had_dead_letters:
            self._count_dead(index, end)
        if AVAILABLE.search(self._cells, index, end) is not None:
            self._hint = min(self._hint, index)

    def _count_dead(self, index: int, end: int) -> None:
        count = count_archiving(self._cells[index:end])
        self.archiving_count += count
        self.dead_count += count

    def _translate(self, index: int, end: int, table: bytes) -> None:
        self._cells[index:end] = self._cells[index:end].translate(table)

    def _clipped(self, run: _Run) -> tuple[int, int]:
        """Return the indexes of a run, without what is below the start offset by now."""
        end = max(0, run.last - self.start + 1)
        return min(max(0, run.first - self.start), end), end

    def _advance(self) -> None:
        """Move the start offset past what is complete."""
        done = COMPLETE_RUN.match(self._cells)
        if done is not None:
            self._drop(done.end())
            self.start += done.end()

    def _drop(self, count: int) -> None:
        """Forget the first offsets; the caller moves the start offset."""
        self.complete_count -= count_complete(self._cells[:count])
        if self.archiving_count:
            self.archiving_count -= count_archiving(self._cells[:count])
        self._leases.drop_first(count)
        del self._cells[:count]
        self._hint = max(0, self._hint - count)
