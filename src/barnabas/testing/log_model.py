"""What a log should hold, kept in the dumbest way: a list of batches and a set of what is gone."""

from dataclasses import dataclass, field

from barnabas.protocol.records import Record
from barnabas.storage.compaction import CleaningPlan

WINDOW = 5


@dataclass(frozen=True, eq=False)
class ModelBatch:
    """A batch as it was appended, with its records at their offsets."""

    records: list[Record]
    epoch: int
    producer: tuple[int, int, int]

    @property
    def base(self) -> int:
        """The first offset."""
        return self.records[0].offset

    @property
    def end(self) -> int:
        """The offset after the last."""
        return self.records[-1].offset + 1


@dataclass
class LogModel:
    """The dumb twin."""

    batches: list[ModelBatch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    gone: set[int] = field(default_factory=set)
    """Offsets of records that compaction removed."""
    horizons: dict[int, int] = field(default_factory=dict)
    """Until when a batch keeps its tombstones, by its base offset."""

    def append(self, batch: ModelBatch) -> None:
        """Take in a batch."""
        assert batch.base == self.end
        self.batches.append(batch)
        self.end = batch.end

    def live(self) -> list[Record]:
        """Return every record that can be read."""
        return [
            record
            for batch in self.batches
            for record in batch.records
            if record.offset >= self.start and record.offset not in self.gone
        ]

    def cut(self, end: int) -> None:
        """Forget batches that end after an offset."""
        self.batches = [batch for batch in self.batches if batch.end <= end]
        self.gone = {offset for offset in self.gone if offset < end}
        self.horizons = {base: until for base, until in self.horizons.items() if base < end}
        self.end = max(end, self.start)

    def boundaries(self) -> set[int]:
        """Return where the log may end."""
        return {0, self.start, *(batch.end for batch in self.batches)}

    def first_at_or_after(self, timestamp: int, upper: int) -> Record | None:
        """Return what a look-up by time must find."""
        found = (r for r in self.live() if r.timestamp >= timestamp and r.offset < upper)
        return next(found, None)

    def latest(self, upper: int) -> Record | None:
        """Return the first of the youngest records."""
        readable = [record for record in self.live() if record.offset < upper]
        return max(readable, key=lambda r: (r.timestamp, -r.offset), default=None)

    def sent(self, producer_id: int) -> list[ModelBatch]:
        """Return the batches of a producer's last epoch that a retry may repeat."""
        own = [batch for batch in self.batches if batch.producer[0] == producer_id]
        current = [batch for batch in own if batch.producer[1] == own[-1].producer[1]]
        return current[-WINDOW:]

    def compact(self, plan: CleaningPlan, clean_upto: int) -> None:
        """Remove what is overtaken, and tombstones that were kept long enough."""
        first = min(plan.bases)
        part = [b for b in self.batches if first <= b.base and b.end <= clean_upto]
        dirty = [r for b in part for r in b.records if r.offset not in self.gone]
        latest = {r.key: r.offset for r in dirty if r.offset >= plan.first_dirty}
        for batch in part:
            horizon = self.horizons.get(batch.base)
            over = horizon is not None and plan.now_ms >= horizon
            for record in batch.records:
                overtaken = latest.get(record.key, -1) > record.offset
                if overtaken or record.key is None or (record.value is None and over):
                    self.gone.add(record.offset)
            tombstones = [r for r in batch.records if r.value is None and r.offset not in self.gone]
            if tombstones and horizon is None:
                self.horizons[batch.base] = plan.now_ms + plan.delete_retention_ms
