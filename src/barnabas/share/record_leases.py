"""Which member holds which offsets of a share partition, and until when.

A lease is what one member acquired at one time. Each acquired offset has the number of its lease,
so that acknowledgements of any part of it need no search.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

NO_LEASE = 0
HEAP_SLACK = 64


class Lease:
    """Offsets that one member acquired at one time, and still holds in part."""

    __slots__ = ("deadline_ms", "end", "first", "is_over", "left", "member", "number")

    def __init__(self, number: int, member: str, first: int, deadline_ms: int) -> None:
        self.number = number
        self.member = member
        self.first = self.end = first
        """The offsets of the lease lie in this range; the end is exclusive."""
        self.deadline_ms = deadline_ms
        self.left = 0
        """How many offsets it still has."""
        self.is_over = False
        """Whether its time passed, or its member left, while the rest of it was being stored."""


class Leases:
    """The leases of one share partition."""

    def __init__(self) -> None:
        self.numbers = array("I")
        """The number of the lease of each offset from the window's start on; 0 without a lease."""
        self.by_number: dict[int, Lease] = {}
        self.held = 0
        """How many offsets have a lease."""
        self._of_member: dict[str, set[int]] = defaultdict(set)
        self._heap: list[tuple[int, int]] = []
        self._last_number = 0

    def open(self, member: str, first: int, deadline_ms: int) -> Lease:
        """Begin a lease."""
        self._last_number += 1
        lease = Lease(self._last_number, member, first, deadline_ms)
        self.by_number[lease.number] = lease
        self._of_member[member].add(lease.number)
        if len(self._heap) > 2 * len(self.by_number) + HEAP_SLACK:
            self._heap = [entry for entry in self._heap if entry[1] in self.by_number]
            heapify(self._heap)
        heappush(self._heap, (deadline_ms, lease.number))
        return lease

    def give(self, lease: Lease, first: int, index: int, count: int) -> None:
        """Add offsets to a lease; the first of them is at an index of the window."""
        self.numbers[index : index + count] = array("I", [lease.number]) * count
        lease.first, lease.end = min(lease.first, first), max(lease.end, first + count)
        lease.left += count
        self.held += count

    def take(self, start: int, end: int) -> None:
        """Take offsets, by their indexes, from the leases that have them."""
        for number in set(self.numbers[start:end]) - {NO_LEASE}:
            self._shrink(self.by_number[number], self.numbers[start:end].count(number))
        self.numbers[start:end] = array("I", [NO_LEASE]) * (end - start)

    def drop_first(self, count: int) -> None:
        """Forget the first offsets of the window."""
        self.take(0, min(count, len(self.numbers)))
        del self.numbers[:count]

    def are_all_of(self, member: str, start: int, end: int) -> bool:
        """Return whether a member has all offsets in a range of indexes."""
        numbers = set(self.numbers[start:end])
        return NO_LEASE not in numbers and all(
            self.by_number[number].member == member for number in numbers
        )

    def of_member(self, member: str) -> list[Lease]:
        """Return the leases of a member."""
        return [self.by_number[number] for number in self._of_member.get(member, ())]

    def has_member(self, member: str) -> bool:
        """Return whether a member has a lease."""
        return member in self._of_member

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next lease is over; None without one."""
        heap = self._heap
        while heap and not self._is_running(heap[0][1]):
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now_ms: int) -> Iterator[Lease]:
        """Yield the leases whose time has passed, and mark them."""
        while True:
            deadline_ms = self.next_deadline_ms
            if deadline_ms is None or deadline_ms > now_ms:
                return
            lease = self.by_number[heappop(self._heap)[1]]
            lease.is_over = True
            yield lease

    def runs(self, lease: Lease, window_start: int) -> Iterator[tuple[int, int]]:
        """Yield the offsets of a lease as ranges of indexes."""
        numbers, number = self.numbers, lease.number
        index = max(0, lease.first - window_start)
        end = min(len(numbers), lease.end - window_start)
        begun: int | None = None
        for place in range(index, end):
            if (numbers[place] == number) == (begun is None):
                if begun is None:
                    begun = place
                else:
                    yield begun, place
                    begun = None
        if begun is not None:
            yield begun, end

    def _is_running(self, number: int) -> bool:
        lease = self.by_number.get(number)
        return lease is not None and not lease.is_over

    def _shrink(self, lease: Lease, count: int) -> None:
        lease.left -= count
        self.held -= count
        if lease.left:
            return
        del self.by_number[lease.number]
        held = self._of_member[lease.member]
        held.discard(lease.number)
        if not held:
            del self._of_member[lease.member]
