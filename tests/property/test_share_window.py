"""The window of a share partition against a model that keeps a dict entry for each offset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.share_state import DeliveryState, StateBatch
from barnabas.share.window import Acknowledgement, AcknowledgeType, Change, Window, WindowLimits

AVAILABLE, ACQUIRED = DeliveryState.AVAILABLE, DeliveryState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED
ARCHIVING = DeliveryState.ARCHIVING
MEMBERS = ("ann", "bob", "cem")
LIMITS = WindowLimits(deliveries_max=3, locks_max=12, span_max=40)
LOCK_MS = 10

members = st.sampled_from(MEMBERS)
steps = st.integers(0, 30)
sizes = st.integers(1, 15)
kinds = st.sampled_from(AcknowledgeType)


@dataclass
class Offset:
    """What the model knows of one offset."""

    state: DeliveryState = AVAILABLE
    deliveries: int = 0
    member: str = ""
    deadline_ms: int = 0
    is_storing: bool = False
    is_over: bool = False


def spread(batches: Sequence[StateBatch]) -> Iterator[tuple[int, DeliveryState, int]]:
    for each in batches:
        for offset in range(each.first, each.last + 1):
            yield offset, each.state, each.deliveries


class WindowMachine(RuleBasedStateMachine):
    """Calls window and model in the same way."""

    def __init__(self) -> None:
        super().__init__()
        self.window = Window(5, limits=LIMITS)
        self.model: dict[int, Offset] = {}
        self.start = 5
        self.stored: dict[int, tuple[DeliveryState, int]] = {}
        self.now_ms = 0
        self.changes: list[tuple[Change, list[tuple[int, DeliveryState]]]] = []

    @rule(member=members, ahead=steps, size=sizes, most=sizes)
    def acquire(self, member: str, ahead: int, size: int, most: int) -> None:
        before, first = self.window.locks, self.start + ahead
        first = min(first, self.window.end)
        runs = self.window.acquire(
            member,
            first,
            first + size - 1,
            records_max=most,
            deadline_ms=self.now_ms + LOCK_MS,
        )
        given = [(offset, run) for run in runs for offset in range(run.first, run.last + 1)]
        assert len(given) <= most
        assert before + len(given) <= LIMITS.locks_max
        assert len({run.deliveries for run in runs if run.deliveries >= 2}) <= 1
        for offset, run in given:
            assert first <= offset < first + size
            found = self.model.setdefault(offset, Offset())
            assert found.state is AVAILABLE
            found.deliveries += 1
            assert run.deliveries == found.deliveries <= LIMITS.deliveries_max
            found.state, found.member = ACQUIRED, member
            found.deadline_ms, found.is_storing, found.is_over = self.now_ms + LOCK_MS, False, False

    @rule(member=members, first=steps, size=sizes, kind=kinds, second=kinds)
    def acknowledge(
        self, member: str, first: int, size: int, kind: AcknowledgeType, second: AcknowledgeType
    ) -> None:
        first = self.start - 2 + first
        middle = first + size // 2
        acks = [Acknowledgement(first, middle, kind)]
        if size > 1 and middle + 1 <= first + size - 1:
            acks.append(Acknowledgement(middle + 1, first + size - 1, second))
        wanted = [
            (offset, ack.kind)
            for ack in acks
            for offset in range(max(ack.first, self.start), ack.last + 1)
        ]
        code = self._refusal(member, acks[-1].last, [offset for offset, _ in wanted])
        if code is not None:
            cells = bytes(self.window._cells)
            with pytest.raises(ApiError) as refused:
                self.window.acknowledge(member, acks)
            assert refused.value.code is code
            assert bytes(self.window._cells) == cells
            return
        change = self.window.acknowledge(member, acks)
        self.window.renew(member, acks, self.now_ms + 2 * LOCK_MS)
        changed: list[tuple[int, DeliveryState]] = []
        for offset, what in wanted:
            found = self.model[offset]
            if what is AcknowledgeType.RENEW:
                found.deadline_ms, found.is_over = self.now_ms + 2 * LOCK_MS, False
            else:
                found.is_storing = True
                changed.append((offset, self._target(offset, what)))
        assert (change is not None) == bool(changed)
        if change is not None:
            self.changes.append((change, changed))

    def _refusal(self, member: str, last: int, offsets: list[int]) -> ErrorCode | None:
        if last >= self.window.end:
            return ErrorCode.INVALID_REQUEST
        for offset in offsets:
            found = self.model.get(offset)
            is_held = found is not None and found.state is ACQUIRED and not found.is_storing
            if not is_held or found is None or found.member != member:
                return ErrorCode.INVALID_RECORD_STATE
        return None

    @precondition(lambda self: self.changes)
    @rule()
    def commit(self) -> None:
        change, changed = self.changes.pop(0)
        batches = self.window.batches(change)
        count = self.window.complete_count_after(change)
        assert count == sum(self._is_complete(each) for each in self.model.values()) + sum(
            state in {ACKNOWLEDGED, ARCHIVED} for offset, state in changed if offset >= self.start
        )
        start = self.window.start_after([change])
        self.window.commit(change)
        assert self.window.start == start
        self.store(batches)
        for offset, state in changed:
            if offset in self.model:
                found = self.model[offset]
                found.state, found.is_storing = state, False
        self.advance()

    @precondition(lambda self: self.changes)
    @rule()
    def roll_back(self) -> None:
        change, changed = self.changes.pop(0)
        ended = self.window.roll_back(change)
        over = []
        for offset, _ in changed:
            if offset in self.model:
                self.model[offset].is_storing = False
                over += [offset] if self.model[offset].is_over else []
        self.end(over, ended)

    @rule(passed_ms=st.integers(0, 2 * LOCK_MS))
    def expire(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.end(
            self._over(lambda found: found.deadline_ms <= self.now_ms),
            self.window.expire(self.now_ms),
        )
        deadline_ms = self.window.next_deadline_ms
        assert deadline_ms is None or deadline_ms > self.now_ms

    @rule(member=members)
    def release(self, member: str) -> None:
        self.end(self._over(lambda found: found.member == member), self.window.release(member))

    @rule()
    def switch_dead_letters(self) -> None:
        """The group's config changes."""
        has_dead_letters = not self.window.limits.has_dead_letters
        self.window.limits = LIMITS._replace(has_dead_letters=has_dead_letters)

    @precondition(lambda self: self.waiting())
    @rule(ahead=st.integers(-1, 10), size=sizes)
    def archive(self, ahead: int, size: int) -> None:
        """Dead letters were written."""
        first = self.waiting()[0] + ahead
        wanted = [offset for offset in self.waiting() if first <= offset < first + size]
        archived = self.window.archive(first, first + size - 1)
        self.store(archived)
        assert [(offset, state) for offset, state, _ in spread(archived)] == [
            (offset, ARCHIVED) for offset in wanted
        ]
        for offset in wanted:
            self.model[offset].state = ARCHIVED
        self.advance()

    def waiting(self) -> list[int]:
        return sorted(o for o, each in self.model.items() if each.state is ARCHIVING)

    @rule(first=steps, most=sizes)
    def ask_what_waits(self, first: int, most: int) -> None:
        first += self.start - 2
        found = self.window.archiving(first, most)
        wanted = [offset for offset in self.waiting() if offset >= first][:most]
        assert list(spread(found)) == [
            (offset, ARCHIVING, self.model[offset].deliveries) for offset in wanted
        ]

    @rule(ahead=st.integers(-3, 20))
    def move_start(self, ahead: int) -> None:
        moved = self.window.move_start(self.start + ahead)
        assert moved == (ahead > 0)
        if moved:
            self.start += ahead
            self.model = {o: each for o, each in self.model.items() if o >= self.start}
            self.advance()

    @rule(ahead=st.integers(0, 10), size=sizes)
    def skip(self, ahead: int, size: int) -> None:
        first = self.start + ahead
        end = self.window.end
        skipped = self.window.skip(first, first + size - 1)
        self.store(skipped)
        if end == self.start and first <= self.start:  # nothing was in flight
            self.start = first + size
        for offset, state, deliveries in spread(skipped):
            found = self.model.setdefault(offset, Offset())
            assert first <= offset < first + size
            assert (found.state, found.deliveries, state) == (AVAILABLE, deliveries, ARCHIVED)
            found.state = ARCHIVED
        for offset in range(max(first, self.start), min(first + size, self.window.end)):
            assert self.model[offset].state is not AVAILABLE
        self.advance()

    @rule()
    def load_again(self) -> None:
        """What is stored is what a new leader knows: nothing complete is forgotten."""
        batches = [StateBatch(o, o, *each) for o, each in sorted(self.stored.items())]
        loaded = Window(self.start, batches, LIMITS)
        again: dict[int, tuple[DeliveryState, int]] = {}
        content = bytes(loaded._cells)
        for index, value in enumerate(content):
            again[loaded.start + index] = DeliveryState(value & 7), value >> 3
        for offset, found in self.model.items():
            stored = again.get(offset)
            if found.state is ARCHIVING:
                assert stored == (ARCHIVING, found.deliveries)
            elif self._is_complete(found):
                assert offset < loaded.start or stored == (found.state, found.deliveries)
            else:
                assert stored is None or stored[0] is AVAILABLE
                assert offset >= loaded.start
        assert loaded.archiving_count == self.window.archiving_count

    @invariant()
    def same(self) -> None:
        window = self.window
        assert window.start == self.start
        content = bytes(window._cells)
        for offset in range(window.start, window.end):
            found = self.model.get(offset, Offset())
            value = content[offset - window.start]
            assert value >> 3 == found.deliveries
            state = 5 if found.is_storing else found.state
            assert value & 7 == state, (offset, found)
            has_lease = window._leases.numbers[offset - window.start] != 0
            assert has_lease == (found.state is ACQUIRED)
        assert all(offset < window.end for offset in self.model)
        held = sum(each.state is ACQUIRED for each in self.model.values())
        assert window.locks == held <= LIMITS.locks_max
        complete = [each for each in self.model.values() if self._is_complete(each)]
        assert window.complete_count == len(complete)
        assert window.archiving_count == len(self.waiting())
        assert window.end - window.start <= LIMITS.span_max
        self.check_next(held)
        has_deadline = any(
            each.state is ACQUIRED and not each.is_over for each in self.model.values()
        )
        assert (window.next_deadline_ms is not None) == has_deadline

    def check_next(self, held: int) -> None:
        window = self.window
        free = [
            offset
            for offset in range(window.start, window.end)
            if self.model.get(offset, Offset()).state is AVAILABLE
        ]
        if held >= LIMITS.locks_max:
            assert window.next_offset is None
        elif free:
            assert window.next_offset == free[0]
        elif window.end - window.start < LIMITS.span_max:
            assert window.next_offset == window.end
        else:
            assert window.next_offset is None

    def end(self, offsets: list[int], ended: Sequence[StateBatch]) -> None:
        """Make offsets available again, and compare with what the window says."""
        self.store(ended)
        told = {offset: (state, deliveries) for offset, state, deliveries in spread(ended)}
        wanted = {}
        for offset in offsets:
            found = self.model[offset]
            found.state = self._target(offset, AcknowledgeType.RELEASE)
            found.is_over = False
            wanted[offset] = found.state, found.deliveries
        assert told == wanted
        self.advance()

    def _over(self, is_over: object) -> list[int]:
        """Mark what is over; return what is not being stored."""
        assert callable(is_over)
        found = []
        for offset, each in self.model.items():
            if each.state is ACQUIRED and is_over(each):
                each.is_over = True
                found += [] if each.is_storing else [offset]
        return found

    def _target(self, offset: int, kind: AcknowledgeType) -> DeliveryState:
        if kind is AcknowledgeType.ACCEPT:
            return ACKNOWLEDGED
        is_last = self.model[offset].deliveries >= LIMITS.deliveries_max
        if kind is AcknowledgeType.RELEASE and not is_last:
            return AVAILABLE
        is_dead = kind is not AcknowledgeType.GAP and self.window.limits.has_dead_letters
        return ARCHIVING if is_dead else ARCHIVED

    @staticmethod
    def _is_complete(found: Offset) -> bool:
        return found.state in {ACKNOWLEDGED, ARCHIVED}

    def store(self, batches: Sequence[StateBatch]) -> None:
        for offset, state, deliveries in spread(batches):
            assert state in {AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED}
            self.stored[offset] = state, deliveries

    def advance(self) -> None:
        while self.start in self.model and self._is_complete(self.model[self.start]):
            del self.model[self.start]
            self.start += 1


TestWindow = WindowMachine.TestCase
TestWindow.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_a_gap_behind_the_end_of_the_window_is_not_acquired() -> None:
    window = Window(0, limits=LIMITS)
    assert window.skip(3, 3) == [StateBatch(3, 3, ARCHIVED, 0)]
    acquired = window.acquire("ann", 0, 5, records_max=12, deadline_ms=LOCK_MS)
    assert acquired == [(0, 2, 1), (4, 5, 1)]
