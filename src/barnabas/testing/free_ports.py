"""Find free ports that a broker can use again after a restart.

A port that the kernel chooses is in the range for outgoing connections. While the broker is down, a
connection of another process can take it, and the broker cannot restart. The ports below that
range are used only by programs that request them. Workers of pytest-xdist have a part of that range
each, and no port is returned twice: a broker may be down while others look for a port.
"""

import errno
import os
import random
import socket
from pathlib import Path

LOWEST = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_FROM = 32_768
"""The default start of the range for outgoing connections on Linux."""

_chooser = random.SystemRandom()
_returned: set[int] = set()


def free_port(host: str = "127.0.0.1") -> int:
    """Return a free port of a host, outside the range for outgoing connections."""
    ports = _own_part(range(LOWEST, _ephemeral_from()))
    if len(_returned) > len(ports) // 2:
        _returned.clear()
    while True:
        port = _chooser.choice(ports)
        if port not in _returned and _is_free(host, port):
            _returned.add(port)
            return port


def _own_part(ports: range) -> range:
    """Return the ports of this worker of pytest-xdist; all of them without workers."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not (worker.isdecimal() and count.isdecimal()):
        return ports
    return ports[int(worker) :: int(count)]


def _ephemeral_from() -> int:
    if not RANGE.exists():
        return EPHEMERAL_FROM
    first = int(RANGE.read_text().split()[0])
    return first if first > LOWEST else EPHEMERAL_FROM


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE  # the broker reports other errors
    return True
