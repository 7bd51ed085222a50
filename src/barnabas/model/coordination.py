"""The contract between a coordinator's state machine and whoever runs it.

A coordinator (of groups, of transactions) keeps its state in a partition. What it is asked to do
is an operation: a function that looks at the state and returns an `Outcome`, the response and the
records that would make it true. The runner (`node/shard.py`) appends the records, replays them,
and lets the response go once they are committed. Replay is all that changes what must survive, so
that another node that reads the same records has the same state.

What need not survive (who waits for whom, when a member was last heard of) a machine may change
at once, and rebuilds it in `loaded`. Where the records cannot be written, nothing was replayed:
the response becomes an error, and `refused` takes back what was changed at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas.model.errors import ApiError
from barnabas.model.pending import Pending

T = TypeVar("T")


class CoordinatorRecord(NamedTuple):
    """One fact to store: the latest value of a key counts, and None is the end of it."""

    key: bytes
    value: bytes | None


class ProducerIdAndEpoch(NamedTuple):
    """Who writes in a transaction."""

    producer_id: int
    producer_epoch: int


class Caller(NamedTuple):
    """Who asks, and in which version of the API."""

    client_id: str
    host: str
    version: int
    now_ms: int
    """The calendar's time."""


@dataclass(slots=True)
class Outcome(Generic[T]):
    """What an operation came to."""

    response: T | Pending[T]
    """Sent once the records are committed; where it is pending, once it is there as well."""

    records: Sequence[CoordinatorRecord] = ()

    producer: ProducerIdAndEpoch | None = None
    """The transaction that the records are part of, if any."""

    committed: Callable[[], None] | None = None
    """Called once the records are committed, before the response goes."""

    refused: Callable[[ApiError], None] | None = None
    """Called where the records could not be written."""


class Scheduler(Protocol):
    """A machine's clock: operations for later, each under a name."""

    @property
    def now_ms(self) -> int:
        """A clock that never jumps, for waits."""

    @property
    def wall_ms(self) -> int:
        """What the calendar says, for timestamps."""

    def schedule(self, name: str, delay_ms: int, operation: Callable[[], Outcome[None]]) -> None:
        """Run an operation later; an earlier one under the same name is forgotten."""

    def cancel(self, name: str) -> None:
        """Forget an operation; nothing happens where there is none."""


class Machine(Protocol):
    """A coordinator's state for one partition."""

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Take in a record; with a producer, as part of its open transaction."""

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Take in the end of a transaction."""

    def loaded(self) -> None:
        """Everything stored was replayed: begin to watch members and deadlines."""
