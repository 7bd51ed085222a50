"""Runs requests on the transaction coordinators of this broker, and asks those of other brokers.

Clients send their requests to the coordinator themselves. The leader of a partition asks the
coordinator whether a batch belongs to an open transaction; the coordinator may be on another broker
(`remote_admissions.py`).

A request that comes while the producer's last transaction is still ending waits for the end. Kafka
answers CONCURRENT_TRANSACTIONS instead, and clients pause for longer than the end takes. The
request runs as soon as the end is written: its own records follow in the same log, so it need not
wait for the disk in between.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from barnabas.model.coordination import Outcome, ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer, Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.coordination.admissions import Admissions
from barnabas.node.coordination.coordinator_shard import Shard
from barnabas.node.coordination.remote_admissions import RemoteAdmissions
from barnabas.node.coordination.transaction_endings import Ending, EndingHost
from barnabas.transactions.state import Transaction
from barnabas.transactions.transaction_machine import ASK_AGAIN, TransactionMachine
from barnabas.transactions.transitions import RAISES_EPOCH_FROM, ProducerIdNeededError

T = TypeVar("T")

Admitted = dict[TopicPartition, ErrorCode]
Operation = Callable[[TransactionMachine, int | None], Outcome[T]]
"""An operation of a machine; the number is an unused producer id, if the operation needs one."""

PATIENCE_MS = 1000
OF_A_WRITE = {ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH}
"""The error code that a producer expects for a write, by that of a coordinator's answer."""


class Question(Generic[T]):
    """A request to a coordinator that is not answered yet."""

    __slots__ = ("answer", "operation", "spare_id", "timer", "transactional_id", "waits")

    def __init__(self, transactional_id: str, operation: Operation[T], *, waits: bool) -> None:
        self.transactional_id = transactional_id
        self.operation = operation
        self.waits = waits
        self.spare_id: int | None = None
        self.timer: Timer | None = None
        self.answer: Pending[T | ErrorCode] = Pending()

    def refuse(self, code: ErrorCode) -> None:
        """Answer with an error; a full disk means that the coordinator is not available for now."""
        stored = code is ErrorCode.KAFKA_STORAGE_ERROR
        self.finish(ErrorCode.COORDINATOR_NOT_AVAILABLE if stored else code)

    def fail(self, error: Exception) -> None:
        """Answer with the code of an `ApiError`; pass other errors on."""
        if isinstance(error, ApiError):
            self.refuse(error.code)
        else:
            self.answer.fail(error)

    def finish(self, result: T | ErrorCode) -> None:
        """Answer."""
        if self.timer is not None:
            self.timer.cancel()
        self.answer.complete(result)


class TransactionsHost(EndingHost, Protocol):
    """What transactions need from the broker."""

    def next_producer_id(self, now_ms: int) -> Pending[int]:
        """Return an id that no producer ever had."""


class Transactions:
    """Runs operations on transaction coordinators."""

    def __init__(self, host: TransactionsHost, peers: BrokerRequests, timers: Timers) -> None:
        self._host = host
        self._peers = peers
        self._timers = timers
        self._waiting: dict[str, list[Question[Any]]] = {}
        self.admissions = Admissions(self.admit)
        self._remote = RemoteAdmissions(host.node_id, self._broker_for, self.admit, peers, timers)

    def ask(
        self, transactional_id: str, operation: Operation[T], *, waits: bool = True
    ) -> Pending[T | ErrorCode]:
        """Have the coordinator of a transactional id carry out an operation, if it is here.

        Answers the operation's response, or the error code with which it is refused. Without
        `waits` the answer is CONCURRENT_TRANSACTIONS while the last transaction is ending.
        """
        question = Question(transactional_id, operation, waits=waits)
        self._ask(question)
        return question.answer

    def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Pending[Admitted]:
        """Make sure that partitions are part of a producer's open transaction.

        With `adds` partitions are added to it (transaction version 2). Without it, partitions that
        are not part of it are refused with TRANSACTION_ABORTABLE; clients that do not know that
        code must get INVALID_TXN_STATE. Answers an error code for each partition, NONE included.
        """

        def operation(machine: TransactionMachine, _: int | None) -> Outcome[Admitted]:
            if not adds:
                return machine.verify(transactional_id, producer, partitions)
            return machine.add(transactional_id, producer, partitions, RAISES_EPOCH_FROM)

        def admitted(answer: Admitted | ErrorCode) -> Admitted:
            codes = dict.fromkeys(partitions, answer) if isinstance(answer, ErrorCode) else answer
            return {place: OF_A_WRITE.get(code, code) for place, code in codes.items()}

        if self._is_elsewhere(transactional_id):
            asked = self._remote.ask(transactional_id, producer, partitions, adds=adds)
            return asked.map(admitted)
        return self.ask(transactional_id, operation).map(admitted)

    def end(self, shard: Shard[TransactionMachine], ending: Transaction) -> None:
        """Write the markers of a decided transaction; then run the requests that wait for that."""
        done = partial(self._ended, ending.transactional_id)
        Ending(self._host, self._peers, self._timers, shard, ending, done).begin()

    def coordinator_closed(self, number: int) -> None:
        """Answer requests that wait for an end that another broker writes from now on."""
        coordinators = self._host.coordinators.transactions
        for transactional_id in list(self._waiting):
            if coordinators.partition_for(transactional_id) == number:
                self._ended(transactional_id)

    def _is_elsewhere(self, transactional_id: str) -> bool:
        try:
            broker = self._broker_for(transactional_id)
        except ApiError:
            return False
        return broker != self._host.node_id

    def _broker_for(self, transactional_id: str) -> NodeId:
        return self._host.coordinators.transactions.broker_for(transactional_id)

    def _ask(self, question: Question[Any]) -> None:
        try:
            shard = self._host.coordinators.transactions.shard_for(question.transactional_id)
            pending = shard.run(lambda: question.operation(shard.machine, question.spare_id))
        except ProducerIdNeededError:
            self._find_producer_id(question)
        except ApiError as error:
            if error.code is ErrorCode.CONCURRENT_TRANSACTIONS and question.waits:
                self._wait(question)
            else:
                question.refuse(error.code)
        else:
            pending.when_done(lambda answer: self._answered(question, answer), question.fail)

    def _answered(self, question: Question[Any], answer: object) -> None:
        if answer == ASK_AGAIN:
            self._ask(question)
        else:
            question.finish(answer)

    def _find_producer_id(self, question: Question[Any]) -> None:
        def found(producer_id: int) -> None:
            question.spare_id = producer_id
            self._ask(question)

        try:
            fresh = self._host.next_producer_id(self._timers.wall_ms)
        except ApiError as error:
            question.refuse(error.code)
        else:
            fresh.when_done(found, question.fail)

    def _wait(self, question: Question[Any]) -> None:
        """Ask again once the transaction has ended; give up after a while."""
        if question.timer is None:
            question.timer = self._timers.after(PATIENCE_MS, lambda: self._give_up(question))
        if question.timer.action is None:
            question.refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            self._waiting.setdefault(question.transactional_id, []).append(question)

    def _give_up(self, question: Question[Any]) -> None:
        waiting = self._waiting.get(question.transactional_id, [])
        if question in waiting:
            waiting.remove(question)
            question.refuse(ErrorCode.CONCURRENT_TRANSACTIONS)

    def _ended(self, transactional_id: str) -> None:
        for question in self._waiting.pop(transactional_id, ()):
            self._ask(question)
