"""The listener for operators and for Prometheus: HTTP/1.1, GET and HEAD only.

It runs on the event loop of the broker. It has no password, so it belongs on a private network; it
shows numbers, names of topics and groups' client ids, and no records.
"""

import asyncio
from functools import partial

from barnabas.node.chores.maintenance import Maintenance
from barnabas.node.node import Node
from barnabas.server.edge_ports import AcceptedConnection, ConnectionOwner
from barnabas.server.http.http_connection import HttpConnection
from barnabas.server.http.operator_pages import OperatorPages
from barnabas.server.metrics.broker_meters import BrokerMeters
from barnabas.server.metrics.broker_metrics import BrokerMetrics
from barnabas.server.metrics.metered_server import MeteredServer
from barnabas.server.server import Server
from barnabas.server.transport import Transport

CONNECTIONS_MAX = 64


def metered_server(node: Node, loop: asyncio.AbstractEventLoop) -> MeteredServer:
    """Return a server that counts its requests and times its events."""
    meters = BrokerMeters(
        node.settings.observability, Server, is_alone=node.is_alone, later=node.timers.after
    )
    return MeteredServer(node, loop, meters)


class OperatorListener:
    """The HTTP listener of one broker."""

    def __init__(self, server: MeteredServer, maintenance: Maintenance) -> None:
        self._server = server
        self._pages = OperatorPages(server, BrokerMetrics(server, maintenance))
        self.wanted = server.node.settings.observability.http_listen or ""
        """The address in the settings."""
        self.address = ("", 0)
        """The bound address."""

    def bind(self) -> None:
        """Bind the address; raise `OSError` where that is not possible."""
        host, _, port = self.wanted.rpartition(":")
        open_connection = partial(_open, self._pages)
        self.address = self._server.bind_operators(
            host.strip("[]"), int(port), open_connection, CONNECTIONS_MAX
        )

    def listen(self) -> None:
        """Start to serve, also before clients are served: operators want to see the start."""
        self._server.begin_turns()
        self._server.listen_to_operators()


def _open(
    pages: OperatorPages, server: ConnectionOwner, transport: Transport, host: str
) -> AcceptedConnection:
    return HttpConnection(server, transport, host, pages.respond)
