"""Runs the changes to a partition's files one after the other, while clients are served.

DeleteRecords, retention and compaction move or replace segments. Each sync that a change waits for
is an effect (`storage/changes.py`). DeleteRecords requests that arrive meanwhile are carried out
together, with the highest of their offsets.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from barnabas.effects import Effect, MakeDurable
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.pending import Pending
from barnabas.storage.changes import Changes, ChangeSteps, Sync
from barnabas.storage.log import Log
from barnabas.storage.trimming import advance_start

T = TypeVar("T")


def sync_later(outbox: list[Effect]) -> Callable[[Sync, Callable[[], None]], None]:
    """Return a function that has something synced as an effect."""

    def later(sync: Sync, done: Callable[[], None]) -> None:
        outbox.append(MakeDurable(sync, done))

    return later


class Deletion(NamedTuple):
    """Records to delete, and the answer to the request."""

    before_offset: int
    answer: Pending[None]


class LogChanges:
    """The changes of one partition's log."""

    __slots__ = ("_changes", "_deleting", "_deletions", "_log")

    def __init__(self, log: Log, outbox: list[Effect]) -> None:
        self._log = log
        self._changes = Changes(log, sync_later(outbox))
        self._deletions: list[Deletion] = []
        self._deleting: list[Deletion] = []

    def start(
        self, steps: ChangeSteps[T], done: Callable[[T], None], failed: Callable[[OSError], None]
    ) -> None:
        """Carry out a change once the ones before it are complete."""
        self._changes.start(steps, done, failed)

    def close(self) -> None:
        """Abandon every change: the topic is deleted."""
        self._changes.close()

    def delete_before(self, offset: int) -> Pending[None]:
        """Make records below an offset unreadable; the answer completes once that is durable."""
        answer: Pending[None] = Pending()
        if not self._deletions:
            self._deletions.append(Deletion(offset, answer))
            self._changes.start(self._delete(), self._deleted, self._refused)
        else:
            self._deletions.append(Deletion(offset, answer))
        return answer

    def _delete(self) -> ChangeSteps[None]:
        """Delete what was asked for before this change started.

        A request may name a thousand partitions, and each has a separate event.
        """
        yield Sync()
        self._deleting, self._deletions = self._deletions, []
        highest = max(each.before_offset for each in self._deleting)
        yield from advance_start(self._log, highest)

    def _deleted(self, _: None) -> None:
        deleting, self._deleting = self._deleting, []
        for each in deleting:
            each.answer.complete(None)

    def _refused(self, error: OSError) -> None:
        # If the change was abandoned before it started, its requests are still in the list.
        deleting, self._deleting = self._deleting or self._deletions, []
        if deleting is self._deletions:
            self._deletions = []
        refusal = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refused: {error}")
        for each in deleting:
            each.answer.fail(refusal)
