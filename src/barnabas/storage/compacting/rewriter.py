"""Rewrites a segment without the records that compaction removes."""

from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.errors import CorruptBatchError
from barnabas.model.ports import Disk
from barnabas.protocol.compression import Codec
from barnabas.protocol.records import (
    DELETE_HORIZON,
    BatchHeader,
    Record,
    build,
    parse_header,
    records,
)
from barnabas.storage.compacting.key_map import KeyMap
from barnabas.storage.compacting.outcomes import Outcomes
from barnabas.storage.segment import Segment
from barnabas.storage.walk import batches_of

if TYPE_CHECKING:
    from barnabas.storage.compacting.compaction import CleaningPlan


def opened(header: BatchHeader, batch: bytes) -> list[Record] | None:
    """Return a batch's records; None if they cannot be decompressed in spite of a good checksum."""
    try:
        return list(records(batch, header))
    except CorruptBatchError:
        return None


class Mapped(NamedTuple):
    """The last offset of each key."""

    keys: KeyMap
    upto: int
    """Records from this offset on are not in the map yet, and are kept."""


class Rewriter:
    """Writes one output segment from a group of input segments."""

    def __init__(
        self,
        disk: Disk,
        output: Segment,
        work: "CleaningPlan",
        mapped: Mapped,
        outcomes: Outcomes,
    ) -> None:
        self._disk = disk
        self._output = output
        self._work = work
        self._mapped = mapped
        self._outcomes = outcomes
        self.records_before = 0
        self.records_after = 0

    def rewrite(self, segment: Segment, *, last: bool) -> None:
        """Write the remaining records of one segment; the last batch of the last one stays."""
        for header, batch in batches_of(segment.file, segment.size):
            self.records_before += header.record_count
            kept = self._keep(header, batch)
            if kept is None and last and header.last_offset + 1 == segment.next_offset:
                kept = batch if header.is_control else _emptied(header)
            if kept is not None:
                self._output.append(kept, parse_header(kept), header.base_offset)

    def finish(self, modified_ms: int) -> None:
        """Make the output durable, with its indexes; it gets the input's modification time."""
        self._output.write_indexes()
        if self._output.max_timestamp < 0:  # then retention uses the time of the file
            self._output.file.set_modified_ms(modified_ms)
        self._output.file.sync()
        for path in self._output.paths[1:]:
            if self._disk.exists(path):
                self._disk.open(path).sync()

    def _keep(self, header: BatchHeader, batch: bytes) -> bytes | bytearray | None:
        """Return the batch without replaced records: unchanged, rebuilt, or None if empty."""
        if header.base_offset >= self._mapped.upto:
            return self._copy(header, batch)
        if header.is_control:
            return self._keep_marker(header, batch)
        return None if self._outcomes.is_aborted(header) else self._keep_records(header, batch)

    def _copy(self, header: BatchHeader, batch: bytes) -> bytes:
        """Return a batch unchanged, since its keys are not in the map yet."""
        self.records_after += header.record_count
        if header.is_control:
            aborted = self._outcomes.aborted_by(header)
            if aborted is not None:
                self._output.aborted.append(aborted)
        return batch

    def _keep_records(self, header: BatchHeader, batch: bytes) -> bytes | bytearray | None:
        content = opened(header, batch)
        if content is None:
            self.records_after += header.record_count
            return batch
        horizon = header.base_timestamp if header.attributes & DELETE_HORIZON else None
        survivors = [record for record in content if self._survives(record, horizon)]
        self.records_after += len(survivors)
        if not survivors:
            return None
        # Its time begins once older records of its key are removed, which needs the map.
        mapped = header.last_offset < self._mapped.upto
        if mapped and horizon is None and any(record.value is None for record in survivors):
            until = self._work.now_ms + self._work.delete_retention_ms
            return _rebuilt(header, survivors, header.attributes | DELETE_HORIZON, until)
        if len(survivors) == header.record_count:
            return batch
        return _rebuilt(header, survivors, header.attributes, header.base_timestamp)

    def _keep_marker(self, header: BatchHeader, batch: bytes) -> bytes | bytearray | None:
        """Return a marker: unchanged, with its time of removal set, or None after that time."""
        aborted = self._outcomes.aborted_by(header)
        content = opened(header, batch)
        if self._outcomes.ends_something(header) or header.producer_id < 0 or not content:
            if aborted is not None:
                self._output.aborted.append(aborted)
        elif not header.attributes & DELETE_HORIZON:
            until = self._work.now_ms + self._work.delete_retention_ms
            batch = bytes(_rebuilt(header, content, header.attributes | DELETE_HORIZON, until))
        elif self._work.now_ms >= header.base_timestamp:
            return None
        self.records_after += header.record_count
        return batch

    def _survives(self, record: Record, horizon: int | None) -> bool:
        if record.offset >= self._mapped.upto:
            return True
        if record.key is None or self._mapped.keys.offset_of(record.key) > record.offset:
            return False
        return record.value is not None or horizon is None or self._work.now_ms < horizon


def _emptied(header: BatchHeader) -> bytearray:
    return _rebuilt(header, [], header.attributes & ~DELETE_HORIZON, header.max_timestamp)


def _rebuilt(
    header: BatchHeader, survivors: list[Record], attributes: int, base_timestamp: int
) -> bytearray:
    """Build the batch again with fewer records, at the same offsets and sequences."""
    return build(
        survivors,
        codec=Codec(header.codec) if survivors else Codec.NONE,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        base_timestamp=base_timestamp,
        attributes=attributes,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
