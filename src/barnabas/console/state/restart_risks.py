"""What the restart of one broker would cost, judged from the last snapshot."""

from barnabas.admin.cluster_overview import UP
from barnabas.health.restart_gate import RestartSafety
from barnabas.monitor.states import ClusterState, PartitionState


def restart_risks(state: ClusterState, broker: int) -> list[str]:
    """Return why a broker cannot be restarted safely; nothing if it can."""
    safety = RestartSafety(broker)
    up = {each.id for each in state.overview.brokers if each.state == UP}
    found = state.overview.partitions
    limits = {
        **dict.fromkeys(found.at_min_isr, _as_many_as_in_sync),
        **dict.fromkeys(found.under_min_isr, _more_than_in_sync),
        **dict.fromkeys(found.replicas_at_min_isr, _as_many_as_replicas),
    }
    for topic in state.topics.values():
        for each in topic.partitions:
            place = topic.name, each.number
            limit = limits.get(place, _one)(each)
            safety.add(place, each.replicas, up.intersection(each.in_sync), limit)
    return safety.reasons(state.overview.quorum)


# A snapshot has no min ISR, but says which partitions are at it or below.


def _one(_: PartitionState) -> int:
    return 1


def _as_many_as_in_sync(each: PartitionState) -> int:
    return len(each.in_sync)


def _more_than_in_sync(each: PartitionState) -> int:
    return len(each.in_sync) + 1


def _as_many_as_replicas(each: PartitionState) -> int:
    return len(each.replicas)
