"""Replaces the writing of transaction markers: a test writes, holds or refuses them.

markers = Markers()
monkeypatch.setattr("barnabas.node.coordination.marker_writing.write_marker", markers.write)
"""

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.node.coordination.marker_writing import Marker
from barnabas.node.node import Node


class Markers:
    """Replaces `node/coordination/marker_writing.py`."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.attempts = 0
        self.hold = False
        """Whether markers wait for `release`."""
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self._held: list[tuple[TopicPartition, Marker, Pending[None]]] = []

    @property
    def held(self) -> int:
        """How many markers wait."""
        return len(self._held)

    def write(
        self, node: Node, topic: str, partition: int, marker: Marker, now_ms: int
    ) -> Pending[None]:
        """Write a marker; the outcome looks like that of a real one."""
        assert now_ms == node.timers.wall_ms
        self.attempts += 1
        place = TopicPartition(topic, partition)
        if place in self.refusals:
            raise ApiError(self.refusals[place])
        pending: Pending[None] = Pending()
        if self.hold:
            self._held.append((place, marker, pending))
        else:
            self.written.append((place, marker))
            pending.complete(None)
        return pending

    def release(self, count: int | None = None) -> None:
        """Write a number of the waiting markers, or all."""
        chosen, self._held = self._held[:count], self._held[len(self._held[:count]) :]
        for place, marker, pending in chosen:
            self.written.append((place, marker))
            pending.complete(None)

    def fail(self, code: ErrorCode) -> None:
        """Fail the waiting markers."""
        chosen, self._held = self._held, []
        for _, _, pending in chosen:
            pending.fail(ApiError(code))

    def forget(self) -> None:
        """Lose the waiting markers, as in a crash."""
        self._held.clear()
