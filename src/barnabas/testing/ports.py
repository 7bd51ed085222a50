"""Ports that a broker can take again after a restart.

A port that the kernel chooses lies among those that it also gives to outgoing connections. While
the broker is down, a connection of any other process can take it, and the broker cannot come back.
Ports below that range are only taken by programs that ask for them.
"""

import errno
import random
import socket
from pathlib import Path

LOWEST = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_FROM = 32_768
"""Where outgoing connections begin on Linux, unless it is told otherwise."""

_chooser = random.SystemRandom()


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port of a host that is free and is not given to outgoing connections."""
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
            return error.errno != errno.EADDRINUSE  # the broker is to say what else is wrong
    return True
