"""Choose preferred leaders so that each broker leads about the same number of partitions.

The preferred leader is the first replica of a partition; a change of the order moves no data.
Broker A hands a partition to B, which hands another to C, until no broker that leads too many can
reach one that leads too few. This is a minimum-cost flow along the edges "A leads a partition of
which B has a replica", so no other choice of leaders is more even.
"""

from collections import Counter, deque
from collections.abc import Container, Iterable, Mapping

from barnabas.admin.scopes import Place

Handover = tuple[Place, int, int]


class Leadership:
    """The preferred leaders of partitions, while they are rebalanced."""

    def __init__(
        self, replicas: Mapping[Place, list[int]], brokers: Iterable[int], movable: Iterable[Place]
    ) -> None:
        """Take the replicas, whose order is changed in place, and the partitions to change."""
        self._replicas = replicas
        self._leads = Counter(dict.fromkeys(sorted(brokers), 0))
        for nodes in replicas.values():
            if nodes[:1] and nodes[0] in self._leads:
                self._leads[nodes[0]] += 1
        self._edges: dict[int, dict[int, dict[Place, None]]] = {
            node: {other: {} for other in self._leads} for node in self._leads
        }
        for place in sorted(movable):
            self._join(place)

    def even_out(self) -> None:
        """Hand partitions over until no chain of hand-overs improves the balance."""
        while (chain := self._chain()) is not None:
            for place, giver, taker in chain:
                self._hand_over(place, giver, taker)

    def _chain(self) -> list[Handover] | None:
        for giver in sorted(self._leads, key=lambda node: (-self._leads[node], node)):
            ceiling = self._leads[giver] - 2
            takers = {node for node, count in self._leads.items() if count <= ceiling}
            if not takers:
                return None
            chain = self._shortest(giver, takers)
            if chain is not None:
                return chain
        return None

    def _shortest(self, start: int, goals: Container[int]) -> list[Handover] | None:
        came: dict[int, Handover] = {}
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            if node in goals:
                return _back(came, node)
            for other, places in self._edges[node].items():
                if places and other != start and other not in came:
                    came[other] = next(iter(places)), node, other
                    waiting.append(other)
        return None

    def _hand_over(self, place: Place, giver: int, taker: int) -> None:
        for other in self._edges[giver].values():
            other.pop(place, None)
        nodes = self._replicas[place]
        nodes.remove(taker)
        nodes.insert(0, taker)
        self._leads[giver] -= 1
        self._leads[taker] += 1
        self._join(place)

    def _join(self, place: Place) -> None:
        first, *others = self._replicas[place]
        for other in others:
            if first in self._edges and other in self._edges:
                self._edges[first][other][place] = None


def _back(came: Mapping[int, Handover], end: int) -> list[Handover]:
    chain = []
    while end in came:
        chain.append(came[end])
        end = came[end][1]
    return chain
