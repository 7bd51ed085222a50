"""The contract between a coordinator's state machine and its runner.

A coordinator (of groups, of transactions) keeps its state in a partition. A request is an
operation: a function that reads the state and returns an `Outcome`, the response and the records
that store it. The runner (`node/coordination/coordinator_shard.py`) appends the records, replays
them, and sends the response once they are committed. Only replay changes durable state, so that
another broker that reads the same records has the same state.

A machine may change volatile state (waiting requests, the time of a member's last heartbeat) at
once, and rebuilds it in `loaded`. If the records cannot be written, they are not replayed: the
response becomes an error, and `refused` undoes the changes of volatile state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending

T = TypeVar("T")


class CoordinatorRecord(NamedTuple):
    """One record to store: the latest value of a key counts, and None deletes the key."""

    key: bytes
    value: bytes | None


class ProducerIdAndEpoch(NamedTuple):
    """A producer that writes in a transaction."""

    producer_id: int
    producer_epoch: int


class Caller(NamedTuple):
    """The client that sends a request, and the version of its API."""

    client_id: str
    host: str
    version: int
    now_ms: int
    """The wall clock."""
    describes: Callable[[str], bool] | None = None
    """Tells whether the client may describe a topic; None if it may describe all."""


@dataclass(slots=True)
class Outcome(Generic[T]):
    """The result of an operation."""

    response: T | Pending[T]
    """Sent once the records are committed, and once it is complete if it is pending."""

    records: Sequence[CoordinatorRecord] = ()

    producer: ProducerIdAndEpoch | None = None
    """The transaction that the records are part of, if any."""

    committed: Callable[[], None] | None = None
    """Called once the records are committed, before the response is sent."""

    refused: Callable[[ApiError], None] | None = None
    """Called if the records cannot be written."""


class Scheduler(Protocol):
    """A machine's clock: operations for later, each under a name."""

    @property
    def now_ms(self) -> int:
        """The monotonic clock, for waits."""

    @property
    def wall_ms(self) -> int:
        """The wall clock, for timestamps."""

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Run an operation later; cancel an earlier one under the same name."""

    def cancel(self, name: str) -> None:
        """Cancel an operation, if there is one under the name."""


class Machine(Protocol):
    """A coordinator's state for one partition."""

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Apply a record; with a producer, as part of its open transaction."""

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Apply the end of a transaction."""

    def loaded(self) -> None:
        """Start timers: all stored records were replayed."""
