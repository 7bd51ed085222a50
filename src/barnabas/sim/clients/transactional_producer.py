"""Simulated transactional producers, of transaction version 2 and of version 1.

A producer writes to a few partitions, may commit offsets of a group in the same transaction, and
commits or aborts. It aborts what it cannot retry. When it is fenced, it starts a new instance, like
an application that is restarted.
"""

from collections.abc import Sequence
from typing import ClassVar

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.sim.checks.ledger import End, Ledger, Txn
from barnabas.sim.clients.actor import Asking, Sleep, Talk
from barnabas.sim.clients.client_requests import (
    GROUP,
    TRANSACTION,
    add_partition,
    batch_of,
    commit_in_transaction,
    produce_to,
)
from barnabas.sim.clients.coordinated import CoordinatedClient
from barnabas.sim.host import START_MS
from barnabas.sim.simulated_cluster import Cluster
from barnabas.sim.world import InvariantError, World

OLD, NEW = 1, 2
"""Transaction versions."""
TIMEOUT_MS = 4_000
GIVE_UP_CHANCE = 0.3
"""How often the producer gives up an unanswered write, or the instance after a lost EndTxn."""
OLD_API_VERSIONS = {"EndTxnRequest": 3, "ProduceRequest": 11, "TxnOffsetCommitRequest": 3}
NEW_API_VERSIONS = {"EndTxnRequest": 5, "ProduceRequest": 12, "TxnOffsetCommitRequest": 5}


class FencedError(Exception):
    """This instance is fenced; the application starts another."""


class AbortableError(Exception):
    """This transaction can only be aborted."""


class TransactionalProducer(CoordinatedClient):
    """Writes to several partitions in transactions."""

    late_from_version: ClassVar[int] = NEW
    """The lowest transaction version whose requests may arrive late.

    Before version 2 a late EndTxn ends the transaction that is open by then, in Kafka as well as
    here. KIP-890 raises the epoch with each transaction to prevent that.
    """

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        name: str,
        ledger: Ledger,
        partitions: list[TopicPartition],
        *,
        transactional_id: str,
        new: bool,
        group: str | None = None,
    ) -> None:
        super().__init__(world, cluster, name)
        self.ledger = ledger
        self.partitions = partitions
        self.transactional_id = transactional_id
        self.new = new
        self.group = group
        self.may_arrive_late = self.late_from_version <= (NEW if new else OLD)
        self.ended = 0
        """How many transactions ended as requested."""
        self.gap_ms = self.rng.choice((100, 400, 1_000))
        self.producer = ProducerIdAndEpoch(-1, -1)
        self._instances = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._numbers = 0
        self._txns = 0
        self._uncertain = False

    def life(self) -> Talk:
        """Run one instance after the other."""
        yield from self.find(self.transactional_id, TRANSACTION)
        if self.group is not None:
            yield from self.find(self.group, GROUP)
        while not self.closing:
            self._instances += 1
            self._uncertain = False
            try:
                yield from self.initialize()
                while not self.closing:
                    yield from self.transact()
                    yield Sleep(self.rng.randint(0, self.gap_ms))
            except FencedError:
                self.world.note(self.name, "is fenced")
                yield Sleep(self.rng.randint(1, 2 * self.gap_ms))

    @property
    def instance(self) -> str:
        """The name of the current instance of the producer."""
        return f"{self.name}/{self._instances}"

    def initialize(self) -> Asking:
        """Initialize the transactional id, which fences earlier instances."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        answer = yield from self.repeat_until_final(request)
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            raise FencedError
        self._set_producer(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))

    def _set_producer(self, producer: ProducerIdAndEpoch) -> None:
        if producer != self.producer:
            self._sequences.clear()
        self.producer = producer
        highest = self.ledger.highest
        known = highest.get(self.transactional_id, producer)
        highest[self.transactional_id] = max(known, producer)

    def begin(self) -> Txn:
        """Begin a transaction; the broker learns of it with the first write."""
        self._txns += 1
        return self.ledger.begin(self.instance, self._txns)

    def transact(self) -> Asking:
        """Run one transaction."""
        txn = self.begin()
        wants = self.rng.choice((End.COMMIT, End.COMMIT, End.ABORT))
        try:
            yield from self.fill(txn)
        except AbortableError:
            wants = End.ABORT
        yield from self.finish(txn, wants)

    def finish(self, txn: Txn, wants: End) -> Asking:
        """End a transaction, and make sure that none of its requests can take effect later."""
        yield from self.end(txn, wants)
        if self._uncertain and not self.new:
            yield from self._raise_epoch()
        self._uncertain = False

    def _raise_epoch(self) -> Asking:
        """Get a new epoch, so that the broker refuses late requests (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
        )
        answer = yield from self.repeat_until_final(request, 4)
        if answer.error_code != 0:
            raise FencedError
        self._set_producer(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))

    def fill(self, txn: Txn) -> Asking:
        """Write the content of the transaction."""
        for _ in range(self.rng.randint(1, 3)):
            yield from self.write(txn, self.rng.choice(self.partitions), self.rng.randint(1, 2))
            if self.rng.random() < 0.2:
                yield Sleep(self.rng.randint(0, 500))
        if self.group is not None:
            yield from self.commit_offsets(txn)

    def write(
        self,
        txn: Txn,
        partition: TopicPartition,
        count: int,
        sources: Sequence[str | None] = (),
    ) -> Asking:
        """Write records to a partition, each made from a source record if there are sources."""
        if not self.new:
            yield from self._add(partition)
        sequence = self._sequences.get(partition, 0)
        records = [
            self.ledger.send(self.instance, self._numbers + n, partition, txn) for n in range(count)
        ]
        self._numbers += count
        for record, source in zip(records, sources, strict=False):
            record.source = source
        batch = batch_of(
            [record.value for record in records],
            self.producer,
            sequence,
            transactional=True,
            now_ms=START_MS + self.world.now_ms,
        )
        request = produce_to(partition, batch, self.transactional_id)
        answer = yield from self.repeat_until_final(request, gives_up_with=AbortableError)
        (result,) = answer.responses[0].partition_responses
        code = ErrorCode(result.error_code)
        if code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.refused(code)
        self._sequences[partition] = sequence + count
        for delta, record in enumerate(records):
            record.acknowledged = True
            record.offset = result.base_offset + delta if result.base_offset >= 0 else -1

    def commit_offsets(self, txn: Txn) -> Asking:
        """Commit a random offset of a group in the transaction."""
        assert self.group is not None
        partition = self.rng.choice(self.partitions)
        offset = self.rng.randint(0, 1_000)
        yield from self.commit_offset(txn, self.group, partition, offset)

    def commit_offset(
        self,
        txn: Txn,
        group: str,
        partition: TopicPartition,
        offset: int,
        membership: tuple[str, int] = ("", -1),
    ) -> Asking:
        """Commit an offset as part of a transaction."""
        if not self.new:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.producer_epoch,
                group_id=group,
            )
            answer = yield from self.repeat_until_final(request, 3)
            self.check(answer.error_code)
        write = self.ledger.write(group, partition, offset, self.world.now_ms, txn)
        member, epoch = membership
        answer = yield from self.repeat_until_final(
            commit_in_transaction(
                self.transactional_id,
                self.producer,
                group,
                {partition: (offset, write.note)},
                member=member,
                epoch=epoch,
            )
        )
        (result,) = answer.topics[0].partitions
        self.check(result.error_code)
        write.stored_ms = self.world.now_ms

    def end(self, txn: Txn, wants: End) -> Asking:
        """End the transaction; retry until there is an outcome."""
        txn.may_commit |= wants is End.COMMIT
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            committed=wants is End.COMMIT,
        )
        answer = yield from self.repeat_until_final(request, gives_up_with=FencedError)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.INVALID_TXN_STATE and wants is End.ABORT:
            raise FencedError  # the coordinator knows of no open transaction
        if code is ErrorCode.TRANSACTION_ABORTABLE and wants is End.COMMIT:
            yield from self.end(txn, End.ABORT)
            return
        if code is not ErrorCode.NONE:
            raise FencedError
        self.ended += 1
        self._outcome(txn, wants)
        if self.new:
            self._set_producer(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))

    def _outcome(self, txn: Txn, outcome: End) -> None:
        txn.outcome = outcome
        self.world.note(self.name, f"got the end of {txn.name}: {outcome.value}")
        if outcome is End.COMMIT:
            for write in txn.offsets:
                write.confirmed_ms = self.world.now_ms

    def _add(self, partition: TopicPartition) -> Asking:
        request = add_partition(self.transactional_id, self.producer, partition)
        answer = yield from self.repeat_until_final(request, 3)
        (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        self.check(result.partition_error_code)

    def repeat_until_final(
        self,
        request: Message,
        version: int | None = None,
        *,
        gives_up_with: type[Exception] | None = None,
    ) -> Asking:
        """Retry until there is a final response, or the producer gives up.

        If it gives up, the request may still be in flight and arrive later.
        """
        if version is None:
            versions = NEW_API_VERSIONS if self.new else OLD_API_VERSIONS
            version = versions.get(type(request).__name__)
        highest = self.ledger.highest.get(self.transactional_id, self.producer)
        while True:
            answer = yield from self.ask(request, version)
            if answer is not None and not self.is_retriable(code_of(answer)):
                accepted = code_of(answer) is ErrorCode.NONE
                if accepted and highest > self.producer and not is_init(request):
                    raise InvariantError(f"{self.name} was fenced by {highest} but got no error")
                return answer
            if gives_up_with is not None and self.rng.random() < GIVE_UP_CHANCE:
                self.world.note(self.name, f"gives up {type(request).__name__}")
                self._uncertain = True
                raise gives_up_with
            yield from self.pause_before_retry()

    def check(self, code: int) -> None:
        """Return if the error allows to continue; otherwise raise the reason to stop."""
        if code != 0:
            self.refused(ErrorCode(code))

    def refused(self, code: ErrorCode) -> None:
        """Raise for the end of the transaction or of the instance."""
        self.world.note(self.name, f"got {code.name}")
        if code is ErrorCode.INVALID_TXN_STATE and self.cluster.has_open(self.producer):
            raise InvariantError(f"{self.name} got INVALID_TXN_STATE, but its transaction is open")
        if code in ABORTABLE:
            raise AbortableError
        if code in FENCED:
            raise FencedError
        raise InvariantError(f"{self.name} got {code.name}")


ABORTABLE = {
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
}
FENCED = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
}


def is_init(request: Message) -> bool:
    """Return whether a request initializes the transactional id."""
    return isinstance(request, InitProducerIdRequest)


def code_of(answer: object) -> ErrorCode:
    """Return the error code of a response; its place depends on the API."""
    name = type(answer).__name__
    if name == "ProduceResponse":
        (result,) = answer.responses[0].partition_responses  # type: ignore[attr-defined]
        return ErrorCode(result.error_code)
    if name == "TxnOffsetCommitResponse":
        (result,) = answer.topics[0].partitions  # type: ignore[attr-defined]
        return ErrorCode(result.error_code)
    if name == "AddPartitionsToTxnResponse":
        (topic,) = answer.results_by_topic_v3_and_below  # type: ignore[attr-defined]
        return ErrorCode(topic.results_by_partition[0].partition_error_code)
    return ErrorCode(answer.error_code)  # type: ignore[attr-defined]
