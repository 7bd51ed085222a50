"""Reads a coordinator's state from the partition that stores it.

A large partition is read in pieces, between requests. Records that are appended meanwhile (markers
of transactions) are read in their turn.
"""

from collections.abc import Iterator

from barnabas.effects import Effect, Notice
from barnabas.model.coordination import CoordinatorRecord, Machine, ProducerIdAndEpoch
from barnabas.model.errors import CorruptBatchError, StorageError
from barnabas.node.partitions.partition import Partition
from barnabas.protocol.records import BatchHeader, batches, control_type, records

READ_BYTES = 1 << 18
COMMIT = 1


def load(partition: Partition, machine: Machine, outbox: list[Effect]) -> Iterator[int]:
    """Replay all stored records into a machine; yield the size of each batch after its replay.

    Damaged records are reported to the partition, so that another replica becomes its leader.
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
                outbox.append(
                    Notice("error", "skipped a coordinator's record that cannot be decoded", facts)
                )
        yield header.size


def _stored(partition: Partition) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield everything in a log, batch by batch."""
    log = partition.log
    offset = log.start_offset
    while offset < log.end_offset:
        try:
            found = log.read(offset, READ_BYTES, log.end_offset, at_least_one=True)
        except CorruptBatchError:
            partition.health.found_damage(offset)
            raise
        if found is None:
            raise StorageError(f"{log.folder} has no batch at offset {offset}")
        for header, batch in batches(found.file.read(found.position, found.length)):
            yield header, batch
            offset = header.last_offset + 1
