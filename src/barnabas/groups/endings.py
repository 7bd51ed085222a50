"""Whether a transaction ended while somebody waited to write in it.

A producer that has to be admitted first may find, once it is, that its transaction is over by
then. What it wrote after the marker would belong to a transaction that nobody ends (KIP-890).
"""


class Watch:
    """An eye on one producer's transaction."""

    __slots__ = ("ended", "producer_id")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.ended = False


class Endings:
    """Everybody who waits to write."""

    def __init__(self) -> None:
        self._watches: dict[int, list[Watch]] = {}

    def watch(self, producer_id: int) -> Watch:
        """Begin to look out for the end of a producer's transaction."""
        watch = Watch(producer_id)
        self._watches.setdefault(producer_id, []).append(watch)
        return watch

    def release(self, watch: Watch) -> None:
        """Look out no longer."""
        watches = self._watches.get(watch.producer_id, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._watches.pop(watch.producer_id, None)

    def ended(self, producer_id: int) -> None:
        """Tell everybody who waits to write in a transaction that it is over."""
        for watch in self._watches.pop(producer_id, ()):
            watch.ended = True
