"""Rows of brokers."""

from collections.abc import Mapping
from typing import Any

from barnabas.admin.cluster_overview import Broker
from barnabas.console.web.json_answers import number
from barnabas.monitor.states import BrokerFigures, ClusterState

NO_FIGURES = BrokerFigures(address="")


def broker_rows(state: ClusterState) -> list[Mapping[str, Any]]:
    """Return the rows of all brokers."""
    return [broker_row(state, broker) for broker in state.overview.brokers]


def broker_row(state: ClusterState, broker: Broker) -> dict[str, Any]:
    """Return the row of a broker; what its /metrics would say is null without them."""
    figures = state.figures.get(broker.id, NO_FIGURES)
    disk = state.disks.get(broker.id)
    used = None if broker.disk_free is None else 1 - broker.disk_free
    return {
        "id": broker.id,
        "address": broker.address,
        "rack": broker.rack,
        "state": broker.state,
        "is_controller": broker.id == controller_of(state),
        "leaders": broker.leaders,
        "replicas": broker.replicas,
        "in_sync": broker.in_sync,
        "disk_used_ratio": number(used, 4),
        "disk_free_bytes": None if disk is None else disk.free_bytes,
        "records_per_s": number(figures.records_per_s),
        "bytes_in_per_s": number(figures.bytes_in_per_s),
        "bytes_out_per_s": number(figures.bytes_out_per_s),
        "loop_busy_ratio": number(figures.loop_busy_ratio, 4),
        "connections": figures.connections,
        "version": figures.version,
        "silence": broker.silence,
    }


def controller_of(state: ClusterState) -> int | None:
    """Return the node id of the active controller."""
    quorum = state.overview.quorum
    return None if quorum is None else quorum.leader
