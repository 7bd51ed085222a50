"""What is known of one share partition, and the records that say so, in Kafka's format.

A ShareSnapshot has the whole state of a share partition. The ShareUpdates after it have what
changed, and apply on top of it. A ShareSnapshot without a value deletes the share partition.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.errors import CorruptBatchError
from barnabas.model.ids import TopicId
from barnabas.model.share_state import (
    UNKNOWN_COUNT,
    UNKNOWN_OFFSET,
    DeliveryState,
    SharePartitionKey,
    Shipment,
    StateBatch,
    StateUpdate,
)
from barnabas.protocol.coordinator_codec import encode
from barnabas.protocol.coordinator_records import share_snapshot, share_update
from barnabas.protocol.coordinator_records.share_snapshot import (
    ShareSnapshotKey,
    ShareSnapshotValue,
)
from barnabas.protocol.coordinator_records.share_update import ShareUpdateKey, ShareUpdateValue
from barnabas.share import shipments
from barnabas.share.shipments import ShipmentMessage
from barnabas.share.state_batches import merge, merged

B = TypeVar("B", share_snapshot.StateBatch, share_update.StateBatch)

UNCHANGED = -1
"""An epoch or an offset in a request or an update that leaves the stored one as it is."""


@dataclass(slots=True)
class SharePartitionState:
    """The state of one share partition; only the replay of a record changes it."""

    snapshot_epoch: int
    """How many snapshots were written before."""
    state_epoch: int
    leader_epoch: int
    """The epoch of the last leader of the partition that read or wrote the state."""
    start_offset: int = UNKNOWN_OFFSET
    complete_count: int = UNKNOWN_COUNT
    created_ms: int = 0
    written_ms: int = 0
    batches: list[StateBatch] = field(default_factory=list)
    updates: int = 0
    """How many updates were written since the last snapshot."""
    shipment: Shipment | None = None
    """The last batch for the dead-letter topic."""

    def update(self, value: ShareUpdateValue) -> None:
        """Apply a ShareUpdate; raise if it is invalid."""
        batches = batches_of(value.state_batches)
        self.shipment = _shipment_of(value.shipment) or self.shipment
        if value.start_offset != UNCHANGED:
            self.start_offset = value.start_offset
        if value.leader_epoch != UNCHANGED:
            self.leader_epoch = value.leader_epoch
        self.complete_count = value.delivery_complete_count
        self.updates += 1
        merge(self.batches, batches, self.start_offset)


def initialized(
    before: SharePartitionState | None, state_epoch: int, start_offset: int, now_ms: int
) -> SharePartitionState:
    """Return the state of a share partition that begins anew.

    The leader epoch stays, so that earlier leaders remain fenced.
    """
    is_known = start_offset != UNKNOWN_OFFSET
    return SharePartitionState(
        snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
        state_epoch=state_epoch if before is None else max(before.state_epoch, state_epoch),
        leader_epoch=0 if before is None else before.leader_epoch,
        start_offset=start_offset,
        complete_count=0 if is_known else UNKNOWN_COUNT,
        created_ms=now_ms,
        written_ms=now_ms,
    )


def updated(before: SharePartitionState, update: StateUpdate, now_ms: int) -> SharePartitionState:
    """Return a copy of a state with a change, as the next snapshot has it."""
    stays = update.start_offset == UNCHANGED
    start_offset = before.start_offset if stays else update.start_offset
    keeps_leader = update.leader_epoch == UNCHANGED
    return SharePartitionState(
        snapshot_epoch=before.snapshot_epoch + 1,
        state_epoch=before.state_epoch,
        leader_epoch=before.leader_epoch if keeps_leader else update.leader_epoch,
        start_offset=start_offset,
        complete_count=update.complete_count,
        created_ms=now_ms,
        written_ms=now_ms,
        batches=merged(before.batches, update.batches, start_offset),
        shipment=update.shipment or before.shipment,
    )


def snapshot_record(key: SharePartitionKey, state: SharePartitionState) -> CoordinatorRecord:
    """Return the record with the whole state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=[_stored(share_snapshot.StateBatch, each) for each in state.batches],
        shipment=shipments.as_message(
            share_snapshot.Shipment, share_snapshot.ShipmentRun, state.shipment
        ),
    )
    return encode(_snapshot_key(key), value)


def update_record(
    key: SharePartitionKey, before: SharePartitionState, update: StateUpdate
) -> CoordinatorRecord:
    """Return the record with a change of a state."""
    keeps_leader = update.leader_epoch == UNCHANGED
    value = ShareUpdateValue(
        snapshot_epoch=before.snapshot_epoch,
        leader_epoch=before.leader_epoch if keeps_leader else update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.complete_count,
        state_batches=[_stored(share_update.StateBatch, each) for each in update.batches],
        shipment=shipments.as_message(
            share_update.Shipment, share_update.ShipmentRun, update.shipment
        ),
    )
    group_id, topic_id, partition = key
    return encode(ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition), value)


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Return the record that deletes a share partition."""
    return encode(_snapshot_key(key), None)


def key_of(stored: ShareSnapshotKey | ShareUpdateKey) -> SharePartitionKey:
    """Return the share partition that a record is about."""
    return SharePartitionKey(stored.group_id, TopicId(bytes(stored.topic_id)), stored.partition)


def from_snapshot(value: ShareSnapshotValue) -> SharePartitionState:
    """Read what `snapshot_record` writes; raise if it is invalid."""
    state = SharePartitionState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        complete_count=value.delivery_complete_count,
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
        shipment=_shipment_of(value.shipment),
    )
    merge(state.batches, batches_of(value.state_batches), value.start_offset)
    return state


def batches_of(
    stored: Iterable[share_snapshot.StateBatch | share_update.StateBatch],
) -> list[StateBatch]:
    """Read runs of offsets; raise if they are invalid."""
    try:
        return [
            StateBatch(
                each.first_offset,
                each.last_offset,
                DeliveryState(each.delivery_state),
                each.delivery_count,
            )
            for each in stored
        ]
    except ValueError as error:
        raise CorruptBatchError(f"a share partition has {error}") from error


def _shipment_of(stored: ShipmentMessage) -> Shipment | None:
    try:
        return shipments.from_message(stored)
    except ValueError as error:
        raise CorruptBatchError(str(error)) from error


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    group_id, topic_id, partition = key
    return ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)


def _stored(cls: type[B], batch: StateBatch) -> B:
    return cls(
        first_offset=batch.first,
        last_offset=batch.last,
        delivery_state=int(batch.state),
        delivery_count=batch.deliveries,
    )
