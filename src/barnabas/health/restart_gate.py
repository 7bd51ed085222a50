"""Whether the cluster goes on while one broker restarts: the question of a rolling restart."""

from collections.abc import Collection, Iterator, Sequence

from barnabas.health.cluster_facts import Place, Quorum
from barnabas.model.phrases import plural

SHOWN = 3
NO_CONTROLLER = "the controller does not say which voters are in contact"


class RestartSafety:
    """What one broker leaves behind while it is away."""

    def __init__(self, me: int) -> None:
        self._me = me
        self._alone: list[Place] = []
        self._offline: list[Place] = []
        self._refusing: list[Place] = []

    def add(
        self, place: Place, replicas: Sequence[int], active_isr: Collection[int], min_isr: int
    ) -> None:
        """Look at a partition; of its in-sync replicas, those whose broker is active."""
        if self._me not in active_isr:
            return
        left = len(active_isr) - 1
        if len(replicas) == 1:
            self._alone.append(place)
        elif not left:
            self._offline.append(place)
        elif left < min(min_isr, len(replicas)):
            self._refusing.append(place)

    def reasons(self, quorum: Quorum | None) -> list[str]:
        """Return why the broker should not be stopped now; an empty list if it may."""
        return [*self._of_partitions(), *self._of_voters(quorum)]

    def _of_partitions(self) -> Iterator[str]:
        if self._alone:
            yield f"{_named(self._alone)} with no other replica"
        if self._offline:
            yield f"{_named(self._offline)} with no other replica in sync"
        if self._refusing:
            yield (
                f"{_named(self._refusing)} that would reject acks=all: too few other replicas are "
                "in sync"
            )

    def _of_voters(self, quorum: Quorum | None) -> Iterator[str]:
        if quorum is None or quorum.leader is None:
            yield NO_CONTROLLER
            return
        votes = quorum.votes
        if self._me not in votes.voters:
            return
        if len(votes.voters) == 1:
            yield "this broker is the only voter: without it no metadata can change"
            return
        left, needed = len(set(votes.caught_up) - {self._me}), len(votes.voters) // 2 + 1
        if left < needed:
            yield (
                f"without this broker {plural(left, 'voter')} of {len(votes.voters)} would be in "
                f"contact, and the metadata quorum needs {needed}"
            )


def _named(places: Sequence[Place]) -> str:
    names = ", ".join(f"{topic}-{number}" for topic, number in places[:SHOWN])
    more = "" if len(places) <= SHOWN else ", ..."
    return f"{plural(len(places), 'partition')} ({names}{more})"
