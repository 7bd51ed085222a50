"""The node's side of transactions: who may write in one, and the way to their coordinator.

Clients come to the coordinator themselves. Only whether a batch may enter a transaction is asked
from wherever the batch is written, and so of other brokers, too (`remote_admissions.py`).

A question that comes while the last transaction of its producer is being ended waits for that,
where Kafka answers CONCURRENT_TRANSACTIONS and clients pause for longer than the end takes. It is
asked again as soon as the end is written: what it then writes follows in the same log, so it need
not wait for the disk in between.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.model.coordination import Outcome, ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.timers import Timer
from barnabas.node.admissions import Admissions
from barnabas.node.endings import Ending
from barnabas.node.remote_admissions import RemoteAdmissions
from barnabas.node.shard import Shard
from barnabas.transactions.machine import ASK_AGAIN, TransactionMachine
from barnabas.transactions.state import Transaction
from barnabas.transactions.transitions import RAISES_EPOCH_FROM, ProducerIdNeededError

if TYPE_CHECKING:
    from barnabas.node.node import Node

T = TypeVar("T")

Admitted = dict[TopicPartition, ErrorCode]
Operation = Callable[[TransactionMachine, int | None], Outcome[T]]
"""What to ask of a machine; the number is a producer id that nobody has, if one was needed."""

PATIENCE_MS = 1000
OF_A_WRITE = {ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH}
"""What producers expect of a write rather than of a request to the coordinator."""


class Question(Generic[T]):
    """Something asked of a coordinator, until it is answered."""

    __slots__ = ("answer", "operation", "spare_id", "timer", "transactional_id", "waits")

    def __init__(self, transactional_id: str, operation: Operation[T], *, waits: bool) -> None:
        self.transactional_id = transactional_id
        self.operation = operation
        self.waits = waits
        self.spare_id: int | None = None
        self.timer: Timer | None = None
        self.answer: Pending[T | ErrorCode] = Pending()

    def refuse(self, code: ErrorCode) -> None:
        """Answer with an error; a full disk is the coordinator's trouble, which may pass."""
        stored = code is ErrorCode.KAFKA_STORAGE_ERROR
        self.finish(ErrorCode.COORDINATOR_NOT_AVAILABLE if stored else code)

    def fail(self, error: Exception) -> None:
        """Hear that there will be no answer; where somebody else coordinates, that is one."""
        if isinstance(error, ApiError):
            self.refuse(error.code)
        else:
            self.answer.fail(error)

    def finish(self, result: T | ErrorCode) -> None:
        """Answer."""
        if self.timer is not None:
            self.timer.cancel()
        self.answer.complete(result)


class Transactions:
    """Asks the coordinators of transactions."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._waiting: dict[str, list[Question[Any]]] = {}
        self.admissions = Admissions(self.admit)
        self._remote = RemoteAdmissions(node)

    def ask(
        self, transactional_id: str, operation: Operation[T], *, waits: bool = True
    ) -> Pending[T | ErrorCode]:
        """Have the coordinator of a transactional id carry out an operation, if it is here.

        Answers what the operation answers, or the error with which it is refused. Who does not
        wait is told CONCURRENT_TRANSACTIONS at once.
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

        With `adds` those that are not become part of it (transaction version 2); else they are
        refused, with TRANSACTION_ABORTABLE, for which clients that do not know it must be told
        INVALID_TXN_STATE. Answers an error code, 0 for none, for each partition.
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
        """Write the markers of a decided transaction; then answer whoever waits for that."""
        Ending(self._node, shard, ending, lambda: self._ended(ending.transactional_id)).begin()

    def coordinator_closed(self, number: int) -> None:
        """Answer whoever waits for an end that somebody else writes from here on."""
        coordinators = self._node.coordinators.transactions
        for transactional_id in list(self._waiting):
            if coordinators.partition_for(transactional_id) == number:
                self._ended(transactional_id)

    def _is_elsewhere(self, transactional_id: str) -> bool:
        try:
            broker = self._node.coordinators.transactions.broker_for(transactional_id)
        except ApiError:
            return False
        return broker != self._node.node_id

    def _ask(self, question: Question[Any]) -> None:
        try:
            shard = self._node.coordinators.transactions.shard_for(question.transactional_id)
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
            fresh = self._node.next_producer_id(self._node.timers.wall_ms)
        except ApiError as error:
            question.refuse(error.code)
        else:
            fresh.when_done(found, question.fail)

    def _wait(self, question: Question[Any]) -> None:
        """Ask again once the transaction has ended; give up after a while."""
        if question.timer is None:
            question.timer = self._node.timers.after(PATIENCE_MS, lambda: self._give_up(question))
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
