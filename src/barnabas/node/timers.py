"""Deadlines: one heap for everything that waits.

Most waits end early, so a timer is cancelled by forgetting its action; the husk leaves the heap
when its time comes.
"""

import heapq
from collections.abc import Callable


class Timer:
    """A moment and what to do then."""

    __slots__ = ("action", "deadline_ms")

    def __init__(self, deadline_ms: int, action: Callable[[int], None]) -> None:
        self.deadline_ms = deadline_ms
        self.action: Callable[[int], None] | None = action

    def cancel(self) -> None:
        """Do nothing when the moment comes."""
        self.action = None

    def __lt__(self, other: "Timer") -> bool:
        return self.deadline_ms < other.deadline_ms


class Timers:
    """All that waits for a time."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []

    def at(self, deadline_ms: int, action: Callable[[int], None]) -> Timer:
        """Call the action with the present time, no earlier than the deadline."""
        timer = Timer(deadline_ms, action)
        heapq.heappush(self._heap, timer)
        return timer

    @property
    def next_ms(self) -> int | None:
        """When `fire` is next worth calling."""
        heap = self._heap
        while heap and heap[0].action is None:
            heapq.heappop(heap)
        return heap[0].deadline_ms if heap else None

    def fire(self, now_ms: int) -> None:
        """Do everything that is due."""
        heap = self._heap
        while heap and heap[0].deadline_ms <= now_ms:
            action = heapq.heappop(heap).action
            if action is not None:
                action(now_ms)
