"""Plans for replicas: where they are, where they should be, and what must move for that."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.inspection import describe_cluster, list_reassignments, probe
from barnabas.admin.reassignments import (
    Plan,
    Sizes,
    current_partitions,
    make_plan,
    seats,
    sizes_of,
)
from barnabas.admin.replica_placement import Partitions, Replicas, arrange
from barnabas.admin.scopes import Place, expand, parse_scope
from barnabas.admin.wording import plural
from barnabas.model.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.list_partition_reassignments import OngoingTopicReassignment
from barnabas.wire.cluster_wire import Wire, settled
from barnabas.wire.link_security import LinkSecurity
from barnabas.wire.wire_failures import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The input of a plan."""

    cluster: DescribeClusterResponse
    moving: Sequence[OngoingTopicReassignment]
    partitions: Partitions
    security: LinkSecurity | None = None
    """How to reach brokers, to ask them for sizes."""

    @property
    def moving_places(self) -> set[Place]:
        """The partitions that are being reassigned."""
        return {
            (topic.name, each.partition_index) for topic in self.moving for each in topic.partitions
        }

    def plan(self, after: Partitions) -> Plan:
        """Return the changes to the wanted placement, with their bytes."""
        return make_plan(self.partitions, after, self.sizes(after))

    def balance(self, scopes: Sequence[str]) -> Plan:
        """Return the changes that spread replicas and leaders evenly over all brokers and racks."""
        away = [each.broker_id for each in self.cluster.brokers if each.is_fenced]
        if away:
            raise AdminError(
                f"Broker {away[0]} is fenced, and its replicas cannot be balanced; start "
                f"it, or remove it with `barnabas cluster remove {away[0]}`"
            )
        chosen = {place: self.partitions[place] for place in self.places(scopes, "--topic")}
        brokers = seats(self.cluster)
        return self.plan(arrange(chosen, brokers, sizes=self.largest_sizes(chosen)))

    def places(self, scopes: Sequence[str], option: str) -> list[Place]:
        """Return the partitions that scopes name; all without a scope."""
        if not scopes:
            return sorted(self.partitions)
        counts = Counter(topic for topic, _ in self.partitions)
        return expand([parse_scope(scope, option) for scope in scopes], counts)

    def require_valid(self, wanted: Partitions, origin: str) -> None:
        """Raise if a placement names partitions or brokers that do not exist."""
        known = {each.broker_id for each in self.cluster.brokers}
        for (topic, number), replicas in wanted.items():
            if (topic, number) not in self.partitions:
                raise AdminError(f"{origin} names {topic}-{number}, which does not exist")
            if not replicas or len(set(replicas)) != len(replicas):
                raise AdminError(
                    f"{origin} puts {topic}-{number} on {list(replicas)}; name each broker once"
                )
            strangers = [node for node in replicas if node not in known]
            if strangers:
                numbers = ", ".join(map(str, sorted(known)))
                raise AdminError(
                    f"{origin} puts {topic}-{number} on broker {strangers[0]}, which does not "
                    f"exist; the cluster has {numbers}"
                )

    def sizes(self, places: Iterable[Place]) -> Sizes:
        """Ask every broker for the sizes of partitions on its disk."""
        asked = partitions_by_topic(places)
        return sizes_of(probe(self.cluster.brokers, asked, self.security))

    def largest_sizes(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the bytes of the largest replica of each partition."""
        found: dict[Place, int] = {}
        for held in self.sizes(places).values():
            for place, size in held.items():
                found[place] = max(size, found.get(place, 0))
        return found

    def require_at_rest(self, places: Iterable[Place]) -> None:
        """Raise if partitions are already being reassigned."""
        met = sorted(self.moving_places.intersection(places))
        if met:
            raise AdminError(
                f"{plural(len(met), 'partition')} ({met[0][0]}-{met[0][1]} ...) are already "
                "being reassigned; wait for the end, or cancel it with --cancel"
            )


def survey(wire: Wire) -> Scene:
    """Request brokers and partitions."""
    moving = _reassignments(wire)
    return Scene(
        cluster=describe_cluster(wire),
        moving=moving,
        partitions=current_partitions(wire.metadata().topics, moving),
        security=wire.security,
    )


def partitions_by_topic(places: Iterable[Place]) -> Mapping[str, list[int]]:
    """Return the numbers of partitions by topic."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in places:
        found[topic].append(number)
    return found


def broker_totals(
    partitions: Partitions, after: Mapping[Place, Replicas], brokers: Iterable[int]
) -> dict[int, dict[str, int]]:
    """Return how many replicas and preferred leaders each broker has before and after a plan."""
    then = {**partitions, **after}
    found = {}
    for broker in sorted(brokers):
        found[broker] = {
            "replicas_before": sum(broker in replicas for replicas in partitions.values()),
            "replicas_after": sum(broker in replicas for replicas in then.values()),
            "leaders_before": sum(replicas[:1] == (broker,) for replicas in partitions.values()),
            "leaders_after": sum(replicas[:1] == (broker,) for replicas in then.values()),
        }
    return found


def _reassignments(wire: Wire) -> list[OngoingTopicReassignment]:
    """Return the current reassignments; wait while a controller is being elected."""

    def ask() -> tuple[int, list[OngoingTopicReassignment]]:
        try:
            return ErrorCode.NONE, list_reassignments(wire)
        except RefusedError as error:
            return error.code, []

    return settled(ask, "Reassignments cannot be listed")
