"""Which logs get another resume point at a checkpoint: those that have grown most.

A resume point takes a few small writes on the event loop and a few syncs elsewhere, so only some
logs get one at a time. After a crash the headers behind it are read.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from heapq import nlargest

from barnabas.model.ports import Disk
from barnabas.storage import resuming
from barnabas.storage.log import Log

AT_ONCE = 8


def take(disk: Disk, logs: Iterable[Log]) -> Callable[[], None]:
    """Take resume points of the logs that grew most; return what stores those that may be."""
    ready: list[resuming.Stored] = []
    grown: list[Log] = []
    for log in logs:
        _add_ready(log, ready)
        if log.captured is None and resuming.growth(log) >= resuming.ENTRIES_MIN:
            grown.append(log)
    for log in nlargest(AT_ONCE, grown, key=resuming.growth):
        with suppress(OSError):  # the disk is full: recovery would read more headers
            resuming.capture(log)
        _add_ready(log, ready)

    def store() -> None:
        for found in ready:
            resuming.store(disk, found)

    return store


def _add_ready(log: Log, ready: list[resuming.Stored]) -> None:
    found = resuming.take_ready(log)
    if found is not None:
        ready.append(found)
