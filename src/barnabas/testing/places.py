"""The addresses of the brokers of a cluster."""

from typing import Protocol

from barnabas.testing.ports import free_port


class Place(Protocol):
    """What a cluster must know of where it lives."""

    def client_address(self, node: int) -> tuple[str, int]:
        """Where a node serves clients."""

    def peer_address(self, node: int) -> tuple[str, int]:
        """Where a node serves the others."""

    def prefix(self, node: int) -> list[str]:
        """What stands before the command of a node, to have it start there."""


class Loopback:
    """Ports of 127.0.0.1 that were free when they were asked for first."""

    def __init__(self) -> None:
        self._ports: dict[tuple[int, str], int] = {}

    def client_address(self, node: int) -> tuple[str, int]:
        """Where a node serves clients."""
        return "127.0.0.1", self._port(node, "client")

    def peer_address(self, node: int) -> tuple[str, int]:
        """Where a node serves the others."""
        return "127.0.0.1", self._port(node, "peer")

    def prefix(self, node: int) -> list[str]:
        """Nothing: every process can be here."""
        del node
        return []

    def _port(self, node: int, kind: str) -> int:
        if (node, kind) not in self._ports:
            self._ports[node, kind] = free_port()
        return self._ports[node, kind]
