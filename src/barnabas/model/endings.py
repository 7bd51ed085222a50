"""Detects that a transaction ended while one of its batches waited to be written.

A batch may wait until the coordinator admits it. The coordinator's answer and the marker that ends
the transaction take different routes, so the marker may arrive first. A batch written after the
marker would belong to a transaction that no client ends (KIP-890 calls this watch a verification
guard).

The marker of the producer's previous transaction does not count. A fast producer sends its next
batch while the markers of its last transaction are still on their way. Epochs distinguish the two:
the next transaction has a larger epoch, or it waits for all markers before it begins.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)


class Watch(Generic[W]):
    """Watches one producer's transaction in one partition."""

    __slots__ = ("ended", "epoch", "writer")

    def __init__(self, writer: W, epoch: int) -> None:
        self.writer = writer
        self.epoch = epoch
        self.ended = False


class Endings(Generic[W]):
    """The batches that wait to be written in a transaction."""

    def __init__(self) -> None:
        self._watches: dict[W, list[Watch[W]]] = {}

    def watch(self, writer: W, epoch: int) -> Watch[W]:
        """Start to watch for the end of a producer's transaction in an epoch."""
        watch = Watch(writer, epoch)
        self._watches.setdefault(writer, []).append(watch)
        return watch

    def release(self, watch: Watch[W]) -> None:
        """Stop watching."""
        watches = self._watches.get(watch.writer, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._watches.pop(watch.writer, None)

    def ended(self, writer: W, last_epoch: int) -> None:
        """Mark the waiting batches of this epoch and earlier ones: their transaction has ended."""
        for watch in list(self._watches.get(writer, ())):
            if watch.epoch <= last_epoch:
                watch.ended = True
                self.release(watch)
