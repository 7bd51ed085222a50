"""Checks that no two members of a group own the same partition.

In a classic group a generation's assignment never changes: a partition belongs to one member of a
generation, whenever and however late anybody hears of it. A static member is the same one under
whichever member id it came back.

In a `consumer` group (KIP-848) partitions move one by one, so belief is compared at every moment.
A belief counts as long as the coordinator cannot have expired the member: for a session timeout
from when the last heartbeat was sent that was answered well. A member that is cut off for longer
may go on believing; its commits are refused, and that is checked where commits are.
"""

from barnabas.model.ids import TopicPartition
from barnabas.sim.host import SESSION_MS
from barnabas.sim.world import InvariantError, World


class Ownership:
    """Compares beliefs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._generations: dict[tuple[str, int, TopicPartition], str] = {}
        self._beliefs: dict[tuple[str, str], tuple[set[TopicPartition], int]] = {}

    def assigned(
        self, group: str, generation: int, member: str, partitions: set[TopicPartition]
    ) -> None:
        """Hear what a member of a classic group was told."""
        for partition in sorted(partitions):
            key = (group, generation, partition)
            owner = self._generations.setdefault(key, member)
            if owner != member:
                raise InvariantError(
                    f"{owner} and {member} both own {partition} in generation {generation}"
                )

    def believe(self, group: str, member: str, partitions: set[TopicPartition], at_ms: int) -> None:
        """Hear what a member of a `consumer` group takes for its own, confirmed at a time."""
        until_ms = at_ms + SESSION_MS
        self._beliefs[group, member] = (partitions, until_ms)
        for partition in sorted(partitions) if self._world.now_ms < until_ms else ():
            other = self.owner(group, partition, but=member)
            if other is not None:
                raise InvariantError(f"{other} and {member} both own {partition} of {group}")

    def forget(self, group: str, member: str) -> None:
        """Hear that a member owns nothing any more: it left, died, or was told."""
        self._beliefs.pop((group, member), None)

    def owner(self, group: str, partition: TopicPartition, but: str) -> str | None:
        """Return somebody else who owns a partition for certain."""
        for (of_group, member), (partitions, until_ms) in self._beliefs.items():
            counts = of_group == group and member != but and self._world.now_ms < until_ms
            if counts and partition in partitions:
                return member
        return None
