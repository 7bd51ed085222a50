"""Finds the host that a listener is advertised under, if it listens on all addresses.

Clients and other brokers cannot connect to 0.0.0.0, and a loopback name would work on this machine
only. So the broker advertises the name that the operating system has for this machine. Without one
the broker does not start, and says which setting is needed.
"""

import socket
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from barnabas.model.errors import BrokerError

WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
LOCAL_NAMES = ("localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback")


class NoHostNameError(BrokerError):
    """This machine has no name that other machines can connect to."""


def advertised_host(host: str, configured: str | None, key: str) -> str:
    """Return the host to advertise for a listener; `key` is the setting that overrides it."""
    if configured and is_wildcard(configured):
        raise NoHostNameError(f"others cannot connect to {configured}; set {key} to a name")
    if configured:
        return configured
    if not is_wildcard(host):
        return host
    for name in (socket.getfqdn(), socket.gethostname()):
        if is_name_for_others(name):
            return name
    raise NoHostNameError(
        f"it listens on {host or 'all addresses'}, and this machine has no name that others can "
        f"connect to; set {key} to a name or an address that they can"
    )


def is_wildcard(host: str) -> bool:
    """Tell whether a host means all addresses, in any notation, such as `::ffff:0.0.0.0`."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        with suppress(OSError):  # such as 0, which the system reads as 0.0.0.0
            return not any(socket.inet_aton(host))
        return host in WILDCARDS
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_unspecified


def is_name_for_others(name: str) -> bool:
    """Tell whether a host name means this machine on other machines, too."""
    first = name.lower().partition(".")[0]
    is_reverse = name.endswith(".arpa")  # what some resolvers return for an address
    with suppress(ValueError):
        return not (ip_address(name).is_loopback or is_wildcard(name))
    return bool(name) and first not in LOCAL_NAMES and not is_reverse and not is_wildcard(name)
