"""A member, in the two parts that are stored: its subscription, and its current assignment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from barnabas.groups.consumer.assignors.spec import Slot
from barnabas.model.ids import TopicId

JOINING = 0
"""The epoch with which members join; also that of a static member that has returned."""

LEFT = -1
"""The epoch with which members leave permanently."""

LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that will return; it keeps its partitions for its session."""


class MemberState(IntEnum):
    """How far a member is with its target assignment; see `reconciliation.py`."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127
    """A state that a later release wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A member's subscription and description, from its heartbeats."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    """The topics that it subscribes to by name."""
    regex: str = ""
    """The pattern of further topics that it subscribes to; empty for none."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None

    def subscribes_as(self, other: "Profile") -> bool:
        """Tell whether the subscriptions are the same; other fields may differ."""
        return self.names == other.names and self.regex == other.regex


Held = Mapping[Slot, int]
"""Partitions, each with the member epoch at which it was assigned (KIP-1251)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A member's current assignment: its epoch and its partitions."""

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    """The partitions that it has, or gets with its next response."""
    pending_revocation: Held = field(default_factory=dict)
    """The partitions that it must still revoke: no other member gets them before."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Tell whether the member has reached an assignment epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def held(self) -> Iterator[Slot]:
        """Yield every partition that no other member may have."""
        yield from self.assigned
        yield from self.pending_revocation

    def held_since(self, slot: Slot) -> int | None:
        """Return the epoch since which the member has a partition, if it has it."""
        since = self.assigned.get(slot)
        return self.pending_revocation.get(slot) if since is None else since


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group."""

    member_id: str
    profile: Profile = field(default_factory=Profile)
    standing: Standing = field(default_factory=Standing)

    @property
    def is_here(self) -> bool:
        """Whether it has not left for a while."""
        return self.standing.epoch != LEFT_FOR_A_WHILE

    def away(self) -> "Member":
        """Return a static member in the form in which it is kept while it is away."""
        standing = replace(
            self.standing,
            epoch=LEFT_FOR_A_WHILE,
            assigned=dict.fromkeys(self.standing.assigned, JOINING),
            pending_revocation={},
        )
        return replace(self, standing=standing)

    def returned_as(self, member_id: str) -> "Member":
        """Return a static member that has returned under another id, with its partitions."""
        standing = replace(self.standing, epoch=JOINING, previous_epoch=JOINING)
        return Member(member_id, self.profile, standing)


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression matched when it was last evaluated."""

    topics: frozenset[str]
    resolved_ms: int


Numbers = dict[TopicId, list[int]]


def by_topic(slots: Mapping[Slot, int] | frozenset[Slot]) -> Numbers:
    """Return partitions in order, topic by topic, as they are stored and sent."""
    numbers: Numbers = {}
    for topic_id, number in sorted(slots):
        numbers.setdefault(topic_id, []).append(number)
    return numbers
