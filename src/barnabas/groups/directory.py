"""The groups of one coordinator, and what every group can be asked whatever its protocol."""

from collections.abc import Collection
from enum import StrEnum
from typing import Protocol

from barnabas.model.coordination import CoordinatorRecord
from barnabas.model.ids import TopicPartition


class GroupType(StrEnum):
    """The protocols, by the names that clients know."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    """One group."""

    group_id: str

    @property
    def type(self) -> GroupType:
        """The protocol its members speak."""

    @property
    def state(self) -> str:
        """The state as clients read it: Empty, Stable, PreparingRebalance, ..."""

    @property
    def protocol_type(self) -> str:
        """What the members are: mostly "consumer"."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member left, by the calendar; None while there are some, or unknown."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> None:
        """Raise the `ApiError` with which a commit is refused; the epoch is the generation."""

    def may_commit_late(
        self, member_id: str, epoch: int, partitions: Collection[TopicPartition]
    ) -> bool:
        """Tell whether a member may commit these under an epoch that is over (KIP-1251)."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise the `ApiError` with which a look at the offsets is refused (KIP-848)."""

    def touch(self, member_id: str) -> None:
        """Hear from a member in passing: a commit counts as a heartbeat where heartbeats count."""

    def subscribes_to(self, topic: str) -> bool:
        """Tell whether members read a topic, as far as is known: its offsets must stay then."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that end the group, its offsets apart."""


Directory = dict[str, Group]
"""Groups by id."""
