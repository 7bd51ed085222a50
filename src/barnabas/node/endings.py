"""The second half of a transaction's end: a marker for each partition, then the word that all
have one.

Markers go to the brokers that lead the partitions: here they are written at once, to others they
are sent, those for one broker together. The outcome is decided and must be carried out, so nothing
here gives up: what is refused or lost is tried again, more and more slowly, wherever the metadata
says by then. Two kinds of partitions need no marker: one that is gone, and one where the producer
has written with a later epoch, for there the transaction cannot be open any more.

A coordinator that was deposed stops with its shard; its successor writes all markers again, with a
later coordinator's epoch, behind which those of the predecessor are refused.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.model.coordination import Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicPartition
from barnabas.node import markers
from barnabas.node.markers import Marker
from barnabas.node.shard import Shard
from barnabas.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.state import Transaction

if TYPE_CHECKING:
    from barnabas.node.node import Node

LANE = "markers"
"""Not that of admissions, whose answers need not wait until markers are copied."""
RETRY_MS = 20
RETRY_MAX_MS = 1000
NO_LEADER = -1


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
        self._again: list[TopicPartition] = []
        self._finished = False
        self._marker = Marker(
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.commits,
            shard.leader_epoch,
            transaction.version,
        )

    def begin(self) -> None:
        """Send all markers."""
        self._send(self._transaction.partitions, RETRY_MS)
        self._finish_if_complete()

    def _send(self, partitions: Sequence[TopicPartition], delay_ms: int) -> None:
        """Have markers written by those who lead the partitions."""
        elsewhere: dict[NodeId, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._leader_of(partition)
            if leader is None:
                self._written(partition)
            elif leader == self._node.node_id:
                self._write(partition, delay_ms)
            elif leader == NO_LEADER:
                self._refused(partition, delay_ms, ApiError(ErrorCode.LEADER_NOT_AVAILABLE))
            else:
                elsewhere.setdefault(leader, []).append(partition)
        for leader, places in elsewhere.items():
            self._write_at(leader, places, delay_ms)

    def _leader_of(self, partition: TopicPartition) -> NodeId | None:
        """Return the broker that leads a partition; None for one that is gone.

        The metadata tells that, and nothing else: a copy may be missing because it moved.
        """
        topic = self._node.image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return NodeId(topic.partitions[partition.partition].leader)

    def _write(self, partition: TopicPartition, delay_ms: int) -> None:
        """Write one marker, or see to it that it is tried again."""

        def refused(error: Exception) -> None:
            if isinstance(error, ApiError) and error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                self._written(partition)
            else:
                self._refused(partition, delay_ms, error)

        try:
            written = markers.write_marker(
                self._node, *partition, self._marker, self._node.timers.wall_ms
            )
        except ApiError as error:
            refused(error)
        else:
            written.when_done(lambda _: self._written(partition), refused)

    def _write_at(self, leader: NodeId, places: list[TopicPartition], delay_ms: int) -> None:
        """Have another broker write markers, or see to it that they are tried again."""
        request = WriteTxnMarkersRequest(markers=[self._marker.to_message(places)])

        def heard(response: WriteTxnMarkersResponse) -> None:
            codes = markers.codes_in(response)
            for place in places:
                code = codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR)
                if code in (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH):
                    self._written(place)
                else:
                    self._refused(place, delay_ms, ApiError(code))

        def lost(error: Exception) -> None:
            for place in places:
                self._refused(place, delay_ms, error)

        self._node.peers.ask(leader, request, lane=LANE).when_done(heard, lost)

    def _refused(self, partition: TopicPartition, delay_ms: int, error: Exception) -> None:
        """Try again later, with whatever else was refused."""
        if not self._again:
            fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
            deposed = isinstance(error, ApiError) and error.code is fenced
            wait_ms = RETRY_MAX_MS if deposed else delay_ms
            name = f"markers of {self._transaction.transactional_id}"
            self._schedule(name, wait_ms, lambda: self._send_again(wait_ms))
        self._again.append(partition)

    def _send_again(self, waited_ms: int) -> None:
        partitions, self._again = self._again, []
        self._send(partitions, min(2 * waited_ms, RETRY_MAX_MS))

    def _written(self, partition: TopicPartition) -> None:
        self._missing.pop(partition, None)
        self._finish_if_complete()

    def _finish_if_complete(self) -> None:
        if not self._missing and not self._finished:
            self._finished = True
            self._finish()

    def _finish(self) -> None:
        if self._shard.is_closed or self._shard.partition.retired:
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
