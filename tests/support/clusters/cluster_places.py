"""Builds a small network of Linux namespaces for the nodes of a cluster.

Each node has a network namespace on a bridge, so that links can be cut, in one direction or both,
and slowed down. It needs root on Linux. Clients run outside, on the bridge's own address, and reach
every node unless they are cut off, too.

    with Network((1, 2, 3)) as network:
        network.cut(1, (2, 3), outbound=False)      # 1 does not receive from the others
        network.heal(1)
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence

NAMESPACES = "/var/run/netns"
CLIENT_PORT = 9092
PEER_PORT = 9093
OUTSIDE = 254
"""The last byte of the address of the clients."""
RULES = """
table inet cuts {
  chain inbound { type filter hook input priority 0; }
  chain outbound { type filter hook output priority 0; }
}
"""


class NoNetworkError(Exception):
    """This machine does not allow to create networks; the message says why."""


class Network:
    """A bridge, and a namespace for each node."""

    def __init__(self, nodes: Sequence[int], number: int | None = None) -> None:
        """Take the nodes; two networks at a time need different numbers."""
        _needs("ip", "nft", "nsenter")
        self._nodes = tuple(nodes)
        self._number = (os.getpid() if number is None else number) % 65_536
        self._tag = f"{self._number:04x}"
        self._slow: dict[int, subprocess.Popen[bytes]] = {}
        try:
            self._build()
        except NoNetworkError:
            self.close()
            raise

    def client_address(self, node: int) -> tuple[str, int]:
        """Return the address at which a node serves clients."""
        return self._host(node), CLIENT_PORT

    def peer_address(self, node: int) -> tuple[str, int]:
        """Return the address at which a node serves other brokers."""
        return self._host(node), PEER_PORT

    def prefix(self, node: int) -> list[str]:
        """Enter the node's namespace.

        `ip netns exec` would also give the process its own view of file systems: a disk that is
        unmounted outside would stay mounted there.
        """
        return ["nsenter", f"--net={NAMESPACES}/{self._namespace(node)}"]

    def cut(
        self, node: int, others: Iterable[int], *, inbound: bool = True, outbound: bool = True
    ) -> None:
        """Drop the frames from others to a node, from the node to others, or both."""
        lines = []
        for other in others:
            if inbound:
                lines.append(f"add rule inet cuts inbound ip saddr {self._host(other)} drop")
            if outbound:
                lines.append(f"add rule inet cuts outbound ip daddr {self._host(other)} drop")
        self._nft(node, "\n".join(lines))

    def heal(self, node: int) -> None:
        """Undo all cuts of a node."""
        self._nft(node, "flush table inet cuts")

    def slow_down(self, node: int, delay_ms: int, jitter_ms: int = 0, loss: float = 0.0) -> None:
        """Delay every frame between a node and its peers; jitter reorders them."""
        near, far = self._port(node), f"p{self._tag}{node}"
        _ip("link", "add", far, "type", "veth", "peer", "name", f"q{self._tag}{node}")
        _ip("link", "set", near, "nomaster")
        _ip("link", "set", f"q{self._tag}{node}", "up", "master", self._bridge)
        _ip("link", "set", far, "up")
        numbers = [f"--delay-ms={delay_ms}", f"--jitter-ms={jitter_ms}", f"--loss={loss}"]
        command = [
            sys.executable,
            "-m",
            "tests.support.clusters.cluster_delay",
            near,
            far,
            *numbers,
        ]
        self._slow[node] = subprocess.Popen(command)

    def speed_up(self, node: int) -> None:
        """Stop delaying the frames of a node."""
        holder = self._slow.pop(node)
        holder.kill()
        holder.wait()
        _ip("link", "del", f"p{self._tag}{node}")
        _ip("link", "set", self._port(node), "master", self._bridge)

    def close(self) -> None:
        """Remove everything."""
        for holder in self._slow.values():
            holder.kill()
            holder.wait()
        for node in self._nodes:
            for link in (f"p{self._tag}{node}", self._port(node)):
                with contextlib.suppress(NoNetworkError):
                    _ip("link", "del", link)
            with contextlib.suppress(NoNetworkError):
                _ip("netns", "del", self._namespace(node))
        with contextlib.suppress(NoNetworkError):
            _ip("link", "del", self._bridge)

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge", "forward_delay", "0")
        _ip("addr", "add", f"{self._host(OUTSIDE)}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for node in self._nodes:
            space = self._namespace(node)
            _ip("netns", "add", space)
            ends = [self._port(node), "type", "veth", "peer", "name", "eth0", "netns", space]
            _ip("link", "add", *ends)
            _ip("link", "set", self._port(node), "up", "master", self._bridge)
            _ip("-n", space, "addr", "add", f"{self._host(node)}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")
            self._nft(node, RULES)

    def _nft(self, node: int, text: str) -> None:
        _run([*self.prefix(node), "nft", "-f", "-"], text)

    def _host(self, node: int) -> str:
        return f"10.{self._number >> 8}.{self._number & 255}.{node}"

    def _namespace(self, node: int) -> str:
        return f"barnabas-{self._tag}-{node}"

    def _port(self, node: int) -> str:
        return f"v{self._tag}{node}"

    @property
    def _bridge(self) -> str:
        return f"b{self._tag}"


def _needs(*commands: str) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise NoNetworkError("only root on Linux can create networks")
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise NoNetworkError(f"{missing[0]} is not installed")


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(command: list[str], text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
