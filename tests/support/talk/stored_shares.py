"""The stored state of share partitions in memory; a test decides when a write ends, and how."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending
from barnabas.model.share_state import (
    COMPLETE,
    UNKNOWN_OFFSET,
    DeliveryState,
    SharePartitionKey,
    Shipment,
    StateBatch,
    StateSummary,
    StateUpdate,
    StoredState,
)
from barnabas.node.share.share_partition import overlap


class Write(NamedTuple):
    """A write that has not ended."""

    key: SharePartitionKey
    update: StateUpdate
    answer: Pending[None]


class StoredShares:
    """Implements `ShareStates`."""

    def __init__(self) -> None:
        self.holds_writes = False
        self.held: list[Write] = []
        self.writes = 0
        self.cells: dict[SharePartitionKey, dict[int, tuple[DeliveryState, int]]] = {}
        self.starts: dict[SharePartitionKey, int] = {}
        self.shipments: dict[SharePartitionKey, Shipment] = {}
        self.read_error: ErrorCode | None = None

    def initialize(
        self, group_id: str, topic_id: TopicId, starts: Mapping[int, int], state_epoch: int
    ) -> Pending[Mapping[int, ErrorCode]]:
        del state_epoch
        for partition, start in starts.items():
            self.starts[SharePartitionKey(group_id, topic_id, partition)] = start
        return Pending.of(dict.fromkeys(starts, ErrorCode.NONE))

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Pending[StoredState]:
        del leader_epoch
        answer: Pending[StoredState] = Pending()
        if self.read_error is not None:
            answer.fail(ApiError(self.read_error))
            return answer
        cells = self.cells.get(key, {})
        batches = [StateBatch(o, o, *cell) for o, cell in sorted(cells.items())]
        start = self.starts.get(key, UNKNOWN_OFFSET)
        answer.complete(StoredState(0, start, batches, self.shipments.get(key)))
        return answer

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        self.writes += 1
        write = Write(key, update, Pending())
        self.held.append(write)
        if not self.holds_writes:
            self.end_write()
        return write.answer

    def end_write(self, error: ErrorCode | None = None) -> None:
        """End the oldest write."""
        key, update, answer = self.held.pop(0)
        assert not overlap(update.batches, ()), "the share coordinator refuses runs that overlap"
        if error is not None:
            answer.fail(ApiError(error))
            return
        if update.start_offset >= 0:
            self.starts[key] = update.start_offset
        if update.shipment is not None:
            self.shipments[key] = update.shipment
        cells = self.cells.setdefault(key, {})
        for batch in update.batches:
            for offset in range(batch.first, batch.last + 1):
                cells[offset] = batch.state, batch.deliveries
        for offset in [each for each in cells if each < update.start_offset]:
            del cells[offset]
        answer.complete(None)

    def delete(
        self, group_id: str, topic_id: TopicId, partitions: Sequence[int]
    ) -> Pending[Mapping[int, ErrorCode]]:
        for partition in partitions:
            key = SharePartitionKey(group_id, topic_id, partition)
            self.starts.pop(key, None)
            self.cells.pop(key, None)
        return Pending.of(dict.fromkeys(partitions, ErrorCode.NONE))

    def summarize(
        self, group_id: str, topic_id: TopicId, partitions: Mapping[int, int]
    ) -> Pending[Mapping[int, StateSummary | ErrorCode]]:
        found: dict[int, StateSummary | ErrorCode] = {}
        for partition, leader_epoch in partitions.items():
            key = SharePartitionKey(group_id, topic_id, partition)
            cells = self.cells.get(key, {})
            complete = sum(state in COMPLETE for state, _ in cells.values())
            start = self.starts.get(key, UNKNOWN_OFFSET)
            found[partition] = StateSummary(0, leader_epoch, start, complete)
        return Pending.of(found)
