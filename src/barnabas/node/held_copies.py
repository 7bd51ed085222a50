"""Copies that do not follow yet, because their disk refuses appends.

A follower's fetch counts as its position. A replica that gave up the lead because of a full disk
has everything that its leader has until the next record is written: a fetch would bring it back
into the ISR, where every write then waits for it, and back to the lead where it is the preferred
replica. So it fetches only once its disk takes a write again.
"""

from collections.abc import Callable

from barnabas.model.ports import Disk
from barnabas.model.timers import Timers
from barnabas.node.copying import LocalCopy
from barnabas.replication.following import Key

LOOK_MS = 1_000
PROBE = ".probe"
PROBE_BYTES = 1024 * 1024
"""As much as a large batch takes: a disk with less room would soon refuse again."""


class HeldCopies:
    """Those of one broker, and the timer that looks at the disk for them."""

    def __init__(self, timers: Timers, takes_writes: Callable[[], bool]) -> None:
        self._timers = timers
        self._takes_writes = takes_writes
        self._held: dict[Key, LocalCopy] = {}
        self._looking = False

    def hold(self, copy: LocalCopy) -> None:
        """Have a copy follow once the disk takes writes, in the place of an earlier one."""
        self._held[copy.key] = copy
        self._look_later()

    def _look_later(self) -> None:
        if not self._looking:
            self._looking = True
            self._timers.after(LOOK_MS, self._look)

    def _look(self) -> None:
        self._looking = False
        self._held = {key: copy for key, copy in self._held.items() if copy.is_held}
        if not self._held:
            return
        if not self._takes_writes():
            self._look_later()
            return
        held, self._held = self._held, {}
        for copy in held.values():
            copy.go_on()


def takes_writes(disk: Disk, folder: str) -> bool:
    """Tell whether a disk has room for a large batch, by writing as much."""
    path = f"{folder}/{PROBE}"
    try:
        disk.write_atomic(path, bytes(PROBE_BYTES), sync=False)
        disk.remove(path)
    except OSError:
        return False
    return True
