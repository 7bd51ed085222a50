"""The record of a sink job that driver and tasks share, and its text format.

The record is the offset that a group named after the job has committed: the offset is the number of
the next batch, and its metadata is the text that this module reads and writes. Kafka limits
metadata to 4,096 bytes, so a long text is split over several groups.
"""

import json
from dataclasses import dataclass, field, replace

from barnabas.spark.exactly_once.fingerprint import NO_ROWS, Fingerprint

FORMAT = 2
"""Markers without a format were written before there was a record of the whole batch."""

PIECE_CHARACTERS = 3600
REPLACED_MAX = 8
HISTORY_MAX = 16
"""How many batches are remembered, to compare them with batches that are written again."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The ids that another process needs to end a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    task: int = 0
    written: Fingerprint = NO_ROWS
    """The content of the transaction."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A batch that was decided to be committed."""

    batch: int
    written: Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The stored state of a job."""

    run: str
    """The run of the query, or the job, that may decide the next batch."""
    replaced: tuple[str, ...] = ()
    """Earlier runs, newest last: their tasks and drivers must stop."""
    decided_by: str = ""
    """The run that decided the last batch."""
    owner: str = ""
    """The address of the driver of that run."""
    expires_ms: int = 0
    """Until when that run may hold transactions open; for jobs without a name."""
    changes: int = 0
    """How often the record has changed."""
    next_batch: int = 0
    target: str = ""
    """The target of the batches in the history."""
    history: tuple[Decided, ...] = ()
    """The last batches that were decided, oldest first."""
    tickets: tuple[Ticket, ...] = field(default=())
    """The transactions of the last one."""

    def decided(self, batch: int) -> Decided | None:
        """Return the entry of a batch that was decided."""
        return next((each for each in self.history if each.batch == batch), None)

    def claimed(self, run: str, owner: str, expires_ms: int) -> "Record":
        """Return the record of the next run."""
        replaced = (*self.replaced, self.run)[-REPLACED_MAX:] if self.run else ()
        return replace(self, run=run, replaced=replaced, owner=owner, expires_ms=expires_ms)

    def with_batch(self, decided: Decided, target: str, tickets: tuple[Ticket, ...]) -> "Record":
        """Return the record after a batch was decided; the history is that of one target."""
        kept = self.history if target == self.target else ()
        return replace(
            self,
            decided_by=self.run,
            target=target,
            next_batch=decided.batch + 1,
            history=(*kept, decided)[-HISTORY_MAX:],
            tickets=tickets,
        )

    def with_tickets(self, others: tuple[Ticket, ...]) -> "Record":
        """Return the record after some tasks of its last batch have written again."""
        kept = {each.task: each for each in self.tickets} | {each.task: each for each in others}
        return replace(self, decided_by=self.run, tickets=tuple(kept.values()))


def to_pieces(record: Record, job: str) -> list[str]:
    """Return the text of a job's record, in pieces that fit into an offset's metadata."""
    text = json.dumps(
        {
            "run": record.run,
            "replaced": record.replaced,
            "decided": record.decided_by,
            "owner": record.owner,
            "expires": record.expires_ms,
            "target": record.target,
            "history": [[each.batch, *each.written] for each in record.history],
            "tickets": [
                [
                    each.transactional_id.removeprefix(job),
                    each.producer_id,
                    each.producer_epoch,
                    each.task,
                    *each.written,
                ]
                for each in record.tickets
            ],
        },
        separators=(",", ":"),
    )
    pieces = [
        text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS)
    ]
    return [f"{FORMAT} {record.changes} {len(pieces)} {piece}" for piece in pieces]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a record's text, as it was read."""

    changes: int
    pieces: int
    text: str


def read_piece(metadata: str | None) -> Piece | None:
    """Return what an offset's metadata says; None if it is not part of a record."""
    words = (metadata or "").split(" ", 3)
    if len(words) < 4 or words[0] != str(FORMAT):
        return None
    return Piece(int(words[1]), int(words[2]), words[3])


def from_text(text: str, job: str, changes: int, next_batch: int) -> Record:
    """Return the record of a job whose text was put together again."""
    found = json.loads(text)
    return Record(
        run=found["run"],
        replaced=tuple(found["replaced"]),
        decided_by=found["decided"],
        owner=found["owner"],
        expires_ms=found["expires"],
        changes=changes,
        next_batch=next_batch,
        target=found["target"],
        history=tuple(
            Decided(batch, Fingerprint(rows, digest)) for batch, rows, digest in found["history"]
        ),
        tickets=tuple(
            Ticket(job + name, producer_id, epoch, task, Fingerprint(rows, digest))
            for name, producer_id, epoch, task, rows, digest in found["tickets"]
        ),
    )
