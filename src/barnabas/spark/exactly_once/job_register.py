"""Reads and changes the record of a job on the brokers.

A change is made in a transaction of the register's own transactional id. Initializing that id
fences every other driver or task that is about to change the record, so the record that is read
afterwards cannot change until this change is committed: `change` is a compare-and-set. A change
that was fenced begins again with the record of the other one.
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace

from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.spark.exactly_once.fingerprint import NO_ROWS
from barnabas.spark.exactly_once.job_record import (
    Piece,
    Record,
    from_text,
    read_piece,
    to_pieces,
)
from barnabas.spark.sink.batch_sending import FENCED, DeliveryError, name_of
from barnabas.spark.sink.sink_cluster import Cluster
from barnabas.spark.sink.sink_transactions import (
    OvertakenError,
    Transaction,
    delete_group,
    end,
    fetched_code,
)
from barnabas.wire.cluster_wire import Kind, require

TIMEOUT_MS = 60_000
PAUSE_S = 0.1
SUFFIX = "-batch"

Change = Callable[[Record | None], Record | None]
"""Takes the present record, returns the new one; None leaves it unchanged."""


class Register:
    """The record of one job."""

    def __init__(self, cluster: Cluster, job: str, patience_ms: int) -> None:
        """Take the job's name, which is the prefix of its transactional ids."""
        self.job = job
        self._cluster = cluster
        self._patience_ms = patience_ms
        self._rng = random.Random()

    def read(self, *, stable: bool = False) -> Record | None:
        """Return the present record; if it must be stable, once no change is in progress."""
        deadline_s = time.monotonic() + self._patience_ms / 1000
        while True:
            next_batch, first = self._piece(0, stable=stable)
            if first is None:
                return None
            count = first.pieces
            rest = [self._piece(number, stable=stable)[1] for number in range(1, count)]
            # Pieces of another change: the record has changed between two looks.
            if all(each is not None and each.changes == first.changes for each in rest):
                text = first.text + "".join(each.text for each in rest if each is not None)
                return from_text(text, self.job, first.changes, next_batch)
            if time.monotonic() > deadline_s:
                raise DeliveryError(
                    f"The record of {self.job} is incomplete: one of its groups was deleted. "
                    f"Set the option transactionalIdPrefix to another name to begin without it"
                )
            time.sleep(PAUSE_S)

    def change(self, topic: str, changed: Change) -> Record | None:
        """Change the record; return the new record. The offset is stored under a topic."""
        deadline_s = time.monotonic() + self._patience_ms / 1000
        while True:
            try:
                return self._attempt(topic, changed)
            except OvertakenError:
                if time.monotonic() > deadline_s:
                    raise
            # After random pauses one of several tasks succeeds.
            time.sleep(self._rng.uniform(0, PAUSE_S))

    def delete(self) -> None:
        """Delete the record of a job that is done."""
        record = self.read()
        count = 1 if record is None else len(to_pieces(record, self.job))
        for number in range(count):
            delete_group(self._cluster, self._group(number), self._patience_ms)

    def _attempt(self, topic: str, changed: Change) -> Record | None:
        name = self._group(0)
        transaction = Transaction(self._cluster, name, TIMEOUT_MS, self._patience_ms)
        transaction.fence()
        old = self.read(stable=True)
        new = changed(old)
        if new is None:
            return old
        new = replace(new, changes=1 if old is None else old.changes + 1)
        for number, piece in enumerate(to_pieces(new, self.job)):
            transaction.mark(self._group(number), topic, new.next_batch, piece)
        ticket = transaction.ticket(0, NO_ROWS)
        code = end(self._cluster, ticket, self._patience_ms, commit=True)
        if code in FENCED:
            raise OvertakenError(f"{name}: {name_of(code)}")
        require(code, f"Transaction {name}")
        return new

    def _group(self, number: int) -> str:
        name = self.job + SUFFIX
        return f"{name}~{number}" if number else name

    def _piece(self, number: int, *, stable: bool) -> tuple[int, Piece | None]:
        group = self._group(number)
        request = OffsetFetchRequest(group_id=group, topics=None, require_stable=stable)
        answer = self._cluster.ask(
            (Kind.GROUP, group),
            request,
            OffsetFetchResponse,
            fetched_code,
            time.monotonic() + self._patience_ms / 1000,
        )
        code = fetched_code(answer)
        if code == ErrorCode.GROUP_ID_NOT_FOUND:
            return 0, None
        require(code, f"The record of {self.job}")
        found = [
            (part.committed_offset, read_piece(part.metadata))
            for topic in answer.topics
            for part in topic.partitions
        ]
        known = [(offset, piece) for offset, piece in found if piece is not None]
        # A query that changed its topic has an offset for each; the last change counts.
        return max(known, key=lambda each: each[1].changes, default=(0, None))
