"""What may only grow, for whoever looks: high watermarks, last stable offsets, generations.

An answer counts from when its question was sent: what anybody had heard by then is the least that
it may say. In a cluster that is true of each broker, and for as long as it runs: one that takes
over knows what is committed, but learns only then how much of what it has that is.
"""

from collections.abc import Hashable

from barnabas.sim.world import InvariantError

Floor = tuple[int, int]
NO_FLOOR: Floor = (0, 0)


class Growth:
    """The largest numbers that anybody has heard."""

    def __init__(self) -> None:
        self._offsets: dict[Hashable, Floor] = {}
        self._numbers: dict[Hashable, int] = {}

    def floor(self, partition: Hashable) -> Floor:
        """Return what an answer to a question that is sent now must reach."""
        return self._offsets.get(partition, NO_FLOOR)

    def observe(
        self, partition: Hashable, floor: Floor, high_watermark: int, last_stable: int
    ) -> None:
        """Hear a high watermark and a last stable offset."""
        if high_watermark < floor[0]:
            raise InvariantError(
                f"the high watermark of {partition} went from {floor[0]} back to {high_watermark}"
            )
        if 0 <= last_stable < floor[1]:
            raise InvariantError(
                f"the last stable offset of {partition} went from {floor[1]} back to {last_stable}"
            )
        if last_stable > high_watermark:
            raise InvariantError(f"{partition} is stable beyond its high watermark")
        known = self._offsets.get(partition, NO_FLOOR)
        self._offsets[partition] = (max(known[0], high_watermark), max(known[1], last_stable))

    def number_floor(self, what: Hashable) -> int:
        """Return the largest number heard of something."""
        return self._numbers.get(what, -1)

    def observe_number(self, what: Hashable, floor: int, number: int) -> None:
        """Hear a number that only grows."""
        if number < floor:
            raise InvariantError(f"{what} went from {floor} back to {number}")
        self._numbers[what] = max(self._numbers.get(what, -1), number)
