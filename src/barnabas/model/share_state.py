"""The stored delivery state of share partitions, and the port through which brokers reach it.

A share partition is a partition as one share group sees it. Which of its records were acknowledged,
and how often the others were delivered, is state of the share coordinator
(`__share_group_state`). The leader of the partition reads it under its leader epoch, which fences
earlier leaders, and writes what changes. The group coordinator initializes and deletes it.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

from barnabas.model.errors import ErrorCode
from barnabas.model.ids import TopicId
from barnabas.model.pending import Pending

UNKNOWN_OFFSET = -1
"""The start offset of a share partition from which nothing was delivered yet: the group's config
`share.auto.offset.reset` decides."""
UNKNOWN_COUNT = -1
TOPIC_ID_BYTES = 16


class DeliveryState(IntEnum):
    """What became of a record, as Kafka numbers it; ACQUIRED is never stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """It is not delivered again, and its dead letter is not written yet (KIP-1191)."""
    ARCHIVED = 4


COMPLETE = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
"""The states after which nothing is left to do for a record."""


class SharePartitionKey(NamedTuple):
    """A partition and a share group."""

    group_id: str
    topic_id: TopicId
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key by which FindCoordinator looks up the share coordinator."""
        return _coordinator_key(self)

    @classmethod
    def parse(cls, text: str) -> "SharePartitionKey | None":
        """Return the share partition with a coordinator key; None if the key is invalid."""
        rest, _, number = text.rpartition(":")
        group_id, _, topic = rest.rpartition(":")
        try:
            topic_id = urlsafe_b64decode(topic + "==")
        except ValueError:
            return None
        is_number = re.fullmatch("-?[0-9]{1,10}", number)
        if not group_id.strip() or len(topic_id) != TOPIC_ID_BYTES or not is_number:
            return None
        return cls(group_id, TopicId(topic_id), int(number))


@lru_cache(maxsize=10_000)
def _coordinator_key(key: SharePartitionKey) -> str:
    topic = urlsafe_b64encode(key.topic_id).decode().rstrip("=")
    return f"{key.group_id}:{topic}:{key.partition}"


class StateBatch(NamedTuple):
    """A run of offsets in the same state."""

    first: int
    last: int
    state: DeliveryState
    deliveries: int
    """How often they were delivered."""


class Shipment(NamedTuple):
    """Records that are on their way to a dead-letter topic, as one batch.

    It is stored before it is sent, so that a later leader can send the same batch: the partition of
    the dead-letter topic then recognizes it by producer and sequence.
    """

    topic_id: TopicId
    partition: int
    """Of the dead-letter topic."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    runs: tuple[tuple[int, int], ...]
    """The first and last offsets of its records; each offset is one record of the batch."""

    @property
    def record_count(self) -> int:
        """How many records it has."""
        return sum(last - first + 1 for first, last in self.runs)


class StoredState(NamedTuple):
    """The state of a share partition, as far as it is stored."""

    state_epoch: int
    """Grows when the state is initialized anew."""
    start_offset: int
    batches: Sequence[StateBatch]
    """Sorted and without overlaps; offsets in between are available and were never delivered."""
    shipment: Shipment | None = None
    """The last records that were sent to the dead-letter topic, or were about to be."""


class StateSummary(NamedTuple):
    """What lag is computed from."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    """How many offsets from the start offset on are acknowledged or archived; -1 if unknown."""


class StateUpdate(NamedTuple):
    """A change of the state of a share partition."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """The new start offset; -1 if it stays."""
    complete_count: int
    batches: Sequence[StateBatch]
    """Only what changed."""
    shipment: Shipment | None = None
    """The next records for the dead-letter topic; None if that stays."""


class ShareStates(Protocol):
    """Reaches the share coordinators, on this broker or others.

    An answer fails with the `ApiError` for the client: FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH
    where a newer leader or a newer state exists, COORDINATOR_NOT_AVAILABLE where no coordinator
    answered in time. After the latter the request may or may not have been carried out.
    """

    def initialize(
        self, group_id: str, topic_id: TopicId, starts: Mapping[int, int], state_epoch: int
    ) -> Pending[Mapping[int, ErrorCode]]:
        """Initialize partitions of a topic with their start offsets; answer with error codes."""

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Pending[StoredState]:
        """Return the stored state, and fence earlier leaders."""

    def write(self, key: SharePartitionKey, update: StateUpdate) -> Pending[None]:
        """Store a change."""

    def delete(
        self, group_id: str, topic_id: TopicId, partitions: Sequence[int]
    ) -> Pending[Mapping[int, ErrorCode]]:
        """Delete the state of partitions of a topic; answer with error codes."""

    def summarize(
        self, group_id: str, topic_id: TopicId, partitions: Mapping[int, int]
    ) -> Pending[Mapping[int, StateSummary | ErrorCode]]:
        """Return summaries; the mapping has the leader epoch that is known for each partition."""
