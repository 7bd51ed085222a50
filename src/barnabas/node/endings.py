"""The second half of a transaction's end: a marker for each partition, then the word that all
have one.

The outcome is decided and must be carried out, so nothing here gives up: what is refused is tried
again, more and more slowly. Only a partition that is gone needs no marker.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.model.coordination import Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node import markers
from barnabas.node.markers import Marker
from barnabas.node.shard import Shard
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.state import Transaction

if TYPE_CHECKING:
    from barnabas.node.node import Node

RETRY_MS = 20
RETRY_MAX_MS = 1000
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Ending:
    """One transaction on its way from Prepare to Complete."""

    def __init__(
        self,
        node: "Node",
        shard: Shard[TransactionMachine],
        transaction: Transaction,
        done: Callable[[], None],
    ) -> None:
        self._node = node
        self._shard = shard
        self._transaction = transaction
        self._done = done
        self._missing = dict.fromkeys(transaction.partitions)
        self._finished = False
        self._marker = Marker(
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.commits,
            shard.partition.leader_epoch,
            transaction.version,
        )

    def begin(self) -> None:
        """Send all markers."""
        for partition in self._transaction.partitions:
            self._write(partition, RETRY_MS)
        self._finish_if_complete()

    def _write(self, partition: TopicPartition, delay_ms: int) -> None:
        """Write one marker, or see to it that it is tried again."""
        try:
            written = markers.write_marker(
                self._node, *partition, self._marker, self._node.timers.wall_ms
            )
        except ApiError as error:
            self._refused(partition, delay_ms, error)
        else:
            written.when_done(
                lambda _: self._written(partition),
                lambda error: self._refused(partition, delay_ms, error),
            )

    def _refused(self, partition: TopicPartition, delay_ms: int, error: Exception) -> None:
        if isinstance(error, ApiError) and error.code in GONE:
            self._written(partition)
            return
        longer_ms = min(2 * delay_ms, RETRY_MAX_MS)
        name = f"marker {partition} of {self._transaction.transactional_id}"
        self._schedule(name, delay_ms, lambda: self._write(partition, longer_ms))

    def _written(self, partition: TopicPartition) -> None:
        self._missing.pop(partition, None)
        self._finish_if_complete()

    def _finish_if_complete(self) -> None:
        if not self._missing and not self._finished:
            self._finished = True
            self._finish()

    def _finish(self) -> None:
        if self._shard.partition.retired:
            return
        try:
            self._shard.run(lambda: self._shard.machine.complete(self._transaction))
        except ApiError:
            name = f"complete {self._transaction.transactional_id}"
            self._schedule(name, RETRY_MAX_MS, self._finish)
        else:
            self._done()

    def _schedule(self, name: str, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, unless somebody else coordinates by then."""

        def operation() -> Outcome[None]:
            action()
            return Outcome(None)

        self._shard.schedule(name, delay_ms, operation)
