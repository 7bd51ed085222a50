"""Every group of one partition of `__consumer_offsets`: the coordinator's state machine.

Requests come in as operations (see `model/coordination.py`). Each protocol keeps its own rules;
here they meet: records find whom they concern, and what concerns any group is answered.
"""

from collections.abc import Callable, Sequence
from random import Random

from barnabas.groups.classic.protocol import ClassicProtocol
from barnabas.groups.consumer.protocol import ConsumerProtocol
from barnabas.groups.directory import Directory
from barnabas.groups.offsets import Offsets
from barnabas.metadata.image import Image
from barnabas.model.coordination import (
    CoordinatorRecord,
    Outcome,
    ProducerIdAndEpoch,
    Scheduler,
)
from barnabas.model.settings import GroupSettings
from barnabas.protocol.coordinator_codec import decode_group_record
from barnabas.protocol.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.protocol.coordinator_records.offset_commit import OffsetCommitKey


class GroupMachine:
    """The groups of one coordinator."""

    def __init__(
        self,
        settings: GroupSettings,
        scheduler: Scheduler,
        image: Callable[[], Image],
        rng: Random,
    ) -> None:
        self.groups: Directory = {}
        self.offsets = Offsets(settings, scheduler, self.groups, image)
        self.classic = ClassicProtocol(settings, scheduler, self.groups, rng)
        self.consumer = ConsumerProtocol(settings, scheduler, self.groups, image, rng)

    def replay(self, record: CoordinatorRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Take in a record."""
        stored = decode_group_record(record)
        if stored is None:
            return
        if isinstance(stored.key, OffsetCommitKey):
            self.offsets.replay(stored, producer)
        elif isinstance(stored.key, GroupMetadataKey):
            self.classic.replay(stored)
        else:
            self.consumer.replay(stored)

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Make a transaction's offsets count, or forget them."""
        self.offsets.replay_marker(producer, committed=committed)

    def loaded(self) -> None:
        """Watch members and offsets from here on."""
        self.classic.loaded()
        self.consumer.loaded()
        self.offsets.loaded()

    def topics_changed(self, deleted: Sequence[str]) -> Outcome[None]:
        """Hear that topics came, grew or went: offsets of those deleted go as well."""
        self.consumer.topics_changed()
        return Outcome(None, self.offsets.forget_topics(deleted))
