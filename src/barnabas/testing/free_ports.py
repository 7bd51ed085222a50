"""Find free ports that a broker can use again after a restart.

A port that the kernel chooses is in the range for outgoing connections. While the broker is down, a
connection of another process can take it, and the broker cannot restart. The ports below that
range are used only by programs that request them.
"""

import errno
import random
import socket
from pathlib import Path

LOWEST = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_FROM = 32_768
"""The default start of the range for outgoing connections on Linux."""

_chooser = random.SystemRandom()


def free_port(host: str = "127.0.0.1") -> int:
    """Return a free port of a host, outside the range for outgoing connections."""
    while True:
        port = _chooser.randrange(LOWEST, _ephemeral_from())
        if _is_free(host, port):
            return port


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
