"""Compares the hosts of ACLs with those that clients connect from."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

EVERY_HOST = "*"
REMEMBERED_MAX = 10_000


@lru_cache(REMEMBERED_MAX)
def folded_host(host: str) -> str:
    """Return an address in the form that is compared; other text is unchanged.

    A listener for both versions of IP shows IPv4 addresses as IPv6 ones. Such an address, and the
    IPv4 address within it, are one host.
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
