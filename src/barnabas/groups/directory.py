"""The groups of one coordinator, and the interface that groups of every protocol have."""

from collections.abc import Collection
from enum import StrEnum
from typing import Protocol

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.ids import TopicPartition


class GroupType(StrEnum):
    """The protocols, by the names that clients know."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


class Group(Protocol):
    """One group."""

    group_id: str

    @property
    def type(self) -> GroupType:
        """The protocol its members speak."""

    @property
    def state(self) -> str:
        """The state, by the name that clients get: Empty, Stable, PreparingRebalance, ..."""

    @property
    def protocol_type(self) -> str:
        """The protocol type of the members, mostly "consumer"."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member left, in wall-clock time; None if there are members, or unknown."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        """Raise the `ApiError` with which a commit is refused; the epoch is the generation."""

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        """Tell whether a member may commit these with an earlier epoch (KIP-1251)."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise the `ApiError` with which a fetch of offsets is refused (KIP-848)."""

    def touch(self, member_id: str) -> None:
        """Act on a member's commit, which counts as a heartbeat in a classic group."""

    def subscribes_to(self, topic: str) -> bool:
        """Tell whether members may read a topic, so that its offsets must stay."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group, without its offsets."""


Directory = dict[str, Group]
"""Groups by id."""
