"""Records what clients sent and which answers they got, for the checks at the end.

Every record has a unique value and every committed offset a unique metadata string, so that each
can be traced to the client and the transaction that wrote it.
"""

from dataclasses import dataclass, field
from enum import Enum

from barnabas.model.coordination import ProducerIdAndEpoch
from barnabas.model.ids import TopicPartition

NEVER_MS = 1 << 60


class End(Enum):
    """The outcome of a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(eq=False)
class Txn:
    """One transaction, as its producer sees it."""

    name: str
    instance: str
    """The producer: a transactional id and its life."""
    may_commit: bool = False
    """Whether the producer ever sent a request to commit."""
    outcome: End | None = None
    """The outcome that the producer received."""
    records: list["Sent"] = field(default_factory=list)
    offsets: list["OffsetWrite"] = field(default_factory=list)


@dataclass(eq=False)
class Sent:
    """One record that a producer sent."""

    value: str
    writer: str
    """The producer and its life. A writer's records have one order."""
    number: int
    partition: TopicPartition
    txn: Txn | None
    acknowledged: bool = False
    offset: int = -1
    """The offset of the record, if the producer received it."""
    source: str | None = None
    """The input record that it was made from, if any."""


@dataclass(eq=False)
class OffsetWrite:
    """One attempt to commit an offset, with the times between which the coordinator stored it.

    Commits count in the order in which they are stored. A commit in a transaction is visible later,
    once the transaction is committed.
    """

    note: str
    group: str
    partition: TopicPartition
    offset: int
    sent_ms: int
    txn: Txn | None = None
    stored_ms: int = NEVER_MS
    confirmed_ms: int = NEVER_MS
    refused: bool = False


@dataclass(frozen=True, eq=False)
class OffsetRead:
    """An OffsetFetch response: the commit that it found, if any."""

    group: str
    partition: TopicPartition
    write: OffsetWrite | None
    sent_ms: int
    answered_ms: int
    is_current: bool
    """Whether the broker that answered was still the coordinator."""


class Ledger:
    """Everything that clients sent, and the responses that they got."""

    def __init__(self) -> None:
        self.records: dict[str, Sent] = {}
        self.txns: list[Txn] = []
        self.writes: dict[str, OffsetWrite] = {}
        self.reads: list[OffsetRead] = []
        self.highest: dict[str, ProducerIdAndEpoch] = {}
        """The newest producer id and epoch of each transactional id that clients have received."""

    def send(
        self, writer: str, number: int, partition: TopicPartition, txn: Txn | None = None
    ) -> Sent:
        """Record a record before it is sent for the first time."""
        value = f"{writer}.{number}"
        assert value not in self.records
        sent = self.records[value] = Sent(value, writer, number, partition, txn)
        if txn is not None:
            txn.records.append(sent)
        return sent

    def begin(self, instance: str, number: int) -> Txn:
        """Record a transaction."""
        txn = Txn(f"{instance}#{number}", instance)
        self.txns.append(txn)
        return txn

    def write(
        self,
        group: str,
        partition: TopicPartition,
        offset: int,
        now_ms: int,
        txn: Txn | None = None,
    ) -> OffsetWrite:
        """Record an offset commit before it is sent for the first time."""
        write = OffsetWrite(f"w{len(self.writes)}", group, partition, offset, now_ms, txn)
        self.writes[write.note] = write
        if txn is not None:
            txn.offsets.append(write)
        return write
