"""Reads a partition's log for a fetch, within the time that one event may take.

Batches that were stored before this process started are checked before they are first served
(`storage/trust.py`). If that is more than one fetch may check, the read returns nothing for now;
the log is checked in steps, and the fetches that wait look again after each block.
"""

from typing import TYPE_CHECKING

from barnabas.effects import Scan
from barnabas.model.errors import ApiError, CorruptBatchError, ErrorCode
from barnabas.model.ports import FileSlice
from barnabas.model.steps import Steps, Work
from barnabas.storage.trust import BLOCK_BYTES, Allowance, UncheckedError

if TYPE_CHECKING:
    from barnabas.node.partitions.partition import Partition

LANE = "checks of stored records"
BLOCKS_AHEAD = 8
"""How many blocks are checked for a fetch that wants more than one."""


def read(
    partition: "Partition",
    offset: int,
    limit_bytes: int,
    upper: int,
    allowance: Allowance | None,
    *,
    at_least_one: bool,
) -> FileSlice | None:
    """Return batches from an offset on; None if there are none, or none that were checked."""
    try:
        return partition.log.read(
            offset, limit_bytes, upper, at_least_one=at_least_one, allowance=allowance
        )
    except UncheckedError as unchecked:
        if not partition.checks.stored:
            partition.checks.stored = True
            steps = _check(partition, unchecked)
            partition.checks.outbox.append(Scan(LANE, str(partition.name), steps))
        return None
    except CorruptBatchError as error:
        partition.health.report_once("stored records are damaged", offset, error)
        partition.health.found_damage(offset)
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    except OSError as error:
        partition.health.report_once("the disk refused a read", offset, error)
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


def _check(partition: "Partition", unchecked: UncheckedError) -> Steps[None]:
    """Check some blocks, and have consumers and followers read again after each."""
    segment, position = unchecked.segment, unchecked.start
    end = min(unchecked.end, position + BLOCKS_AHEAD * BLOCK_BYTES)
    work = Work()
    try:
        while position < end and not partition.retired:
            following = (position // BLOCK_BYTES + 1) * BLOCK_BYTES
            good = yield from segment.trust.check(segment, position, min(following, end), work)
            position = following if good else end
            if position < end:
                partition.watermark.wake_readers()
    except OSError as error:
        partition.health.report_once("the disk refused a read", segment.base_offset, error)
        return  # a fetch that read again would ask for the same check at once
    finally:
        partition.checks.stored = False
    partition.watermark.wake_readers()


def aborted(partition: "Partition", offset: int, piece: FileSlice) -> tuple[tuple[int, int], ...]:
    """Return producer and first offset of aborted transactions that overlap what was read."""
    try:
        found = partition.log.aborted_in(offset, piece)
    except OSError as error:
        partition.health.report_once("the disk refused a read", offset, error)
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    return tuple((entry.producer_id, entry.first_offset) for entry in found)
