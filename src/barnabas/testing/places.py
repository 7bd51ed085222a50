"""The addresses at which the brokers of a cluster listen."""

from typing import Protocol

from barnabas.testing.free_ports import free_port


class Place(Protocol):
    """Where the brokers of a cluster run."""

    def client_address(self, node: int) -> tuple[str, int]:
        """Return the address for clients."""

    def peer_address(self, node: int) -> tuple[str, int]:
        """Return the address for other brokers."""

    def prefix(self, node: int) -> list[str]:
        """Return a prefix for the command of a node, to start it in its place."""


class Loopback:
    """Free ports of 127.0.0.1; each node keeps its own."""

    def __init__(self) -> None:
        self._ports: dict[tuple[int, str], int] = {}

    def client_address(self, node: int) -> tuple[str, int]:
        """Return the address for clients."""
        return "127.0.0.1", self._port(node, "client")

    def peer_address(self, node: int) -> tuple[str, int]:
        """Return the address for other brokers."""
        return "127.0.0.1", self._port(node, "peer")

    def prefix(self, node: int) -> list[str]:
        """Return nothing: each process runs on this host."""
        del node
        return []

    def _port(self, node: int, kind: str) -> int:
        if (node, kind) not in self._ports:
            self._ports[node, kind] = free_port()
        return self._ports[node, kind]
