"""Reads batches from a log for share groups: only their headers are looked at.

Members get whole batches, and a list of the offsets in them that they have acquired. With
read_committed, batches of aborted transactions count as gaps.
"""

from collections.abc import Iterator, Sequence

from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.ports import FileSlice
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.records import BatchHeader
from barnabas.storage.trust import Allowance
from barnabas.storage.walk import Located, walk

Aborted = tuple[int, int]
"""A producer id and the first offset of its aborted transaction."""


class Batches:
    """Batches that lie one behind the other in a file."""

    def __init__(
        self, piece: FileSlice, located: Sequence[Located], aborted: Sequence[Aborted] = ()
    ) -> None:
        self._piece = piece
        self._located = located
        self._aborted = aborted

    @property
    def last_offset(self) -> int:
        """The last offset of the last batch."""
        return self._located[-1].header.last_offset

    def gaps(self, first: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of offsets, from one on, that have no records for consumers."""
        open_aborted = sorted(self._aborted, key=lambda entry: entry[1])
        producers: set[int] = set()
        for _, header in self._located:
            if header.base_offset > first:
                yield first, header.base_offset - 1
            while open_aborted and open_aborted[0][1] <= header.last_offset:
                producers.add(open_aborted.pop(0)[0])
            if self._is_left_out(header, producers):
                yield max(first, header.base_offset), header.last_offset
            if header.is_control:
                producers.discard(header.producer_id)
            first = header.last_offset + 1

    def end_after(self, first: int, count: int) -> int:
        """Return the end of the batch in which so many offsets, from one on, are complete."""
        for _, header in self._located:
            if header.last_offset - first + 1 >= count:
                return header.last_offset
        return self.last_offset

    def slice_with(self, first: int, last: int) -> FileSlice:
        """Return the batches that have offsets between two."""
        start = end = None
        for position, header in self._located:
            if start is None and header.last_offset >= first:
                start = position
            if header.base_offset <= last:
                end = position + header.size
        assert start is not None
        assert end is not None
        return FileSlice(self._piece.file, start, end - start)

    def _is_left_out(self, header: BatchHeader, producers: set[int]) -> bool:
        if header.is_control:
            return True
        return header.is_transactional and header.producer_id in producers


def read_batches(
    partition: Partition,
    offset: int,
    limit_bytes: int,
    allowance: Allowance,
    *,
    committed_only: bool,
    at_least_one: bool,
) -> Batches | None:
    """Return the batches from an offset on; None if there are none, or none that were checked."""
    piece = partition.read(
        offset, limit_bytes, allowance, committed_only=committed_only, at_least_one=at_least_one
    )
    if piece is None or not piece.length:
        return None
    try:
        located = list(walk(piece.file, piece.position, piece.position + piece.length, check=False))
    except CorruptBatchError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    aborted = partition.aborted(offset, piece) if committed_only else ()
    return Batches(piece, located, aborted)
