"""Appends that the disk refuses: no room, an I/O error, a file system that became read-only.

The client is told KAFKA_STORAGE_ERROR and tries again, the operator is told once. A leader to which
this happens for too long has another in-sync replica lead (`node/replicas.py`).
"""

from barnabas.effects import Effect, Notice
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.interests import Keeper


class AppendFailures:
    """Those of one log, from the first that is refused to the next that is taken."""

    __slots__ = ("_name", "_outbox", "_since_ms", "are_refused", "refused_for_ms")

    def __init__(self, name: TopicPartition, outbox: list[Effect]) -> None:
        self._name = name
        self._outbox = outbox
        self.are_refused = False
        """Whether the disk refused the last append."""
        self.refused_for_ms = 0
        """How long after the first one the last was refused, as far as a keeper counts."""
        self._since_ms: int | None = None

    def refused(self, error: OSError, keeper: Keeper | None) -> ApiError:
        """Take note of a refused append; return what to tell the client."""
        if not self.are_refused:
            self.are_refused = True
            facts = {"partition": str(self._name), "problem": str(error)}
            self._outbox.append(Notice("error", "the disk refused an append", facts))
        if keeper is not None:
            keeper.append_refused()
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused: {error}")

    def count(self, now_ms: int) -> int:
        """Return for how long appends have been refused without one that was taken between."""
        if self._since_ms is None:
            self._since_ms = now_ms
        self.refused_for_ms = now_ms - self._since_ms
        return self.refused_for_ms

    def ended(self, keeper: Keeper | None = None) -> None:
        """Take note that the disk takes appends again."""
        self.are_refused, self.refused_for_ms, self._since_ms = False, 0, None
        facts = {"partition": str(self._name)}
        self._outbox.append(Notice("info", "the disk takes appends again", facts))
        if keeper is not None:
            keeper.append_taken()
