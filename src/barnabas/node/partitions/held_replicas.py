"""Replicas that do not follow yet, because their disk refuses appends.

A fetch tells the leader how far a replica is. A replica that resigned as leader because of a full
disk has everything that the new leader has until the next record is written. A fetch would bring it
back into the ISR, where every write then waits for it, and back to the lead if it is the
preferred replica. So it fetches only once its disk accepts a write again.
"""

from collections.abc import Callable

from barnabas.model.ports import Disk
from barnabas.model.timers import Timers
from barnabas.node.partitions.follower_replica import FollowerReplica
from barnabas.replication.following import Key

PROBE_MS = 1_000
PROBE_FILE = ".probe"
PROBE_BYTES = 1024 * 1024
"""The size of a large batch: a disk with less space would soon refuse again."""


class HeldReplicas:
    """The held replicas of one broker, and the timer that probes the disk for them."""

    def __init__(self, timers: Timers, accepts_writes: Callable[[], bool]) -> None:
        self._timers = timers
        self._accepts_writes = accepts_writes
        self._held: dict[Key, FollowerReplica] = {}
        self._is_waiting = False

    def hold(self, replica: FollowerReplica) -> None:
        """Have a replica follow once the disk accepts writes; it replaces an earlier one."""
        self._held[replica.key] = replica
        self._probe_later()

    def _probe_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._timers.after(PROBE_MS, self._probe)

    def _probe(self) -> None:
        self._is_waiting = False
        self._held = {key: replica for key, replica in self._held.items() if replica.is_held}
        if not self._held:
            return
        if not self._accepts_writes():
            self._probe_later()
            return
        held, self._held = self._held, {}
        for replica in held.values():
            replica.resume()


def accepts_writes(disk: Disk, folder: str) -> bool:
    """Tell whether a disk has space for a large batch, by writing that much."""
    path = f"{folder}/{PROBE_FILE}"
    try:
        disk.write_atomic(path, bytes(PROBE_BYTES), sync=False)
        disk.remove(path)
    except OSError:
        return False
    return True
