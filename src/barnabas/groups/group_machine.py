"""Every group of one partition of `__consumer_offsets`: the coordinator's state machine.

Requests come in as operations (see `model/coordination.py`). Each protocol keeps its own rules;
this machine passes records to them, and answers requests that concern any group.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

from barnabas.groups.classic.classic_protocol import ClassicProtocol
from barnabas.groups.consumer.consumer_protocol import ConsumerProtocol
from barnabas.groups.directory import Directory
from barnabas.groups.group_counts import GroupCounts
from barnabas.groups.offset_records import OffsetRecord
from barnabas.groups.offsets import Offsets
from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.share_protocol import ShareProtocol
from barnabas.groups.share.share_replaying import is_of_share_group
from barnabas.groups.simple import SimpleGroup
from barnabas.metadata.features import SHARE_LEVEL
from barnabas.metadata.image import Image
from barnabas.model.coordination import (
    CoordinatorRecord,
    Outcome,
    ProducerIdAndEpoch,
    Scheduler,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import GroupSettings, ShareSettings
from barnabas.model.share_state import ShareStates
from barnabas.protocol.coordinator_codec import decode_group_record
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.protocol.coordinator_records.offset_commit import OffsetCommitKey
from barnabas.protocol.messages.list_groups import ListedGroup


class GroupSharing(NamedTuple):
    """What share groups need."""

    settings: ShareSettings
    states: ShareStates
    """Reaches the share coordinators."""


class GroupMachine:
    """The groups of one coordinator."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        image: Callable[[], Image],
        rng: Random,
        counts: GroupCounts | None = None,
        sharing: GroupSharing | None = None,
    ) -> None:
        counts = counts or GroupCounts()
        self._image = image
        self.groups: Directory = {}
        self.offsets = Offsets(settings, scheduler, self.groups, image)
        self.classic = ClassicProtocol(settings, scheduler, self.groups, rng, counts)
        self.consumer = ConsumerProtocol(settings, scheduler, self.groups, image, rng, counts)
        self._share: ShareProtocol | None = None
        if sharing is not None:
            self._share = ShareProtocol(
                sharing.settings, scheduler, self.groups, image, counts, sharing.states
            )

    @property
    def share(self) -> ShareProtocol:
        """The share groups; raises UNSUPPORTED_VERSION if they are not served."""
        if self._share is None or self._image().feature_level < SHARE_LEVEL:
            problem = "share groups need a higher feature level; run `barnabas cluster upgrade`"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, problem)
        return self._share

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Replay a record."""
        if isinstance(record, OffsetRecord):
            self.offsets.replay_written(record, producer)
            return
        stored = decode_group_record(record)
        if stored is None:
            return
        if isinstance(stored.key, OffsetCommitKey):
            self.offsets.replay(stored, producer)
        elif isinstance(stored.key, GroupMetadataKey):
            if stored.value is None:
                self._end_simple(stored.key.group)
            self.classic.replay(stored)
        elif is_of_share_group(stored):
            if self._share is not None:
                self._share.replay(stored)
        else:
            self.consumer.replay(stored)

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Apply a transaction's offsets, or discard them."""
        self.offsets.replay_marker(producer, committed=committed)

    def loaded(self) -> None:
        """Start the timers of members and offsets."""
        self.classic.loaded()
        self.consumer.loaded()
        self.offsets.loaded()
        if self._share is not None:
            self._share.loaded()

    def topics_changed(self, deleted: Sequence[str]) -> Outcome[None]:
        """Act on changed topics: forget deleted ones."""
        self.consumer.topics_changed()
        records = self.offsets.forget_topics(deleted)
        if self._share is not None:
            records += self._share.topics_changed(deleted)
        return Outcome(None, records)

    def list_groups(
        self, states: Iterable[str], types: Iterable[str]
    ) -> Outcome[list[ListedGroup]]:
        """Return the groups in any of these states and of any of these types; empty passes all."""
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return Outcome(
            [
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state,
                    group_type=group.type,
                )
                for group in self.groups.values()
                if (not wanted_states or group.state.lower() in wanted_states)
                and (not wanted_types or group.type in wanted_types)
            ]
        )

    def delete_group(self, group_id: str) -> Outcome[ErrorCode]:
        """Delete a group that has no members, and its offsets or its delivery state."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, ShareGroup):
            return self.share.deleting.delete_group(group)
        if not group.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        records = self.offsets.tombstones_of(group_id) + group.tombstones()
        return Outcome(ErrorCode.NONE, records)

    def _end_simple(self, group_id: str) -> None:
        if isinstance(self.groups.get(group_id), SimpleGroup):
            del self.groups[group_id]
