"""Every transactional id of one partition of `__transaction_state`: the coordinator.

Requests come in as operations (see `model/coordination.py`); `transitions.py` says what they may
do. An operation that must wait until a transaction has ended is refused with
CONCURRENT_TRANSACTIONS: the caller may wait and ask again
(`node/coordination/node_transactions.py` does).

Another part writes the markers (`node/coordination/transaction_endings.py`). This machine passes it
a transaction once its Prepare record is committed, or found after a start; it calls `complete` when
all markers are written.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from barnabas.model.coordination import (
    CoordinatorRecord,
    Outcome,
    ProducerIdAndEpoch,
    Scheduler,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import TransactionSettings
from barnabas.protocol.coordinator_codec import decode_transaction_record
from barnabas.transactions import transitions
from barnabas.transactions.state import State, Transaction, from_stored, to_record, tombstone
from barnabas.transactions.transitions import NO_EPOCH, ProducerIdNeededError

T = TypeVar("T")

FORGOTTEN_AT_ONCE_MAX = 1000
SOON_MS = 1
EXPIRY = "expiry"

Prepared = Callable[[Transaction], None]
Verified = dict[TopicPartition, ErrorCode]

ASK_AGAIN = ProducerIdAndEpoch(-1, -1)
"""The error for a request that must wait until the last transaction has ended."""


class Wanted(NamedTuple):
    """Which transactional ids a client wants to list; an empty filter passes all."""

    states: frozenset[State] | None = None
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    matches: Callable[[str], bool] | None = None

    def takes(self, transaction: Transaction, now_ms: int) -> bool:
        """Tell whether a transactional id passes."""
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states is not None and transaction.state not in self.states:
            return False
        if self.longer_than_ms >= 0 and now_ms - transaction.started_ms <= self.longer_than_ms:
            return False
        return self.matches is None or self.matches(transaction.transactional_id)


class TransactionMachine:
    """The transactional ids of one coordinator."""

    def __init__(
        self, settings: TransactionSettings, scheduler: Scheduler, prepared: Prepared
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._prepared = prepared
        self._transactions: dict[str, Transaction] = {}
        # The epoch that each instance had before its present one, so that it may ask again.
        self._raised_from: dict[str, tuple[ProducerIdAndEpoch, int]] = {}
        self._timed: set[str] = set()
        self._live = False

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Apply a record."""
        stored = decode_transaction_record(record)
        if stored is None:
            return
        transactional_id, transaction = from_stored(stored)
        if transaction is None:
            self._transactions.pop(transactional_id, None)
            self._raised_from.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = transaction
        if self._live:
            self._watch(transactional_id, transaction)

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Do nothing: no producer writes to this topic in a transaction."""

    def loaded(self) -> None:
        """Continue to end transactions that were being ended; watch deadlines from now on."""
        self._live = True
        for transactional_id, transaction in self._transactions.items():
            self._watch(transactional_id, transaction)
            if transaction.state.is_ending:
                self._resume(transaction)
        self._scheduler.schedule(EXPIRY, self._settings.id_expiration_check_ms, self._forget_unused)

    def initialize(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        spare_id: int | None,
    ) -> Outcome[ProducerIdAndEpoch]:
        """Give the id to an instance of the producer; first abort another instance's transaction.

        `spare_id` is an unused producer id. Raises `ProducerIdNeededError` if one is needed and not
        given.
        """
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        before = self._transactions.get(transactional_id)
        if before is None:
            return self._begin(transactional_id, timeout_ms, spare_id)
        transitions.check_not_ending(before)
        if expected is not None:
            _check_expected(before, expected)
        if before.state is State.ONGOING:
            return self._end_with(transitions.fenced(before, self._scheduler.wall_ms), ASK_AGAIN)
        after, raised_from = transitions.initialized(
            before,
            timeout_ms,
            None if expected is None else expected.producer_epoch,
            self._raised(before),
            spare_id,
            self._scheduler.wall_ms,
        )
        self._raised_from[transactional_id] = (after.producer, raised_from)
        return Outcome(after.producer, [to_record(after)])

    def add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        version: int,
    ) -> Outcome[Verified]:
        """Make partitions part of a producer's transaction, and open it if it is not open."""
        before = self._of(transactional_id, producer)
        verified = dict.fromkeys(partitions, ErrorCode.NONE)
        known = set(before.partitions)
        fresh = tuple(p for p in verified if p not in known)
        if before.state is State.ONGOING and not fresh:
            return Outcome(verified)
        after = transitions.extended(before, fresh, version, self._scheduler.wall_ms)
        return Outcome(verified, [to_record(after)])

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
    ) -> Outcome[Verified]:
        """Return which partitions are part of a producer's transaction."""
        known = set(self._of(transactional_id, producer).partitions)
        return Outcome(
            {
                partition: ErrorCode.NONE if partition in known else ErrorCode.TRANSACTION_ABORTABLE
                for partition in partitions
            }
        )

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        version: int,
        spare_id: int | None,
    ) -> Outcome[ProducerIdAndEpoch]:
        """Decide a transaction; return the id and epoch that the producer must use from then on."""
        before = self._known(transactional_id)
        transitions.check_not_ending(before)
        after = transitions.ended(
            before,
            producer,
            commit=commit,
            version=version,
            spare_id=spare_id,
            now_ms=self._scheduler.wall_ms,
        )
        if after is None:
            return Outcome(before.producer)
        return self._end_with(after, after.next_producer)

    def complete(self, ending: Transaction) -> Outcome[None]:
        """Complete a transaction: all of its markers are written."""
        before = self._transactions.get(ending.transactional_id)
        if before is None or not before.state.is_ending or before.producer != ending.producer:
            return Outcome(None)
        after = transitions.completed(before, self._scheduler.wall_ms)
        if after.version >= transitions.RAISES_EPOCH_FROM:
            raised = (after.producer, before.producer_epoch - 1)
            self._raised_from[after.transactional_id] = raised
        return Outcome(None, [to_record(after)])

    def describe(self, transactional_id: str) -> Outcome[Transaction]:
        """Return what is known of a transactional id."""
        found = self._transactions.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return Outcome(found)

    def find(self, wanted: Wanted) -> Outcome[list[Transaction]]:
        """Return the transactional ids that pass a filter."""
        now_ms = self._scheduler.wall_ms
        return Outcome([t for t in self._transactions.values() if wanted.takes(t, now_ms)])

    def _begin(
        self, transactional_id: str, timeout_ms: int, spare_id: int | None
    ) -> Outcome[ProducerIdAndEpoch]:
        if spare_id is None:
            raise ProducerIdNeededError
        fresh = Transaction(
            transactional_id=transactional_id,
            producer_id=spare_id,
            producer_epoch=0,
            timeout_ms=timeout_ms,
            updated_ms=self._scheduler.wall_ms,
        )
        return Outcome(fresh.producer, [to_record(fresh)])

    def _end_with(self, after: Transaction, response: T) -> Outcome[T]:
        """Store how a transaction ends; its markers are sent once that is committed."""
        return Outcome(response, [to_record(after)], committed=lambda: self._prepared(after))

    def _known(self, transactional_id: str) -> Transaction:
        found = self._transactions.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found

    def _of(self, transactional_id: str, producer: ProducerIdAndEpoch) -> Transaction:
        """Return the transaction that a producer may add to, or look at."""
        found = self._known(transactional_id)
        transitions.check_not_ending(found)
        transitions.check_producer(found, producer)
        return found

    def _raised(self, transaction: Transaction) -> int:
        """Return the previous epoch of the present instance; -1 if it is not known."""
        producer, raised_from = self._raised_from.get(
            transaction.transactional_id, (None, NO_EPOCH)
        )
        return raised_from if producer == transaction.producer else NO_EPOCH

    def _watch(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Abort an open transaction at its timeout."""
        is_open = transaction is not None and transaction.state is State.ONGOING
        if is_open and transactional_id not in self._timed:
            assert transaction is not None
            over_ms = transaction.started_ms + transaction.timeout_ms
            # At most a full timeout, in case the clock is behind that of an earlier coordinator.
            delay_ms = min(over_ms - self._scheduler.wall_ms, transaction.timeout_ms)
            self._time(transaction, delay_ms)
        elif not is_open and transactional_id in self._timed:
            self._timed.discard(transactional_id)
            self._scheduler.cancel(_timeout_of(transactional_id))

    def _time(self, transaction: Transaction, delay_ms: int) -> None:
        self._timed.add(transaction.transactional_id)
        self._scheduler.schedule(
            _timeout_of(transaction.transactional_id),
            max(delay_ms, 0),
            lambda: self._time_out(transaction.transactional_id),
        )

    def _time_out(self, transactional_id: str) -> Outcome[None]:
        """Abort a transaction; if that cannot be stored, try again later."""
        before = self._transactions[transactional_id]
        assert before.state is State.ONGOING
        self._timed.discard(transactional_id)
        outcome = self._end_with(transitions.fenced(before, self._scheduler.wall_ms), None)
        outcome.refused = lambda _: self._time(before, self._settings.abort_check_interval_ms)
        return outcome

    def _resume(self, ending: Transaction) -> None:
        """Send the markers again that may have been sent before the start."""

        def operation() -> Outcome[None]:
            return Outcome(None, committed=lambda: self._prepared(ending))

        self._scheduler.schedule(f"resume {ending.transactional_id}", SOON_MS, operation)

    def _forget_unused(self) -> Outcome[None]:
        """Delete transactional ids that have not been used for long."""
        unused = list(islice(self._unused(), FORGOTTEN_AT_ONCE_MAX))
        more = len(unused) == FORGOTTEN_AT_ONCE_MAX
        delay_ms = SOON_MS if more else self._settings.id_expiration_check_ms
        self._scheduler.schedule(EXPIRY, delay_ms, self._forget_unused)
        return Outcome(None, [tombstone(transactional_id) for transactional_id in unused])

    def _unused(self) -> Iterator[str]:
        since_ms = self._scheduler.wall_ms - self._settings.id_expiration_ms
        for transactional_id, transaction in self._transactions.items():
            if transaction.state.is_idle and transaction.updated_ms <= since_ms:
                yield transactional_id


def _check_expected(before: Transaction, expected: ProducerIdAndEpoch) -> None:
    """Refuse an instance that continues with an id which is no longer its own (KIP-360).

    It may have been given another id in a response that was lost. An open transaction can only be
    its own: Kafka lets a fenced instance abort it, and refuses that instance afterwards.
    """
    is_own = expected.producer_id == before.producer_id
    if before.state is State.ONGOING:
        is_own = expected == before.producer
    elif expected.producer_id == before.previous_producer_id:
        is_own = is_own or expected.producer_epoch >= transitions.LAST_EPOCH
    if not is_own:
        raise ApiError(ErrorCode.PRODUCER_FENCED)


def _timeout_of(transactional_id: str) -> str:
    return f"timeout {transactional_id}"
