"""Which bytes of a segment have been checked since they came from the disk.

Checked block by block, so that a read pays for no more than it needs and later reads go by
sendfile. A CRC covers a batch but for its base offset and its epoch; the offset is checked by
its neighbours: offsets ascend, and between two batches there is room for none that reaches into
either.
"""

from typing import TYPE_CHECKING

from barnabas.model.errors import CorruptBatchError
from barnabas.storage.walk import header_at, walk

if TYPE_CHECKING:
    from barnabas.storage.segment import Segment

BLOCK_BYTES = 1024 * 1024
GROWING = -1


class Trust:
    """What may be served of one segment without looking again."""

    __slots__ = ("_blocks", "_from", "version")

    def __init__(self, size: int) -> None:
        self._from = size  # from here on, batches were checked as this process wrote them
        self._blocks: set[int] = set()
        self.version = GROWING

    def starts_at(self, position: int) -> None:
        """Take it that everything from a position on was checked just now."""
        self._from = position

    def cut(self, position: int) -> None:
        """Go along with a truncation, after which the segment grows again."""
        self._from = min(self._from, position)
        self._blocks.clear()
        self.version = GROWING

    def ensure(self, segment: "Segment", start: int, end: int, offset: int) -> int:
        """Do what `Segment.ensure_trusted` says."""
        if self.version != GROWING and segment.file.version() != self.version:
            self.forget(segment)
        if start >= self._from:
            return end
        for block in range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            if block in self._blocks:
                continue
            if not _block_is_good(segment, block):
                return _good_end(segment, start, end, offset)
            self._blocks.add(block)
        return end

    def is_good_near(self, segment: "Segment", position: int) -> bool:
        """Look anew at the block around a position."""
        return position >= segment.size or _block_is_good(segment, position // BLOCK_BYTES)

    def forget(self, segment: "Segment") -> None:
        """Have everything checked again before it is next served."""
        self._blocks.clear()
        self._from = segment.size
        if self.version != GROWING:
            self.version = segment.file.version()


def _block_is_good(segment: "Segment", block: int) -> bool:
    first = block * BLOCK_BYTES
    position = segment.boundary_before(first)
    try:
        while (end := segment.first_batch_end(position)) <= first:
            position = end
    except CorruptBatchError:
        return False
    return _first_bad(segment, position, min(first + BLOCK_BYTES, segment.size)) is None


def _good_end(segment: "Segment", start: int, end: int, offset: int) -> int:
    """Something near is damaged: find out what, batch by batch."""
    bad = _first_bad(segment, start, end)
    if bad == start:
        raise CorruptBatchError(f"{segment.file.path} is damaged at byte {start}")
    first = header_at(segment.file, start, segment.size)
    if not first.base_offset <= offset <= first.last_offset:
        raise CorruptBatchError(f"{segment.file.path} is damaged before byte {start}")
    return end if bad is None else bad


def _first_bad(segment: "Segment", position: int, end: int) -> int | None:
    """Return where the first batch starts that cannot be trusted, below `end`."""
    previous, following, reached = position, segment.base_offset, position
    try:
        for found in walk(segment.file, position, segment.size, check=True):
            header = found.header
            if header.base_offset < following:
                return previous  # one of the two lies about its offset
            if found.position >= end:
                return None
            if header.last_offset >= segment.next_offset:
                return found.position
            previous, following = found.position, header.last_offset + 1
            reached = found.position + header.size
    except CorruptBatchError:
        return reached if reached < end else None
    return None
