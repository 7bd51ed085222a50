"""Timers: one heap of deadlines for the whole broker.

Most waits end early, so a timer is cancelled by dropping its action. A cancelled timer leaves the
heap at its deadline, or when half of the heap is cancelled.
"""

import heapq
from collections.abc import Callable

CANCELLED_MAX = 1000


class Timer:
    """A deadline and the action to run then."""

    __slots__ = ("_timers", "action", "deadline_ms")

    def __init__(self, timers: "Timers", deadline_ms: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self.deadline_ms = deadline_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Run no action at the deadline."""
        if self.action is not None:
            self.action = None
            self._timers.cancelled()

    def __lt__(self, other: "Timer") -> bool:
        return self.deadline_ms < other.deadline_ms


class Timers:
    """All timers.

    The driver sets the clocks before each event. `now_ms` is the monotonic clock, by which timers
    run; `wall_ms` is the wall clock, for timestamps.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.wall_ms = 0
        self.have_changed = True
        """Whether `next_ms` may have changed since the driver read it; the driver resets this."""
        self._heap: list[Timer] = []
        self._cancelled = 0

    def cancelled(self) -> None:
        """Count a cancelled timer, and remove all of them from the heap when there are too many."""
        self._cancelled += 1
        self.have_changed = True
        if self._cancelled > CANCELLED_MAX and self._cancelled * 2 > len(self._heap):
            self._heap = [timer for timer in self._heap if timer.action is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Run an action after a delay."""
        timer = Timer(self, self.now_ms + max(1, delay_ms), action)
        heapq.heappush(self._heap, timer)
        self.have_changed = True
        return timer

    @property
    def next_ms(self) -> int | None:
        """The next deadline, at which `fire` has something to do."""
        heap = self._heap
        while heap and heap[0].action is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0].deadline_ms if heap else None

    def fire(self, run: Callable[[Callable[[], None]], None] | None = None) -> None:
        """Run the actions that are due, or pass them to `run`."""
        self.have_changed = True  # the driver's own timer has ended, whatever is due
        while self._heap and self._heap[0].deadline_ms <= self.now_ms:
            timer = heapq.heappop(self._heap)
            self.have_changed = True
            action, timer.action = timer.action, None
            if action is None:
                self._cancelled -= 1
            elif run is None:
                action()
            else:
                run(action)
