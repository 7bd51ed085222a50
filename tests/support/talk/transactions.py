"""A transaction coordinator without a node, and a producer that sends it requests.

    talk = TransactionTalk()
    producer = talk.initialize()
    talk.add(producer, "a-0")
    assert talk.end(producer, commit=True) == raised(producer)

Responses are values; an error is its code. `write_markers` writes the markers.
"""

from collections.abc import Callable
from typing import TypeVar

from barnabas.model.coordination import Outcome, ProducerIdAndEpoch
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.pending import Pending
from barnabas.model.settings import TransactionSettings
from barnabas.transactions.state import Transaction
from barnabas.transactions.transaction_machine import TransactionMachine
from barnabas.transactions.transitions import ProducerIdNeededError
from tests.support.talk.coordination import MachineRunner

T = TypeVar("T")

FIRST_ID = 1000
TIMEOUT_MS = 60_000
NEWEST = 2


class TransactionTalk:
    """A state machine and its log; producer ids start at 1000."""

    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.to_end: list[Transaction] = []
        """Transactions whose markers are to be written."""
        self.next_id = FIRST_ID
        self.runner = MachineRunner(
            lambda scheduler: TransactionMachine(
                settings or TransactionSettings(), scheduler, self.to_end.append
            )
        )

    def ask(
        self, operation: Callable[[TransactionMachine, int | None], Outcome[T]]
    ) -> Pending[T] | ErrorCode:
        """Run an operation, with a new producer id if it needs one."""
        try:
            return self.runner.run(lambda machine: operation(machine, None))
        except ProducerIdNeededError:
            self.next_id += 1
            return self.ask(lambda machine, _: operation(machine, self.next_id - 1))
        except ApiError as error:
            return error.code

    def initialize(
        self,
        name: str = "t",
        expected: ProducerIdAndEpoch | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> ProducerIdAndEpoch | ErrorCode | None:
        """Initialize a transactional id."""
        return now(self.ask(lambda m, spare_id: m.initialize(name, timeout_ms, expected, spare_id)))

    def begin(self, name: str = "t") -> ProducerIdAndEpoch:
        """Initialize a transactional id, which must succeed."""
        producer = self.initialize(name)
        assert isinstance(producer, ProducerIdAndEpoch)
        return producer

    def add(
        self, producer: ProducerIdAndEpoch, *places: str, name: str = "t", version: int = NEWEST
    ) -> ErrorCode | None:
        """Add partitions, which are written as topic-number."""
        asked = [partition(place) for place in places]
        answer = now(self.ask(lambda m, _: m.add(name, producer, asked, version)))
        return next(iter(answer.values())) if isinstance(answer, dict) else answer

    def verify(
        self, producer: ProducerIdAndEpoch, *places: str, name: str = "t"
    ) -> list[ErrorCode] | ErrorCode | None:
        """Ask whether partitions are part of a transaction."""
        asked = [partition(place) for place in places]
        answer = now(self.ask(lambda m, _: m.verify(name, producer, asked)))
        return list(answer.values()) if isinstance(answer, dict) else answer

    def end(
        self,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        name: str = "t",
        version: int = NEWEST,
    ) -> ProducerIdAndEpoch | ErrorCode | None:
        """End a transaction."""
        return now(self.send_end(producer, commit=commit, name=name, version=version))

    def send_end(
        self, producer: ProducerIdAndEpoch, *, commit: bool, name: str = "t", version: int = NEWEST
    ) -> Pending[ProducerIdAndEpoch] | ErrorCode:
        """End a transaction; the response may come later."""
        return self.ask(
            lambda m, spare_id: m.end(
                name, producer, commit=commit, version=version, spare_id=spare_id
            )
        )

    def write_markers(self) -> list[Transaction]:
        """Write all pending markers; return the transactions that they end."""
        ended = self.to_end[:]
        self.to_end.clear()
        for transaction in ended:
            self.runner.run(lambda machine, t=transaction: machine.complete(t))  # type: ignore[misc]
        return ended

    def state(self, name: str = "t") -> Transaction:
        """Return the coordinator's state."""
        return self.runner.machine.describe(name).response  # type: ignore[return-value]

    def transact(self, producer: ProducerIdAndEpoch, *, commit: bool) -> ProducerIdAndEpoch:
        """Run a whole transaction; return the producer for the next one."""
        assert self.add(producer, "a-0") is ErrorCode.NONE
        after = self.end(producer, commit=commit)
        assert isinstance(after, ProducerIdAndEpoch)
        self.write_markers()
        return after


def partition(place: str) -> TopicPartition:
    """Return the partition that is written as topic-number."""
    topic, _, number = place.rpartition("-")
    return TopicPartition(topic, int(number))


def raised(producer: ProducerIdAndEpoch, by: int = 1) -> ProducerIdAndEpoch:
    """Return a producer with a later epoch."""
    return producer._replace(producer_epoch=producer.producer_epoch + by)


def now(answer: Pending[T] | ErrorCode) -> T | ErrorCode | None:
    """Return a response, or None if it is not there yet."""
    if isinstance(answer, ErrorCode):
        return answer
    found: list[T] = []
    answer.when_done(found.append)
    return found[0] if found else None
