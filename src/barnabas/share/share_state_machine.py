"""Every share partition of one partition of `__share_group_state`: the share coordinator.

Requests come in as operations on several share partitions at once (see `model/coordination.py`), so
that all changes of one turn are one batch. Each share partition succeeds or fails by itself.

Two epochs fence writers. The leader epoch is that of the partition: a broker that begins to lead
it reads the state with its epoch, and from then on earlier leaders cannot write. The state epoch
grows when an operator sets other offsets, which makes the state begin anew; a leader that does not
know of it yet cannot write either.

A share partition has a snapshot and updates after it. `share_state_tidying.py` keeps the log short.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from barnabas.metadata.image import Image
from barnabas.model.coordination import (
    CoordinatorRecord,
    Outcome,
    ProducerIdAndEpoch,
    Scheduler,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import (
    COMPLETE,
    UNKNOWN_COUNT,
    UNKNOWN_OFFSET,
    DeliveryState,
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StateUpdate,
    StoredState,
)
from barnabas.protocol.coordinator_codec import decode_share_record
from barnabas.protocol.coordinator_records.share_snapshot import (
    ShareSnapshotKey,
    ShareSnapshotValue,
)
from barnabas.protocol.coordinator_records.share_update import ShareUpdateKey, ShareUpdateValue
from barnabas.share import share_records as records
from barnabas.share.share_records import UNCHANGED, SharePartitionState
from barnabas.share.share_state_tidying import StateLog, Tidying
from barnabas.share.state_batches import without_older

Q = TypeVar("Q")
R = TypeVar("R")

Results = dict[SharePartitionKey, R | ApiError]
Change = tuple[R, CoordinatorRecord | None]
"""An answer, and the record that stores what it promises, if anything changes."""

NO_STATE = StateSummary(0, 0, UNKNOWN_OFFSET, UNKNOWN_COUNT)
STORED_STATES = (DeliveryState.AVAILABLE, DeliveryState.ARCHIVING, *COMPLETE)


class ShareStateMachine:
    """The share partitions of one coordinator."""

    def __init__(
        self,
        settings: ShareSettings,
        scheduler: Scheduler,
        image: Callable[[], Image],
        log: StateLog,
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._image = image
        self._states: dict[SharePartitionKey, SharePartitionState] = {}
        self._tidying = Tidying(settings, scheduler, image, log, self._states)

    @property
    def keys(self) -> Iterator[SharePartitionKey]:
        """All share partitions that have state here."""
        yield from self._states

    def state_of(self, key: SharePartitionKey) -> SharePartitionState | None:
        """Return the state of a share partition, which the caller must not change."""
        return self._states.get(key)

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Apply a record."""
        stored = decode_share_record(record)
        if stored is None:
            return
        if isinstance(stored.key, ShareUpdateKey):
            assert stored.value is None or isinstance(stored.value, ShareUpdateValue)
            self._replay_update(records.key_of(stored.key), stored.value)
        else:
            assert isinstance(stored.key, ShareSnapshotKey)
            assert stored.value is None or isinstance(stored.value, ShareSnapshotValue)
            self._replay_snapshot(records.key_of(stored.key), stored.value)

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Do nothing: no producer writes to this topic in a transaction."""

    def loaded(self) -> None:
        """Keep the log short from now on."""
        self._tidying.begin()

    def initialize(
        self, starts: Mapping[SharePartitionKey, tuple[int, int]]
    ) -> Outcome[Results[None]]:
        """Let share partitions begin anew, each with a state epoch and a start offset."""

        def change(key: SharePartitionKey, wanted: tuple[int, int]) -> Change[None]:
            state_epoch, start_offset = wanted
            before = self._states.get(key)
            if start_offset < UNKNOWN_OFFSET:
                raise _invalid(f"{start_offset} is no start offset")
            if before is not None:
                _check_state_epoch(before, state_epoch)
            self._check_topic(key)
            now_ms = self._scheduler.wall_ms
            state = records.initialized(before, state_epoch, start_offset, now_ms)
            return None, records.snapshot_record(key, state)

        return _outcome(starts, change)

    def read(self, epochs: Mapping[SharePartitionKey, int]) -> Outcome[Results[StoredState]]:
        """Return states to leaders with these epochs; fence the leaders before them."""

        def change(key: SharePartitionKey, leader_epoch: int) -> Change[StoredState]:
            state = self._known(key)
            if leader_epoch < state.leader_epoch:
                raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
            self._check_topic(key)
            found = StoredState(
                state.state_epoch, state.start_offset, tuple(state.batches), state.shipment
            )
            if leader_epoch == state.leader_epoch:
                return found, None
            fence = StateUpdate(
                UNCHANGED, leader_epoch, state.start_offset, state.complete_count, ()
            )
            return found, self._record(key, state, fence)

        return _outcome(epochs, change)

    def write(self, updates: Mapping[SharePartitionKey, StateUpdate]) -> Outcome[Results[None]]:
        """Store what changed."""

        def change(key: SharePartitionKey, update: StateUpdate) -> Change[None]:
            state = self._known(key)
            if UNCHANGED != update.leader_epoch < state.leader_epoch:
                raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
            _check_state_epoch(state, update.state_epoch)
            self._check_topic(key)
            _check_batches(update.batches)
            return None, self._record(key, state, _without_older(state, update))

        return _outcome(updates, change)

    def delete(self, keys: Iterable[SharePartitionKey]) -> Outcome[Results[None]]:
        """Delete the state of share partitions; those without state need no record."""

        def change(key: SharePartitionKey, _: None) -> Change[None]:
            self._check_topic(key)
            return None, records.tombstone(key) if key in self._states else None

        return _outcome(dict.fromkeys(keys), change)

    def summarize(self, keys: Iterable[SharePartitionKey]) -> Outcome[Results[StateSummary]]:
        """Return what lag is computed from; a share partition without state begins anywhere."""

        def change(key: SharePartitionKey, _: None) -> Change[StateSummary]:
            self._check_topic(key)
            state = self._states.get(key)
            if state is None:
                return NO_STATE, None
            epochs = state.state_epoch, state.leader_epoch
            return StateSummary(*epochs, state.start_offset, state.complete_count), None

        return _outcome(dict.fromkeys(keys), change)

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue | None) -> None:
        """Apply a change. One whose snapshot was deleted from the log has a later snapshot."""
        state = self._states.get(key)
        if state is not None and value is not None:
            state.update(value)

    def _replay_snapshot(self, key: SharePartitionKey, value: ShareSnapshotValue | None) -> None:
        if value is None:
            self._states.pop(key, None)
            self._tidying.deleted(key)
        else:
            self._states[key] = records.from_snapshot(value)
            self._tidying.took_snapshot(key)

    def _record(
        self, key: SharePartitionKey, state: SharePartitionState, update: StateUpdate
    ) -> CoordinatorRecord:
        """Return an update, or a snapshot once there are many updates."""
        if state.updates < self._settings.updates_per_snapshot:
            return records.update_record(key, state, update)
        after = records.updated(state, update, self._scheduler.wall_ms)
        return records.snapshot_record(key, after)

    def _known(self, key: SharePartitionKey) -> SharePartitionState:
        state = self._states.get(key)
        if state is None:
            raise _invalid(f"share partition {key.coordinator_key} is not initialized")
        return state

    def _check_topic(self, key: SharePartitionKey) -> None:
        topic = self._image().topic_by_id(key.topic_id)
        if key.partition < 0:
            raise _invalid(f"there is no partition {key.partition}")
        if topic is None or key.partition >= len(topic.partitions):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _outcome(
    items: Mapping[SharePartitionKey, Q],
    change: Callable[[SharePartitionKey, Q], Change[R]],
) -> Outcome[Results[R]]:
    """Return the answer and the record for each share partition; refusals are answers too."""
    results: Results[R] = {}
    stored = []
    for key, item in items.items():
        try:
            results[key], record = change(key, item)
        except ApiError as error:
            results[key] = error
        else:
            if record is not None:
                stored.append(record)
    return Outcome(results, stored)


def _without_older(state: SharePartitionState, update: StateUpdate) -> StateUpdate:
    """Return what a write changes if it was sent again, and the first one arrives only now.

    A later write may have come in between: neither the start offset nor a count goes back.
    """
    batches = without_older(state.batches, update.batches)
    if update.start_offset == UNCHANGED or update.start_offset >= state.start_offset:
        return update._replace(batches=batches)
    return update._replace(
        start_offset=UNCHANGED, complete_count=state.complete_count, batches=batches
    )


def _check_state_epoch(state: SharePartitionState, state_epoch: int) -> None:
    if state_epoch != UNCHANGED and state_epoch < state.state_epoch:
        raise ApiError(ErrorCode.FENCED_STATE_EPOCH)


def _check_batches(batches: Iterable[StateBatch]) -> None:
    """Refuse runs that no leader would write, since all later leaders would get them."""
    listed = sorted(batches)
    for batch in listed:
        if not 0 <= batch.first <= batch.last or batch.deliveries < 0:
            raise _invalid(f"{batch} is no run of offsets")
        if batch.state not in STORED_STATES:
            raise _invalid(f"state {batch.state} is never stored")
    for one, other in pairwise(listed):
        if other.first <= one.last:
            raise _invalid(f"{one} and {other} overlap")


def _invalid(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)
