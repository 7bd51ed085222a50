"""Checks that the certificate of a connecting broker names a broker.

The authority that signs the certificates of brokers may sign those of clients, too. So a
certificate must also name a broker: by the host of a voter or of a registered broker, by the
address that the connection comes from, or by a name in the settings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address


class PeerNames:
    """The names that a broker's certificate may have."""

    def __init__(self, configured: Iterable[str], known_hosts: Callable[[], Iterable[str]]) -> None:
        self._configured = [name.lower() for name in configured]
        self._known_hosts = known_hosts

    def accepts(self, certificate: Mapping[str, object], host: str) -> bool:
        """Tell whether a verified certificate names a broker that connects from this host."""
        names = set(_names_in(certificate))
        if _plain(host) in names:
            return True
        if any(_plain(known) in names for known in self._known_hosts()):
            return True
        return any(_matches(wanted, name) for wanted in self._configured for name in names)


def _names_in(certificate: Mapping[str, object]) -> Iterator[str]:
    """Return the names and addresses in a certificate."""
    listed = certificate.get("subjectAltName", ())
    assert isinstance(listed, tuple)
    for kind, name in listed:
        if kind in ("DNS", "IP Address"):
            yield _plain(name)


def _plain(name: str) -> str:
    """Return a name or an address in normal form."""
    try:
        address = ip_address(name)
    except ValueError:
        return name.lower()
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _matches(wanted: str, name: str) -> bool:
    """Compare a name with one from the settings, of which the first part may be `*`."""
    if wanted.startswith("*."):
        return name.partition(".")[2] == wanted[2:]
    return name == wanted
