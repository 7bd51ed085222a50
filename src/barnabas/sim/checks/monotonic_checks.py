"""Checks numbers that must never decrease: high watermarks, last stable offsets, generations.

A response must not be lower than any value that a client had received before the request was sent.
In a cluster this holds for each broker while it runs: a new leader has all committed records, but
learns the high watermark only over time.
"""

from collections.abc import Hashable

from barnabas.sim.world import InvariantError

Floor = tuple[int, int]
NO_FLOOR: Floor = (0, 0)


class MonotonicChecks:
    """The largest values that any client has received."""

    def __init__(self) -> None:
        self._offsets: dict[Hashable, Floor] = {}
        self._numbers: dict[Hashable, int] = {}

    def floor(self, partition: Hashable) -> Floor:
        """Return the offsets that the response to a request sent now must reach."""
        return self._offsets.get(partition, NO_FLOOR)

    def observe(
        self, partition: Hashable, floor: Floor, high_watermark: int, last_stable: int
    ) -> None:
        """Check a high watermark and a last stable offset in a response."""
        if high_watermark < floor[0]:
            raise InvariantError(
                f"the high watermark of {partition} went from {floor[0]} back to {high_watermark}"
            )
        if 0 <= last_stable < floor[1]:
            raise InvariantError(
                f"the last stable offset of {partition} went from {floor[1]} back to {last_stable}"
            )
        if last_stable > high_watermark:
            raise InvariantError(
                f"the last stable offset of {partition} is above its high watermark"
            )
        known = self._offsets.get(partition, NO_FLOOR)
        self._offsets[partition] = (max(known[0], high_watermark), max(known[1], last_stable))

    def number_floor(self, what: Hashable) -> int:
        """Return the largest value that any client has received."""
        return self._numbers.get(what, -1)

    def observe_number(self, what: Hashable, floor: int, number: int) -> None:
        """Check a number that must not decrease."""
        if number < floor:
            raise InvariantError(f"{what} went from {floor} back to {number}")
        self._numbers[what] = max(self._numbers.get(what, -1), number)
