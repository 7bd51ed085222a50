"""Whether a transaction ended while somebody waited to write in it.

A producer that has to be admitted first may find, once it is, that its transaction is over by
then: the coordinator's word and the marker go different ways. What it wrote after the marker would
belong to a transaction that nobody ends (KIP-890, which calls the watch a verification guard).
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

W = TypeVar("W", bound=Hashable)


class Watch(Generic[W]):
    """An eye on one writer's transaction."""

    __slots__ = ("ended", "writer")

    def __init__(self, writer: W) -> None:
        self.writer = writer
        self.ended = False


class Endings(Generic[W]):
    """Everybody who waits to write."""

    def __init__(self) -> None:
        self._watches: dict[W, list[Watch[W]]] = {}

    def watch(self, writer: W) -> Watch[W]:
        """Begin to look out for the end of a writer's transaction."""
        watch = Watch(writer)
        self._watches.setdefault(writer, []).append(watch)
        return watch

    def release(self, watch: Watch[W]) -> None:
        """Look out no longer."""
        watches = self._watches.get(watch.writer, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._watches.pop(watch.writer, None)

    def ended(self, writer: W) -> None:
        """Tell everybody who waits to write in a transaction that it is over."""
        for watch in self._watches.pop(writer, ()):
            watch.ended = True
