"""Deadlines: one heap for everything that waits.

Most waits end early, so a timer is cancelled by forgetting its action; the husk leaves the heap
when its time comes.
"""

import heapq
from collections.abc import Callable


class Timer:
    """A moment and what to do then."""

    __slots__ = ("action", "deadline_ms")

    def __init__(self, deadline_ms: int, action: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Do nothing when the moment comes."""
        self.action = None

    def __lt__(self, other: "Timer") -> bool:
        return self.deadline_ms < other.deadline_ms


class Timers:
    """All that waits for a time.

    The driver sets `now_ms` before each event, from a clock that never jumps: how long somebody
    waits has nothing to do with what the calendar says.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[Timer] = []

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Call the action once the delay is over."""
        timer = Timer(self.now_ms + max(1, delay_ms), action)
        heapq.heappush(self._heap, timer)
        return timer

    @property
    def next_ms(self) -> int | None:
        """When `fire` is next worth calling."""
        heap = self._heap
        while heap and heap[0].action is None:
            heapq.heappop(heap)
        return heap[0].deadline_ms if heap else None

    def fire(self) -> None:
        """Do everything that is due."""
        heap = self._heap
        while heap and heap[0].deadline_ms <= self.now_ms:
            action = heapq.heappop(heap).action
            if action is not None:
                action()
