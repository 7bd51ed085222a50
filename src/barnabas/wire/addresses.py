"""Parses the addresses of brokers as users write them."""

from barnabas.wire.wire_failures import LinkError


def split_address(address: str) -> tuple[str, int]:
    """Split [PROTOCOL://]HOST[:PORT]; a name in brackets is an IPv6 address."""
    place = address.strip().rpartition("://")[2]
    host, separator, port = place.rpartition(":")
    if not separator or place.endswith("]"):
        host, port = place, "9092"
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise LinkError(f"Bootstrap address {address!r} is not HOST:PORT; {port!r} is not a port")
    return host.strip("[]") or "127.0.0.1", int(port)
