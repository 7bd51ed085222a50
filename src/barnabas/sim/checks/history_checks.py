"""Checks that all replicas of a log have the same committed batches.

The first replica that advances its high watermark defines what was committed. All others must have
the same batches when their high watermarks advance. Only headers are compared: offsets, epoch and
checksum. The check does not read through the log's own code, so that it has no side effects.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.protocol.records import BatchHeader
from barnabas.sim.world import InvariantError
from barnabas.storage.log import Log
from barnabas.storage.walk import walk


class Mark(NamedTuple):
    """Identifies a batch."""

    last_offset: int
    leader_epoch: int
    crc: int


class History:
    """The committed part of one log."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.end_offset = 0
        self._marks: dict[int, Mark] = {}

    def compare(self, who: str, headers: Iterable[BatchHeader]) -> None:
        """Compare the batches of a replica below its high watermark."""
        for header in headers:
            mark = Mark(header.last_offset, header.leader_epoch, header.crc)
            base = header.base_offset
            if base >= self.end_offset:
                self._marks[base] = mark
                self.end_offset = header.last_offset + 1
            elif self._marks.get(base, mark) != mark:
                raise InvariantError(
                    f"{who} has {mark} at {base} of {self.name}, "
                    f"where {self._marks[base]} was committed"
                )
            elif base not in self._marks:
                raise InvariantError(
                    f"{who} has a batch at {base} of {self.name} that no other replica has"
                )


def headers_in(log: Log, start: int, end: int) -> Iterator[BatchHeader]:
    """Return the headers of batches that begin between two offsets."""
    start = max(start, log.start_offset)
    for segment in log.segments:
        if segment.next_offset <= start or segment.base_offset >= end:
            continue
        position = segment.position_of(start)
        for located in walk(segment.file, position, segment.size, check=False):
            if located.header.base_offset >= end:
                return
            if located.header.base_offset >= start:
                yield located.header
