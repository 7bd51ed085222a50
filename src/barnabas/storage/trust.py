"""Tracks which bytes of a segment were checked since they were read from disk.

Bytes are checked block by block, so that a read checks only what it needs and later reads use
sendfile. The CRC of a batch does not cover its base offset and its epoch. The offset is checked
against the batches around it: offsets ascend and do not overlap.

A block of small batches takes long to check. So a fetch has an allowance: it checks as much as that
covers, and gets the checked part. The rest is checked in steps (`Trust.check`).
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.model.steps import Steps, Work
from barnabas.storage.walk import header_at, walk

if TYPE_CHECKING:
    from barnabas.storage.segment import Segment

BLOCK_BYTES = 1024 * 1024
GROWING = -1
FETCH_ALLOWANCE_BYTES = 64 * 1024
"""How much one read of a fetch checks by itself: about a thousand of the smallest batches."""
BATCH_UNITS = 5
"""The cost of checking a batch, besides its bytes."""
BYTES_PER_UNIT = 2048


class Allowance:
    """How many bytes may still be checked before an answer is given."""

    __slots__ = ("_left", "is_spent")

    def __init__(self, bytes_max: int = FETCH_ALLOWANCE_BYTES) -> None:
        self._left = bytes_max
        self.is_spent = False
        """Whether it did not cover something."""

    def covers(self, size: int) -> bool:
        """Take a number of bytes from the allowance, if that many are left."""
        if size > self._left:
            self.is_spent = True
            return False
        self._left -= size
        return True


class UncheckedError(StorageError):
    """The batches to read were not checked yet, and checking them would take too long."""

    def __init__(self, segment: "Segment", start: int, end: int) -> None:
        super().__init__(f"{segment.file.path} must be checked from byte {start} on")
        self.segment = segment
        self.start = start
        self.end = end


class Trust:
    """The parts of one segment that were checked and can be served."""

    __slots__ = ("_blocks", "_damaged", "_from", "_resets", "version")

    def __init__(self, size: int) -> None:
        self._from = size  # later batches were checked when this process wrote them
        self._blocks: set[int] = set()
        self._damaged: set[int] = set()
        self._resets = 0
        self.version = GROWING

    def starts_at(self, position: int) -> None:
        """Record that everything from a position on was checked just now."""
        self._from = position

    def truncate(self, position: int) -> None:
        """Apply a truncation, after which the segment grows again."""
        self._from = min(self._from, position)
        self._reset()
        self.version = GROWING

    def ensure(self, segment: "Segment", start: int, end: int, offset: int) -> int:
        """Do what `Segment.ensure_trusted` says, without a limit of time."""
        self._notice_changes(segment)
        if start >= self._from:
            return end
        for block in range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            if block in self._blocks:
                continue
            if not _block_is_good(segment, block):
                return _good_end(segment, start, end, offset)
            self._blocks.add(block)
        return end

    def ensure_within(
        self, segment: "Segment", start: int, end: int, offset: int, allowance: Allowance
    ) -> int:
        """Do the same, but check no more than the allowance covers.

        Raises `UncheckedError` if that does not reach beyond the first batch.
        """
        self._notice_changes(segment)
        if start >= self._from:
            return end
        first = start // BLOCK_BYTES
        for block in range(first, (end - 1) // BLOCK_BYTES + 1):
            if block in self._blocks:
                continue
            size = min(BLOCK_BYTES, segment.size - block * BLOCK_BYTES)
            if block not in self._damaged:
                if not allowance.covers(size):
                    if block == first:
                        raise UncheckedError(segment, start, end)
                    return min(end, _end_of(segment, block - 1))
                if _block_is_good(segment, block):
                    self._blocks.add(block)
                    continue
                self._damaged.add(block)
            if block > first:
                return min(end, _end_of(segment, block - 1))
            return _good_end(segment, start, _near_end(segment, start, end), offset)
        return end

    def check(self, segment: "Segment", start: int, end: int, work: Work) -> Steps[bool]:
        """Check the blocks between two boundaries, in steps; tell whether all are good.

        It stops at a damaged one. If the segment changes meanwhile, it starts again.
        """
        self._notice_changes(segment)
        resets = self._resets
        if start >= self._from:
            return True
        for block in range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
            if block in self._blocks:
                continue
            good = yield from self._check_block(segment, block, work)
            if resets != self._resets:
                return (yield from self.check(segment, start, min(end, segment.size), work))
            if not good:
                self._damaged.add(block)
                return False
            self._blocks.add(block)
        return True

    def _check_block(self, segment: "Segment", block: int, work: Work) -> Steps[bool]:
        """Tell whether a block is good; the result is dropped if the segment was reset."""
        resets = self._resets
        try:
            batches = _inspect(segment, *_batches_of(segment, block))
            while True:
                if work.spend(BATCH_UNITS + next(batches) // BYTES_PER_UNIT):
                    yield None
                    if resets != self._resets:
                        return False
        except CorruptBatchError:
            return False
        except StopIteration as end:
            return end.value is None

    def is_good_near(self, segment: "Segment", position: int) -> bool:
        """Check the block around a position again."""
        return position >= segment.size or _block_is_good(segment, position // BLOCK_BYTES)

    def forget(self, segment: "Segment") -> None:
        """Forget all checks: everything is checked again before it is served."""
        self._reset()
        self._from = segment.size
        if self.version != GROWING:
            self.version = segment.file.version()

    def _notice_changes(self, segment: "Segment") -> None:
        if self.version != GROWING and segment.file.version() != self.version:
            self.forget(segment)

    def _reset(self) -> None:
        self._blocks.clear()
        self._damaged.clear()
        self._resets += 1


def _block_is_good(segment: "Segment", block: int) -> bool:
    try:
        return _first_bad(segment, *_batches_of(segment, block)) is None
    except CorruptBatchError:
        return False


def _batches_of(segment: "Segment", block: int) -> tuple[int, int]:
    """Return where the first batch that reaches into a block begins, and where the block ends."""
    first = block * BLOCK_BYTES
    position = segment.boundary_before(first)
    while (end := segment.first_batch_end(position)) <= first:
        position = end
    return position, min(first + BLOCK_BYTES, segment.size)


def _end_of(segment: "Segment", block: int) -> int:
    """Return where the last batch ends that begins in a block, or reaches into the next one."""
    following = (block + 1) * BLOCK_BYTES
    position = segment.boundary_before(following)
    while position < following:
        position = segment.first_batch_end(position)
    return position


def _near_end(segment: "Segment", start: int, end: int) -> int:
    """Return a boundary near a position up to which batches can be checked at once."""
    batches, boundaries = _inspect(segment, start, end), [start]
    try:
        while boundaries[-1] - start < FETCH_ALLOWANCE_BYTES:
            boundaries.append(boundaries[-1] + next(batches))
    except StopIteration:
        return end
    # The last batch was not compared with the one after it.
    return boundaries[-2] if len(boundaries) > 2 else boundaries[-1]


def _good_end(segment: "Segment", start: int, end: int, offset: int) -> int:
    """Find the damaged batch near a position, batch by batch."""
    bad = _first_bad(segment, start, end)
    if bad == start:
        raise CorruptBatchError(f"{segment.file.path} is damaged at byte {start}")
    first = header_at(segment.file, start, segment.size)
    if not first.base_offset <= offset <= first.last_offset:
        raise CorruptBatchError(f"{segment.file.path} is damaged before byte {start}")
    return end if bad is None else bad


def _first_bad(segment: "Segment", position: int, end: int) -> int | None:
    """Return where the first batch starts that cannot be trusted, below `end`."""
    batches = _inspect(segment, position, end)
    try:
        while True:
            next(batches)
    except StopIteration as stop:
        bad: int | None = stop.value
        return bad


def _inspect(segment: "Segment", position: int, end: int) -> Generator[int, None, int | None]:
    """Check batches from a position on, and yield the size of each that is good.

    Returns where the first batch starts that cannot be trusted, below `end`.
    """
    previous, following, reached = position, segment.base_offset, position
    try:
        for found in walk(segment.file, position, segment.size, check=True):
            header = found.header
            if header.base_offset < following:
                return previous  # one of the two has a wrong offset
            if found.position >= end:
                return None
            if header.last_offset >= segment.next_offset:
                return found.position
            previous, following = found.position, header.last_offset + 1
            reached = found.position + header.size
            yield header.size
    except CorruptBatchError:
        return reached if reached < end else None
    return None
