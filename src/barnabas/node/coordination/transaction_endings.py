"""Completes the end of a transaction: writes a marker to each partition, then the Complete record.

The brokers that lead the partitions write the markers. This broker writes its own at once, and
sends one request to each other broker. The outcome is decided and must be carried out, so a marker
that is refused or lost is retried, with growing delays, at the leader that the metadata names then.
Two kinds of partitions need no marker: one that was deleted, and one where the producer has written
with a later epoch, since the transaction cannot be open there.

When the coordinator moves, this stops with its shard. The new coordinator writes all markers again,
with a later coordinator epoch, and partitions refuse markers of the old one after that.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.metadata.image import Image
from barnabas.model.coordination import Outcome
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import NodeId, TopicPartition
from barnabas.model.timers import Timers
from barnabas.node.cluster.broker_ports import BrokerRequests
from barnabas.node.coordination import marker_writing as markers
from barnabas.node.coordination.coordinator_shard import Shard
from barnabas.node.coordination.marker_writing import Marker, MarkerHost
from barnabas.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.transactions.state import Transaction
from barnabas.transactions.transaction_machine import TransactionMachine

LANE = "markers"
"""A lane apart from that of admissions, whose answers need not wait for replicated markers."""
RETRY_MS = 20
RETRY_MAX_MS = 1000
NO_LEADER = -1


class EndingHost(MarkerHost, Protocol):
    """What the end of a transaction needs from the broker."""

    @property
    def node_id(self) -> NodeId:
        """This broker's id."""

    @property
    def image(self) -> Image:
        """The committed metadata."""


class Ending:
    """One transaction between its Prepare and its Complete record."""

    def __init__(
        self,
        host: EndingHost,
        peers: BrokerRequests,
        timers: Timers,
        shard: Shard[TransactionMachine],
        transaction: Transaction,
        done: Callable[[], None],
    ) -> None:
        self._host = host
        self._peers = peers
        self._timers = timers
        self._shard = shard
        self._transaction = transaction
        self._done = done
        self._missing = dict.fromkeys(transaction.partitions)
        self._to_retry: list[TopicPartition] = []
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
        """Have the leaders of partitions write markers."""
        elsewhere: dict[NodeId, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._leader_of(partition)
            if leader is None:
                self._written(partition)
            elif leader == self._host.node_id:
                self._write(partition, delay_ms)
            elif leader == NO_LEADER:
                self._refused(partition, delay_ms, ApiError(ErrorCode.LEADER_NOT_AVAILABLE))
            else:
                elsewhere.setdefault(leader, []).append(partition)
        for leader, places in elsewhere.items():
            self._write_at(leader, places, delay_ms)

    def _leader_of(self, partition: TopicPartition) -> NodeId | None:
        """Return the broker that leads a partition; None for one that was deleted.

        Only the metadata can tell: a local replica may be missing because it moved.
        """
        topic = self._host.image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        return NodeId(topic.partitions[partition.partition].leader)

    def _write(self, partition: TopicPartition, delay_ms: int) -> None:
        """Write one marker, and retry it if it is refused."""

        def refused(error: Exception) -> None:
            if isinstance(error, ApiError) and error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                self._written(partition)
            else:
                self._refused(partition, delay_ms, error)

        try:
            written = markers.write_marker(
                self._host, *partition, self._marker, self._timers.wall_ms
            )
        except ApiError as error:
            refused(error)
        else:
            written.when_done(lambda _: self._written(partition), refused)

    def _write_at(self, leader: NodeId, places: list[TopicPartition], delay_ms: int) -> None:
        """Have another broker write markers, and retry those that are refused or lost."""
        request = WriteTxnMarkersRequest(markers=[self._marker.to_message(places)])

        def received(response: WriteTxnMarkersResponse) -> None:
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

        self._peers.ask(leader, request, lane=LANE).when_done(received, lost)

    def _refused(self, partition: TopicPartition, delay_ms: int, error: Exception) -> None:
        """Retry later, together with other markers that are refused."""
        if not self._to_retry:
            fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
            deposed = isinstance(error, ApiError) and error.code is fenced
            wait_ms = RETRY_MAX_MS if deposed else delay_ms
            name = f"markers of {self._transaction.transactional_id}"
            self._schedule(name, wait_ms, lambda: self._send_again(wait_ms))
        self._to_retry.append(partition)

    def _send_again(self, waited_ms: int) -> None:
        partitions, self._to_retry = self._to_retry, []
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
        """Run an action later, unless the shard is closed before."""

        def operation() -> Outcome[None]:
            action()
            return Outcome(None)

        self._shard.schedule(name, delay_ms, operation)
