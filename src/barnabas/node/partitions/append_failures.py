"""Appends that the disk refuses: no space, an I/O error, a file system that became read-only.

The client gets KAFKA_STORAGE_ERROR and retries. The broker logs the first refusal only. A leader
whose disk refuses appends for too long asks the controller to elect another in-sync replica
(`node/cluster/local_replicas.py`).
"""

from barnabas.effects import Effect, Notice
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition


class AppendFailures:
    """The refused appends of one log, from the first one to the next append that succeeds."""

    __slots__ = ("_name", "_outbox", "_since_ms", "are_refused", "refused_for_ms")

    def __init__(self, name: TopicPartition, outbox: list[Effect]) -> None:
        self._name = name
        self._outbox = outbox
        self.are_refused = False
        """Whether the disk refused the last append."""
        self.refused_for_ms = 0
        """The time from the first refused append to the last one for which `count` was called."""
        self._since_ms: int | None = None

    def refused(self, error: OSError) -> ApiError:
        """Record a refused append; return the error for the client."""
        if not self.are_refused:
            self.are_refused = True
            facts = {"partition": str(self._name), "problem": str(error)}
            self._outbox.append(Notice("error", "the disk refused an append", facts))
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused: {error}")

    def count(self, now_ms: int) -> int:
        """Return for how long the disk has refused every append."""
        if self._since_ms is None:
            self._since_ms = now_ms
        self.refused_for_ms = now_ms - self._since_ms
        return self.refused_for_ms

    def ended(self) -> None:
        """Record that the disk accepts appends again."""
        self.are_refused, self.refused_for_ms, self._since_ms = False, 0, None
        facts = {"partition": str(self._name)}
        self._outbox.append(Notice("info", "the disk accepts appends again", facts))
