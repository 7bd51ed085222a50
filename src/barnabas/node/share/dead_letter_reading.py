"""Reads the records that a share group gave up on from the log, in steps, within bounds."""

from collections.abc import Sequence

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.share_state import StateBatch
from barnabas.model.steps import Steps
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.records import HEADER_BYTES, BatchHeader, parse_header
from barnabas.share.dead_letter_records import Letter, letters_in
from barnabas.storage.trust import Allowance

LETTERS_MAX = 500
"""How many dead letters are sent in one batch."""


def read_letters(
    partition: Partition, wanted: Sequence[StateBatch], limit_bytes: int | None
) -> Steps[tuple[list[Letter], int]]:
    """Return dead letters, and the offset up to which all that are there were found.

    Stops before a dead letter that would exceed the limit; at least one is returned, if there is
    any. Stops at the high watermark, too, which a new leader knows late; raises `ApiError` if that
    comes first.
    """
    letters: list[Letter] = []
    size, position, last = 0, wanted[0].first, wanted[-1].last
    while position <= last:
        position = max(position, partition.log.start_offset)
        batch = _batch_at(partition, position)
        if batch is None:
            if not letters:
                raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, "the high watermark is not known")
            return letters, position - 1
        header, content = batch
        here = clipped(wanted, position, header.last_offset)
        found = (
            [] if header.is_control or not here else (yield from letters_in(content, header, here))
        )
        for letter in found:
            size += letter.size
            if letters and limit_bytes is not None and size > limit_bytes:
                return letters, letters[-1].offset
            letters.append(letter)
        position = _next_wanted(wanted, header.last_offset + 1)
        yield None
    return letters, last


def clipped(wanted: Sequence[StateBatch], first: int, last: int) -> list[StateBatch]:
    """Return the parts of runs that lie between two offsets."""
    return [
        each._replace(first=max(each.first, first), last=min(each.last, last))
        for each in wanted
        if each.first <= last and each.last >= first
    ]


def filled(letters: Sequence[Letter], wanted: Sequence[StateBatch]) -> list[Letter]:
    """Return a dead letter for each offset, without a record where that is gone by now."""
    known = {each.offset: each for each in letters}
    return [
        known.get(offset) or Letter(offset, run.deliveries, None)
        for run in wanted
        for offset in range(run.first, run.last + 1)
    ]


def missing(
    letters: Sequence[Letter], wanted: Sequence[StateBatch], end: int
) -> list[tuple[int, int]]:
    """Return the runs of offsets up to one that have no dead letter."""
    found = {each.offset for each in letters}
    runs: list[tuple[int, int]] = []
    for run in wanted:
        for offset in range(run.first, min(run.last, end) + 1):
            if offset in found:
                continue
            if runs and runs[-1][1] + 1 == offset:
                runs[-1] = runs[-1][0], offset
            else:
                runs.append((offset, offset))
    return runs


def _batch_at(partition: Partition, offset: int) -> tuple[BatchHeader, bytes] | None:
    """Return the batch with an offset, or the next one; None if there is none."""
    if offset >= partition.high_watermark:
        return None
    piece = partition.read(offset, 1, Allowance(), committed_only=False, at_least_one=True)
    if piece is None or not piece.length:
        problem = "the log is being checked"  # it is in steps, and read again later
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, problem)
    header = parse_header(piece.file.read(piece.position, HEADER_BYTES))
    return header, bytes(piece.file.read(piece.position, header.size))


def _next_wanted(wanted: Sequence[StateBatch], position: int) -> int:
    """Return the first wanted offset from one on; one behind all if there is none."""
    for each in wanted:
        if each.last >= position:
            return max(each.first, position)
    return wanted[-1].last + 1
