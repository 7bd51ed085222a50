"""A member of a share group, in the two parts that are stored."""

from dataclasses import dataclass, field

from barnabas.groups.consumer.assignors.spec import NO_SLOTS, Slots

JOINING = 0
"""The epoch with which members join."""

LEFT = -1
"""The epoch with which members leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareProfile:
    """A member's subscription and description, from its heartbeats."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    """The topics that it subscribes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStanding:
    """A member's current assignment: its epoch and its partitions."""

    epoch: int = JOINING
    previous_epoch: int = JOINING
    assigned: Slots = NO_SLOTS

    def moved_to(self, epoch: int, slots: Slots) -> "ShareStanding":
        """Return the assignment at an assignment epoch, with the member's target."""
        if epoch == self.epoch:
            return self
        return ShareStanding(epoch=epoch, previous_epoch=self.epoch, assigned=slots)


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member of a group."""

    member_id: str
    profile: ShareProfile = field(default_factory=ShareProfile)
    standing: ShareStanding = field(default_factory=ShareStanding)
