"""Keeps the log of a share coordinator short: snapshots of cold share partitions, then deletion.

`__share_group_state` is not compacted, since an update does not replace the one before. Every five
minutes each share partition without a snapshot since the round before gets one. After that no
record before the beginning of the round before is needed:

    log    ...|--- round 1 ---|--- round 2 ---|--- round 3
              ^ deleted up to here ...          ^ ... once round 3 has written its snapshots,
                                                  and then up to the beginning of round 2

A round takes a limited number of snapshots in one event. It also deletes the state of topics that
do not exist; they must be missing in two rounds, since the metadata of a broker that has just
begun to coordinate may be older than the records that it reads.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from barnabas.metadata.image import Image
from barnabas.model.coordination import CoordinatorRecord, Outcome, Scheduler
from barnabas.model.errors import ApiError
from barnabas.model.settings import ShareSettings
from barnabas.model.share_state import SharePartitionKey
from barnabas.share import share_records as records
from barnabas.share.share_records import SharePartitionState

ROUND, SLICE = "round", "slice"
SOON_MS = 1
SLICE_BATCHES = 2_000
"""How many runs of offsets the snapshots of one event have together, about."""


class StateLog(Protocol):
    """The partition that stores the state."""

    @property
    def end_offset(self) -> int:
        """Where the next record will be."""

    def delete_before(self, offset: int) -> None:
        """Delete the records below an offset."""


class Tidying:
    """The rounds of one coordinator."""

    def __init__(
        self,
        settings: ShareSettings,
        scheduler: Scheduler,
        image: Callable[[], Image],
        log: StateLog,
        states: Mapping[SharePartitionKey, SharePartitionState],
    ) -> None:
        self._interval_ms = settings.tidy_interval_ms
        self._scheduler = scheduler
        self._image = image
        self._log = log
        self._states = states
        self._fresh: set[SharePartitionKey] = set()
        """The share partitions with a snapshot since the last round began."""
        self._began_at = 0
        """Where the log ended when the last round began."""
        self._tidy_to = -1
        """Where the log ended when the last round was complete."""
        self._missing: set[SharePartitionKey] = set()
        """The share partitions whose topic was missing in the last round."""
        self._cold: deque[SharePartitionKey] = deque()

    def begin(self) -> None:
        """Begin with the first round after an interval."""
        self._fresh.clear()
        self._began_at = self._log.end_offset
        self._scheduler.schedule(ROUND, self._interval_ms, self._round)

    def took_snapshot(self, key: SharePartitionKey) -> None:
        """Record that a share partition has a snapshot."""
        self._fresh.add(key)

    def deleted(self, key: SharePartitionKey) -> None:
        """Record that a share partition is gone."""
        self._fresh.discard(key)

    def _round(self) -> Outcome[None]:
        self._scheduler.schedule(ROUND, self._interval_ms, self._round)
        gone = self._find_gone()
        if gone:
            return Outcome(None, [records.tombstone(key) for key in gone])
        end = self._log.end_offset
        if end == self._tidy_to:
            return Outcome(None)
        needless, self._began_at = self._began_at, end
        self._cold = deque(key for key in self._states if key not in self._fresh)
        self._fresh = set()
        return self._slice(needless)

    def _find_gone(self) -> set[SharePartitionKey]:
        """Return share partitions whose topic is missing for the second time."""
        known = self._image().names
        before, missing = self._missing, {k for k in self._states if k.topic_id not in known}
        self._missing = missing
        return before & missing

    def _slice(self, needless: int) -> Outcome[None]:
        """Take some snapshots; after the last, delete what is below an offset."""
        stored: list[CoordinatorRecord] = []
        left = SLICE_BATCHES
        while self._cold and left > 0:
            key = self._cold.popleft()
            state = self._states.get(key)
            if state is not None and key not in self._fresh:
                left -= 1 + len(state.batches)
                stored.append(self._snapshot(key, state))
        if self._cold:
            self._scheduler.schedule(SLICE, SOON_MS, lambda: self._slice(needless))
            return Outcome(None, stored, refused=self._give_up)
        return Outcome(
            None, stored, committed=lambda: self._complete(needless), refused=self._give_up
        )

    def _snapshot(self, key: SharePartitionKey, state: SharePartitionState) -> CoordinatorRecord:
        now_ms, number = self._scheduler.wall_ms, state.snapshot_epoch + 1
        return records.snapshot_record(
            key, replace(state, snapshot_epoch=number, created_ms=now_ms)
        )

    def _complete(self, needless: int) -> None:
        self._tidy_to = self._log.end_offset
        self._log.delete_before(needless)

    def _give_up(self, _: ApiError) -> None:
        """Delete nothing in this round, as the disk refused a snapshot."""
        self._cold.clear()
        self._scheduler.cancel(SLICE)
