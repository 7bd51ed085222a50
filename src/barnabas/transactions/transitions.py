"""How one state of a transactional id becomes the next.

A transaction opens with the first partition that is added to it, and it ends in two steps. First
its outcome is stored (Prepare): from then on it is decided, even if brokers crash. Then a marker
goes to each of its partitions, and once all have one, that is stored as well (Complete).

Producer id and epoch decide which instance may write. A new instance of a producer asks for an id
(InitProducerId) and gets a raised epoch, which fences every older instance; if one of those had a
transaction open, it is aborted first. In transaction version 2 (KIP-890) each end raises the epoch
as well, and markers carry the raised one. So every broker can tell that a late request or batch
belongs to a transaction that is over. Epochs go up to 32767. The last is never given to a producer,
so that a producer can always be fenced; after 32766 the producer gets a new id.

    from                      request                     to              epoch
    (nothing)                 InitProducerId              Empty           0
    Empty, Complete*          InitProducerId              Empty           raised, or new id
    Empty, Complete*          AddPartitions, AddOffsets   Ongoing         same
    Ongoing                   AddPartitions, AddOffsets   Ongoing         same
    Ongoing                   EndTxn                      Prepare*        v2: raised, or new id next
    Ongoing                   InitProducerId, timeout     PrepareAbort    raised
    Empty, Complete*          EndTxn abort, version 2     PrepareAbort    raised, or new id next
    PrepareCommit             all markers are there       CompleteCommit  same, or the new id
    PrepareAbort              all markers are there       CompleteAbort   same, or the new id
    Empty, Complete*          unused for long             (nothing)

In Prepare* all requests have to wait. PrepareEpochFence and Dead are Kafka's names for steps on the
way from Ongoing to PrepareAbort and to nothing. Kafka never stores them, and they do not exist
here.

EndTxn of version 2 without an open transaction (a retry has the epoch before the last raise; "-"
is INVALID_TXN_STATE; "abort" is an ordinary end, without partitions):

                       abort, retry   abort     commit, retry   commit
    Empty              fenced         abort     fenced          -
    CompleteAbort      answered       abort     -               -
    CompleteCommit     -              abort     answered        -

Before version 2 the epoch stays, so a repeated EndTxn is answered if it asks for the outcome that
was reached, and Empty has nothing to end.
"""

from dataclasses import replace
from typing import NamedTuple

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NO_PRODUCER_ID, NO_TIMESTAMP_MS, TopicPartition
from barnabas.transactions.state import State, Transaction

EPOCH_MAX = 32767
LAST_EPOCH = EPOCH_MAX - 1
"""The last epoch that a producer is given."""
NO_EPOCH = -1
RAISES_EPOCH_FROM = 2
"""The transaction version."""


class ProducerIdNeededError(ApiError):
    """A new producer id must be found before this can be done."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_NOT_AVAILABLE, "a producer id is needed")


class Initialized(NamedTuple):
    """The result of InitProducerId."""

    transaction: Transaction
    raised_from: int
    """The epoch that the same instance had before; -1 for another instance."""


def check_not_ending(transaction: Transaction) -> None:
    """Refuse requests while markers are being written.

    This is the first check: the producer may already use the id that it gets with the last marker.
    """
    if transaction.state.is_ending:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)


def check_producer(transaction: Transaction, producer: ProducerIdAndEpoch) -> None:
    """Refuse every producer but the current instance."""
    if transaction.producer_id != producer.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer.producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)


def initialized(
    before: Transaction,
    timeout_ms: int,
    expected_epoch: int | None,
    raised_from: int,
    spare_id: int | None,
    now_ms: int,
) -> Initialized:
    """Give the id to a new instance, or, with an epoch, to one that continues (KIP-360).

    An instance that did not get the response asks again with its previous epoch, and gets the same
    response.
    """
    idle = replace(
        before,
        state=State.EMPTY,
        partitions=(),
        started_ms=NO_TIMESTAMP_MS,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
        previous_producer_id=before.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )
    epoch = before.producer_epoch
    asks_again = expected_epoch is not None and expected_epoch == raised_from
    if expected_epoch is not None and expected_epoch != epoch and not asks_again:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    known = NO_EPOCH if expected_epoch is None else expected_epoch
    if asks_again and epoch <= LAST_EPOCH:
        return Initialized(idle, known)
    if epoch >= LAST_EPOCH:
        return Initialized(replace(idle, producer_id=_taken(spare_id), producer_epoch=0), known)
    return Initialized(replace(idle, producer_epoch=epoch + 1), known)


def extended(
    before: Transaction, partitions: tuple[TopicPartition, ...], version: int, now_ms: int
) -> Transaction:
    """Add partitions to a transaction, and open it if it is not open."""
    is_open = before.state is State.ONGOING
    return replace(
        before,
        state=State.ONGOING,
        partitions=before.partitions + partitions,
        started_ms=before.started_ms if is_open else now_ms,
        updated_ms=now_ms,
        previous_producer_id=before.producer_id,
        version=version,
    )


def fenced(before: Transaction, now_ms: int) -> Transaction:
    """Abort a transaction for its producer, whose epoch is out of date from then on."""
    return _ended(before, State.PREPARE_ABORT, RAISES_EPOCH_FROM, NO_PRODUCER_ID, now_ms)


def ended(
    before: Transaction,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool,
    version: int,
    spare_id: int | None,
    now_ms: int,
) -> Transaction | None:
    """End a transaction as its producer asks; return None if that was done already."""
    if version < RAISES_EPOCH_FROM:
        check_producer(before, producer)
        if before.state is not State.ONGOING:
            _check_outcome(before, commit=commit)
            return None
        return _ended(before, _prepare(commit=commit), version, NO_PRODUCER_ID, now_ms)
    is_retry = _check_end(before, producer)
    if is_retry and before.producer_epoch < EPOCH_MAX:
        _check_outcome(before, commit=commit)
        return None
    if commit and before.state is not State.ONGOING:
        raise _wrong_state(before)
    next_producer_id: int = NO_PRODUCER_ID
    if before.producer_epoch >= LAST_EPOCH:
        next_producer_id = _taken(spare_id)
    return _ended(before, _prepare(commit=commit), version, next_producer_id, now_ms)


def completed(before: Transaction, now_ms: int) -> Transaction:
    """Record that every partition has its marker."""
    producer_id, producer_epoch = before.next_producer
    return replace(
        before,
        state=State.COMPLETE_COMMIT if before.commits else State.COMPLETE_ABORT,
        partitions=(),
        updated_ms=now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=before.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def _ended(
    before: Transaction, state: State, version: int, next_producer_id: int, now_ms: int
) -> Transaction:
    epoch = before.producer_epoch
    if version >= RAISES_EPOCH_FROM:
        epoch = min(epoch + 1, EPOCH_MAX)
    return replace(
        before,
        state=state,
        producer_epoch=epoch,
        started_ms=before.started_ms if before.state is State.ONGOING else now_ms,
        updated_ms=now_ms,
        previous_producer_id=before.producer_id,
        next_producer_id=next_producer_id,
        version=version,
    )


def _check_end(before: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """Refuse an EndTxn of version 2 from another instance; tell whether it is a retry."""
    producer_id, epoch = producer
    got_new_id = (
        before.previous_producer_id == producer_id
        and epoch == LAST_EPOCH
        and before.producer_epoch == 0
    )
    if before.producer_id != producer_id and not got_new_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # The end by an older client raised no epoch: a client with the old one is another instance.
    was_raised = before.version >= RAISES_EPOCH_FROM
    is_over = was_raised and before.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    is_retry = is_over and (got_new_id or before.producer_epoch == epoch + 1)
    if not is_retry and (before.producer_id != producer_id or before.producer_epoch != epoch):
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    return is_retry


def _check_outcome(before: Transaction, *, commit: bool) -> None:
    """Refuse an EndTxn that asks for another outcome than the one that was reached."""
    reached = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
    if before.state is not reached:
        raise _wrong_state(before)


def _wrong_state(before: Transaction) -> ApiError:
    return ApiError(ErrorCode.INVALID_TXN_STATE, f"the transaction is {before.state.label}")


def _prepare(*, commit: bool) -> State:
    return State.PREPARE_COMMIT if commit else State.PREPARE_ABORT


def _taken(spare_id: int | None) -> int:
    if spare_id is None:
        raise ProducerIdNeededError
    return spare_id
