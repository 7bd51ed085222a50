"""Checks that no two members of a group own the same partition.

In a classic group a generation's assignment never changes: a partition belongs to one member of a
generation, however late a member receives the assignment. A static member keeps its partitions when
it rejoins with another member id.

In a `consumer` group (KIP-848) partitions move one by one, so ownership is compared at every
moment. A member owns its partitions for one session timeout after it sent its last successful
heartbeat, because the coordinator cannot have expired it before. A member that is cut off for
longer may still consider itself the owner. The coordinator refuses its commits, which the checks of
commits cover.
"""

from barnabas.model.ids import TopicPartition
from barnabas.sim.host import SESSION_MS
from barnabas.sim.world import InvariantError, World


class Ownership:
    """Compares what the members of groups own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._generations: dict[tuple[str, int, TopicPartition], str] = {}
        self._confirmed: dict[tuple[str, str], tuple[set[TopicPartition], int]] = {}

    def assigned(
        self, group: str, generation: int, member: str, partitions: set[TopicPartition]
    ) -> None:
        """Check the assignment that a member of a classic group received."""
        for partition in sorted(partitions):
            key = (group, generation, partition)
            owner = self._generations.setdefault(key, member)
            if owner != member:
                raise InvariantError(
                    f"{owner} and {member} both own {partition} in generation {generation}"
                )

    def confirm_owned(
        self, group: str, member: str, partitions: set[TopicPartition], at_ms: int
    ) -> None:
        """Check the partitions of a `consumer` group's member, confirmed by a heartbeat sent at
        `at_ms`.
        """
        until_ms = at_ms + SESSION_MS
        self._confirmed[group, member] = (partitions, until_ms)
        for partition in sorted(partitions) if self._world.now_ms < until_ms else ():
            other = self.owner(group, partition, but=member)
            if other is not None:
                raise InvariantError(f"{other} and {member} both own {partition} of {group}")

    def forget(self, group: str, member: str) -> None:
        """Record that a member owns nothing any more: it left, died, or was fenced."""
        self._confirmed.pop((group, member), None)

    def owner(self, group: str, partition: TopicPartition, but: str) -> str | None:
        """Return another member that certainly owns a partition."""
        for (of_group, member), (partitions, until_ms) in self._confirmed.items():
            counts = of_group == group and member != but and self._world.now_ms < until_ms
            if counts and partition in partitions:
                return member
        return None
