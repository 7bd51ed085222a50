"""Deadlines: one heap for everything that waits.

Most waits end early, so a timer is cancelled by forgetting its action. The husk leaves the heap
when its time comes, or when half of the heap are husks.
"""

import heapq
from collections.abc import Callable

HUSKS_MAX = 1000


class Timer:
    """A moment and what to do then."""

    __slots__ = ("_timers", "action", "deadline_ms")

    def __init__(self, timers: "Timers", deadline_ms: int, action: Callable[[], None]) -> None:
        self._timers = timers
        self.deadline_ms = deadline_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Do nothing when the moment comes."""
        if self.action is not None:
            self.action = None
            self._timers.cancelled()

    def __lt__(self, other: "Timer") -> bool:
        return self.deadline_ms < other.deadline_ms


class Timers:
    """All that waits for a time.

    The driver sets `now_ms` before each event, from a clock that never jumps: how long somebody
    waits has nothing to do with what the calendar says, which is `wall_ms`.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.wall_ms = 0
        self.have_changed = True
        """Whether `next_ms` may be another than when the driver last took it, and reset this."""
        self._heap: list[Timer] = []
        self._husks = 0

    def cancelled(self) -> None:
        """Count a husk, and sweep them out when they are too many."""
        self._husks += 1
        self.have_changed = True
        if self._husks > HUSKS_MAX and self._husks * 2 > len(self._heap):
            self._heap = [timer for timer in self._heap if timer.action is not None]
            heapq.heapify(self._heap)
            self._husks = 0

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Call the action once the delay is over."""
        timer = Timer(self, self.now_ms + max(1, delay_ms), action)
        heapq.heappush(self._heap, timer)
        self.have_changed = True
        return timer

    @property
    def next_ms(self) -> int | None:
        """When `fire` is next worth calling."""
        heap = self._heap
        while heap and heap[0].action is None:
            heapq.heappop(heap)
            self._husks -= 1
        return heap[0].deadline_ms if heap else None

    def fire(self, run: Callable[[Callable[[], None]], None] | None = None) -> None:
        """Do everything that is due, or have it done."""
        self.have_changed = True  # the driver's own timer has ended, whatever is due
        while self._heap and self._heap[0].deadline_ms <= self.now_ms:
            timer = heapq.heappop(self._heap)
            self.have_changed = True
            action, timer.action = timer.action, None
            if action is None:
                self._husks -= 1
            elif run is None:
                action()
            else:
                run(action)
