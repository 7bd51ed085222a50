"""A simple reference model of a log: a list of batches and a set of deleted ones."""

from dataclasses import dataclass, field

from barnabas.protocol.markers import ABORT
from barnabas.protocol.records import Record
from barnabas.storage.compacting.compaction import CleaningPlan

WINDOW = 5


@dataclass(frozen=True, eq=False)
class ModelBatch:
    """An appended batch, with its records at their offsets."""

    records: list[Record]
    epoch: int
    producer: tuple[int, int, int]
    transactional: bool = False
    marker: int | None = None
    """The outcome of the transaction, if the batch is a marker."""

    @property
    def base(self) -> int:
        """The first offset."""
        return self.records[0].offset

    @property
    def end(self) -> int:
        """The next offset after the batch."""
        return self.records[-1].offset + 1


@dataclass
class ModelProducer:
    """The state of a producer."""

    epoch: int
    sent: list[ModelBatch] = field(default_factory=list)
    """The batches of the last epoch that a retry may repeat."""
    first_offset: int | None = None
    """The state of the open transaction."""


@dataclass
class LogModel:
    """The reference model."""

    batches: list[ModelBatch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    gone: set[int] = field(default_factory=set)
    """Offsets of records that compaction removed."""
    horizons: dict[int, int] = field(default_factory=dict)
    """By base offset, until when a batch keeps its tombstones."""

    def append(self, batch: ModelBatch) -> None:
        """Append a batch."""
        assert batch.base == self.end
        self.batches.append(batch)
        self.end = batch.end

    def live(self) -> list[Record]:
        """Return every record that can be read, without markers."""
        return [
            record
            for batch in self.batches
            if batch.marker is None
            for record in batch.records
            if record.offset >= self.start and record.offset not in self.gone
        ]

    def outcomes(self, high_watermark: int) -> dict[int, int | None]:
        """Return the outcome of each batch's transaction by offset, or None if it is not known.

        Only markers below the high watermark count. Batches outside of transactions are left out.
        """
        ends: dict[int, int] = {}
        found: dict[int, int | None] = {}
        for batch in reversed(self.batches):
            producer_id = batch.producer[0]
            if batch.marker is not None:
                if batch.base < high_watermark:
                    ends[producer_id] = batch.marker
            elif batch.transactional:
                found[batch.base] = ends.get(producer_id)
        return found

    def undecided(self, high_watermark: int) -> list[int]:
        """Return the offsets of batches of open transactions, ascending."""
        outcomes = self.outcomes(high_watermark)
        return sorted(base for base, outcome in outcomes.items() if outcome is None)

    def committed(self, high_watermark: int, upper: int) -> list[Record]:
        """Return the records that a read_committed consumer gets below an offset."""
        outcomes = self.outcomes(high_watermark)
        aborted = [b for b in self.batches if outcomes.get(b.base) == ABORT]
        hidden = {record.offset for batch in aborted for record in batch.records}
        return [r for r in self.live() if r.offset not in hidden and r.offset < upper]

    def producer(self, producer_id: int) -> ModelProducer | None:
        """Return the state of a producer according to the batches."""
        known: ModelProducer | None = None
        for batch in self.batches:
            if batch.producer[0] != producer_id:
                continue
            if known is None or known.epoch != batch.producer[1]:
                first_offset = None if known is None else known.first_offset
                known = ModelProducer(batch.producer[1], [], first_offset)
            if batch.marker is not None:
                known.first_offset = None
                continue
            if batch.producer[2] >= 0:
                known.sent = [*known.sent, batch][-WINDOW:]
            if batch.transactional and known.first_offset is None:
                known.first_offset = batch.base
        return known

    def cut(self, end: int) -> None:
        """Remove batches that end after an offset."""
        self.batches = [batch for batch in self.batches if batch.end <= end]
        self.gone = {offset for offset in self.gone if offset < end}
        self.horizons = {base: until for base, until in self.horizons.items() if base < end}
        self.end = max(end, self.start)

    def boundaries(self) -> set[int]:
        """Return the offsets to which the log may be truncated."""
        return {0, self.start, *(batch.end for batch in self.batches)}

    def sent(self, producer_id: int) -> list[ModelBatch]:
        """Return the batches of a producer's last epoch that a retry may repeat."""
        known = self.producer(producer_id)
        return [] if known is None else known.sent

    def compact(self, plan: CleaningPlan, clean_upto: int, high_watermark: int) -> None:
        """Remove aborted and superseded records, and tombstones that were kept long enough.

        Records from `clean_upto` on stay, even in the middle of a batch.
        """
        first = min(plan.bases)
        outcomes = self.outcomes(high_watermark)
        passed = [b for b in self.batches if first <= b.base < clean_upto]
        aborted = [b for b in passed if outcomes.get(b.base) == ABORT]
        self.gone |= {record.offset for batch in aborted for record in batch.records}
        part = [b for b in passed if b not in aborted and b.marker is None]
        known = [r for b in part for r in b.records if r.offset not in self.gone]
        dirty = [r for r in known if plan.first_dirty <= r.offset < clean_upto]
        latest = {r.key: r.offset for r in dirty}
        for batch in part:
            horizon = self.horizons.get(batch.base)
            over = horizon is not None and plan.now_ms >= horizon
            for record in batch.records:
                if record.offset >= clean_upto:
                    break
                overtaken = latest.get(record.key, -1) > record.offset
                if overtaken or record.key is None or (record.value is None and over):
                    self.gone.add(record.offset)
            tombstones = [r for r in batch.records if r.value is None and r.offset not in self.gone]
            if tombstones and horizon is None and batch.end <= clean_upto:
                self.horizons[batch.base] = plan.now_ms + plan.delete_retention_ms
