"""Whether a transaction ended while a producer waited to write in it.

A producer that has to be admitted first may find, once it is, that its transaction is over by
then: the coordinator's word and the marker go different ways. What it wrote after the marker would
belong to a transaction that no client ends (KIP-890, which calls the watch a verification guard).

The marker of the transaction before it is no such end. It comes where a producer was quick: its
next batch arrives while the markers of its last transaction are on their way. Epochs tell the two
apart, since the next transaction has a larger one, or waits for all markers before it begins.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)


class Watch(Generic[W]):
    """An eye on one writer's transaction."""

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
        """Begin to look out for the end of a writer's transaction in an epoch."""
        watch = Watch(writer, epoch)
        self._watches.setdefault(writer, []).append(watch)
        return watch

    def release(self, watch: Watch[W]) -> None:
        """Look out no longer."""
        watches = self._watches.get(watch.writer, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._watches.pop(watch.writer, None)

    def ended(self, writer: W, last_epoch: int) -> None:
        """Tell who waits to write in a transaction of this epoch, or an earlier one: it is over."""
        for watch in list(self._watches.get(writer, ())):
            if watch.epoch <= last_epoch:
                watch.ended = True
                self.release(watch)
