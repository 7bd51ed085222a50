"""A coordinator's state, read back from the partition that holds it.

Whoever takes up a large partition does it piece by piece, between requests. What is appended
meanwhile (markers of transactions) is read in its turn.
"""

from collections.abc import Iterator

from barnabas.effects import Effect, Notice
from barnabas.model.coordination import CoordinatorRecord, Machine, ProducerIdAndEpoch
from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.node.partition import Partition
from barnabas.protocol.records import BatchHeader, batches, control_type, records

READ_BYTES = 1 << 18
COMMIT = 1


def load(partition: Partition, machine: Machine, outbox: list[Effect]) -> Iterator[int]:
    """Have a machine replay all that is stored; yield the size of each batch after it was.

    Where records are damaged the partition hears of it, so that somebody else comes to lead.
    """
    for header, batch in _stored(partition):
        producer = None
        if header.is_transactional:
            producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        if header.is_control:
            assert producer is not None
            committed = control_type(batch, header) == COMMIT
            machine.replay_marker(producer, committed=committed)
            yield header.size
            continue
        for record in records(batch, header):
            stored = CoordinatorRecord(record.key or b"", record.value)
            try:
                machine.replay(stored, producer)
            except CorruptBatchError as error:
                facts = {"partition": str(partition.name), "offset": record.offset}
                facts["problem"] = str(error)
                outbox.append(Notice("error", "passed over a coordinator's record", facts))
        yield header.size


def _stored(partition: Partition) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield everything in a log, batch by batch."""
    log = partition.log
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            found = log.read(offset, READ_BYTES, log.end_offset, at_least_one=True)
        except CorruptBatchError:
            partition.found_damage(offset)
            raise
        if found is None:
            raise StorageError(f"{log.folder} has no batch at offset {offset}")
        for header, batch in batches(found.file.read(found.position, found.length)):
            yield header, batch
            offset = header.last_offset + 1
