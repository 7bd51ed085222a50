"""Checks the windows of share partitions after each event of a broker.

Each offset may change only in certain ways from one event to the next: what is complete stays so, a
delivery count grows by one with each delivery, and only a stored acknowledgement or the limit ends
an offset. What a member holds always has a deadline and a timer.
"""

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.model.share_state import DeliveryState, SharePartitionKey, StoredState
from barnabas.node.node import Node
from barnabas.node.share.share_partition import SharePartition
from barnabas.node.share.sharing import Sharing
from barnabas.share.cells import ACQUIRED_RUN, STORING, deliveries_of, state_of
from barnabas.share.window import Window
from barnabas.sim.world import InvariantError

AVAILABLE, ACQUIRED = DeliveryState.AVAILABLE, DeliveryState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED
COMPLETE = (ACKNOWLEDGED, ARCHIVED)


class Seen(NamedTuple):
    """A window after an event."""

    start: int
    cells: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """What one event made of one offset."""

    key: SharePartitionKey
    offset: int
    before: int
    after: int

    def fail(self, problem: str) -> InvariantError:
        """Return the error for a step that is not allowed."""
        old, new = ((state_of(x), deliveries_of(x)) for x in (self.before, self.after))
        return InvariantError(f"{self.key} {self.offset} went from {old} to {new}: {problem}")


class ShareWindowChecks:
    """The windows of one broker in its present life."""

    def __init__(self, deliveries_max: dict[str, int], locks_max: dict[str, int]) -> None:
        self._deliveries_max = deliveries_max
        self._locks_max = locks_max
        self.skipped: dict[tuple[SharePartitionKey, int], str] = {}
        """Offsets that were archived, or passed, because they have no records."""
        self.loaded: dict[tuple[SharePartitionKey, int, int], StoredState] = {}
        """The state that leaders have read, by leader epoch and broker."""
        self._seen: dict[SharePartition, Seen] = {}
        self._sharing: Sharing | None = None

    def check(self, node: Node) -> None:
        """Compare the windows with those after the last event."""
        if node.sharing is not self._sharing:
            self._seen.clear()
            self._sharing = node.sharing
        for one in node.sharing.partitions:
            window = one.window
            if window is None or one.error is not None:
                continue
            seen, now = self._seen.get(one), Seen(window.start, window.cells)
            if seen != now:
                if seen is None:
                    self._check_loaded(node, one, now)
                else:
                    self._compare(one, seen, now)
                self._check_leases(one, window)
                self._seen[one] = now
            self._check_timer(one, window)

    def _check_loaded(self, node: Node, one: SharePartition, now: Seen) -> None:
        """Check a window that was just opened: what was not stored is available."""
        stored = self.loaded.get((one.key, one.leader_epoch, node.node_id))
        if stored is None or stored.start_offset < 0:
            return
        if now.start < stored.start_offset:
            raise InvariantError(f"{one.key} begins at {now.start}, below {stored.start_offset}")
        known = {
            offset: (batch.state, batch.deliveries)
            for batch in stored.batches
            for offset in range(batch.first, batch.last + 1)
        }
        log_start = one.partition.log.start_offset
        for offset in range(max(stored.start_offset, log_start), now.start):
            if known.get(offset, (AVAILABLE, 0))[0] not in COMPLETE:
                self.skipped[one.key, offset] = "while it loaded"
        for index, value in enumerate(now.cells):
            offset = now.start + index
            state, count = known.get(offset, (AVAILABLE, 0))
            if state == AVAILABLE and state_of(value) == ACQUIRED:
                state, count = ACQUIRED, count + 1
            elif state == AVAILABLE and state_of(value) == ARCHIVED:
                state = ARCHIVED
                self.skipped[one.key, offset] = "while it loaded"
            if (state_of(value), deliveries_of(value)) != (state, count):
                raise InvariantError(
                    f"{one.key} has {offset} as {state_of(value)}, {deliveries_of(value)}, but "
                    f"stored is {known.get(offset)}"
                )

    def _compare(self, one: SharePartition, seen: Seen, now: Seen) -> None:
        if now.start < seen.start:
            raise InvariantError(f"the start of {one.key} went from {seen.start} to {now.start}")
        log_start = one.partition.log.start_offset
        seen_end = seen.start + len(seen.cells)
        for offset in range(seen.start, max(now.start, seen_end)):
            before = seen.cells[offset - seen.start] if offset < seen_end else 0
            if offset >= now.start:
                index = offset - now.start
                if index >= len(now.cells):
                    raise InvariantError(f"{one.key} has lost offset {offset}")
                after = now.cells[index]
                if before != after:
                    self._check_step(Step(one.key, offset, before, after))
            elif offset >= log_start:
                self._check_passed(Step(one.key, offset, before, before))
        for index in range(max(0, seen_end - now.start), len(now.cells)):
            if now.cells[index]:
                self._check_step(Step(one.key, now.start + index, 0, now.cells[index]))

    def _check_step(self, step: Step) -> None:
        before, after = state_of(step.before), state_of(step.after)
        grown = deliveries_of(step.after) - deliveries_of(step.before)
        limit = self._deliveries_max[step.key.group_id]
        if before in COMPLETE:
            raise step.fail("it was complete")
        if grown not in (0, 1) or (grown == 1) != self._is_delivery(before, after, grown):
            raise step.fail("the count does not fit")
        if deliveries_of(step.after) > limit:
            raise step.fail("the limit is exceeded")
        if after == ACKNOWLEDGED and before != STORING:
            raise step.fail("this was not stored before")
        if after == STORING and before != ACQUIRED:
            raise step.fail("no member held it")
        if after == ARCHIVED:
            self._check_archived(step, before, limit)
        elif after == AVAILABLE and deliveries_of(step.after) >= limit:
            raise step.fail("it must be archived")

    def _check_archived(self, step: Step, before: int, limit: int) -> None:
        if before == AVAILABLE:
            self.skipped[step.key, step.offset] = "in the window"
        elif before == ACQUIRED and deliveries_of(step.after) < limit:
            raise step.fail("it could be delivered again")

    def _check_passed(self, step: Step) -> None:
        """Check an offset that the start offset has passed."""
        state = state_of(step.before)
        limit = self._deliveries_max[step.key.group_id]
        if state == AVAILABLE:
            self.skipped[step.key, step.offset] = "by the start"
        elif state == ACQUIRED and deliveries_of(step.before) < limit:
            raise step.fail("the start has passed what a member holds")

    @staticmethod
    def _is_delivery(before: int, after: int, grown: int) -> bool:
        if after == ACQUIRED:
            return before == AVAILABLE or grown == 1  # released and acquired at once
        return False

    def _check_leases(self, one: SharePartition, window: Window) -> None:
        if window.locks > self._locks_max[one.key.group_id]:
            raise InvariantError(f"{one.key} has {window.locks} locks")
        for run in ACQUIRED_RUN.finditer(window.cells):
            for offset in range(window.start + run.start(), window.start + run.end()):
                lease = window.lease_at(offset)
                if lease is None or lease.is_over:
                    raise InvariantError(f"{one.key} {offset} is acquired, but by no lease")

    def _check_timer(self, one: SharePartition, window: Window) -> None:
        if not one.is_current or ACQUIRED_RUN.search(window.cells) is None:
            return
        deadline_ms = window.next_deadline_ms
        if deadline_ms is None:
            raise InvariantError(f"{one.key} has acquired offsets without a deadline")
        if one.deadline_ms is None or one.deadline_ms > deadline_ms:
            raise InvariantError(
                f"{one.key} must look at {deadline_ms} ms, but its timer is at {one.deadline_ms}"
            )
