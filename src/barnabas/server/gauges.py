"""The gauges of one broker: queue lengths and log sizes, read when a collector asks."""

from typing import TYPE_CHECKING

from barnabas.model.meters import Meters

if TYPE_CHECKING:
    from barnabas.server.server import Server

CONNECTIONS = "connections"
WAITING_TURNS = "waiting_turns"
"""Connections with a backlog of requests, which wait for their next turn of the event loop."""
WAITING_SYNCS = "waiting_syncs"
"""Flushes that wait for an fsync or are running one."""
BUFFERED_BYTES = "buffered_bytes"
"""Half-read requests, responses that clients have not read, and TLS connections."""
LOG_BYTES = "log_bytes"


def register(meters: Meters, server: "Server") -> None:
    """Register the gauges of a server and its node."""
    meters.watch(CONNECTIONS, lambda: {"": len(server.connections)})
    meters.watch(WAITING_TURNS, lambda: {"": server.waiting_turns})
    meters.watch(WAITING_SYNCS, lambda: {"": server.driver.syncing})
    meters.watch(BUFFERED_BYTES, lambda: {"": server.memory.used_bytes})
    meters.watch(LOG_BYTES, lambda: _log_bytes(server))


def _log_bytes(server: "Server") -> dict[str, float]:
    return {str(name): partition.log.size for name, partition in server.node.partitions.items()}
