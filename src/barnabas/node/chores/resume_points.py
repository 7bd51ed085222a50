"""Chooses the logs that get a new resume point at a checkpoint: those that have grown most.

A resume point takes a few small writes on the event loop and a few syncs elsewhere, so only some
logs get one at a time. After a crash recovery reads the headers behind it. A resume point that is
taken at one checkpoint is stored at a later one, when the log is synced up to it, unless its topic
was deleted.
"""

from collections.abc import Iterable
from contextlib import suppress
from heapq import nlargest

from barnabas.model.steps import Steps, Work
from barnabas.node.partitions.partition import Partition
from barnabas.storage import resuming

AT_ONCE = 8
UNITS = 3
"""The cost of looking at a log."""
CAPTURE_UNITS = 1_000
"""The cost of taking a resume point: a few small writes."""


def take(partitions: Iterable[Partition], work: Work) -> Steps[None]:
    """Take resume points of the logs that grew most, and store those that may be."""
    grown: list[Partition] = []
    for partition in partitions:
        if partition.retired:
            continue
        _store_ready(partition)
        log = partition.log
        if log.captured is None and resuming.growth(log) >= resuming.ENTRIES_MIN:
            grown.append(partition)
        if work.spend(UNITS):
            yield None
    for partition in nlargest(AT_ONCE, grown, key=lambda each: resuming.growth(each.log)):
        if work.spend(CAPTURE_UNITS):
            yield None
        if not partition.retired:
            with suppress(OSError):  # the disk is full: recovery would read more headers
                resuming.capture(partition.log)
            _store_ready(partition)


def _store_ready(partition: Partition) -> None:
    found = resuming.take_ready(partition.log)
    if found is not None:
        steps = resuming.storing(partition.log.disk, found)
        partition.changes.start(steps, lambda _: None, lambda _: None)
