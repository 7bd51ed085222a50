"""Where a share group begins in a partition of which it has no state: `share.auto.offset.reset`."""

from barnabas.effects import Effect, Scan
from barnabas.metadata.share_group_config import OffsetReset, Reset
from barnabas.model.errors import StorageError
from barnabas.model.pending import Pending
from barnabas.model.steps import Steps, Work
from barnabas.node.partitions.partition import Partition

LANE = "beginnings of share groups"


def first_offset(
    reset: OffsetReset, partition: Partition, wall_ms: int, outbox: list[Effect]
) -> Pending[int]:
    """Return the first offset for a group: the end, the beginning, or where a time begins."""
    if reset.reset is Reset.LATEST:
        return Pending.of(partition.high_watermark)
    if reset.reset is Reset.EARLIEST:
        return Pending.of(partition.log.start_offset)
    answer: Pending[int] = Pending()
    steps = _look(partition, wall_ms - reset.duration_ms, answer)
    outbox.append(Scan(LANE, str(partition.name), steps))
    return answer


def _look(partition: Partition, timestamp: int, answer: Pending[int]) -> Steps[None]:
    upper = partition.high_watermark
    try:
        found = yield from partition.log.offset_for_time(timestamp, upper, Work())
    except (StorageError, OSError) as error:
        answer.fail(error)
        return
    answer.complete(upper if found is None else found.offset)
