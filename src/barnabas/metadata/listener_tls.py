"""The dynamic broker configs that replace the TLS files of one listener (KIP-226, KIP-651).

They are named `listener.name.NAME.ssl...`, with the name of the listener in any case. Only PEM is
supported. Keys and passwords cannot be set: a key stays in a file of its broker, since metadata is
stored on the disks of all brokers.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

KEY = "ssl.keystore.key"
KEYSTORE = "ssl.keystore.location"
CHAIN = "ssl.keystore.certificate.chain"
TRUSTSTORE = "ssl.truststore.location"
AUTHORITIES = "ssl.truststore.certificates"
KEYSTORE_TYPE = "ssl.keystore.type"
TRUSTSTORE_TYPE = "ssl.truststore.type"
PEM = "PEM"
INLINE = (CHAIN, AUTHORITIES)

DOCUMENTATION = MappingProxyType(
    {
        KEYSTORE: "A PEM file on this broker with the key and the certificates of the listener.",
        CHAIN: "The certificates of the listener in PEM; its key stays in the file of the key.",
        TRUSTSTORE: "A PEM file on this broker with the authorities of client certificates.",
        AUTHORITIES: "The authorities of client certificates in PEM.",
    }
)
"""The configs that have an effect, each with its description."""

REFUSED = MappingProxyType(
    {
        KEY: "put the key into a PEM file that only the broker's user can read, and "
        "name the file in ssl.keystore.location",
        "ssl.key.password": "set key_password_file or key_password_variable of the listener in the "
        "broker's settings",
        "ssl.keystore.password": "PEM files have no keystore password",
        "ssl.truststore.password": "PEM files have no truststore password",
    }
)
"""The configs that are never stored in metadata, each with what to do instead."""

_NAME = re.compile(r"listener\.name\.([^.]+)\.(ssl\..+)")
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
LINE_CHARACTERS = 64


class TlsConfigs(NamedTuple):
    """The dynamic configs of one listener; None for those that are not set."""

    keystore: str | None = None
    chain: str | None = None
    truststore: str | None = None
    authorities: str | None = None
    types: frozenset[str] = frozenset()
    """The store types in the configs."""


def listeners_of(names: Iterable[str]) -> set[str]:
    """Return the listeners that the configs name, in lower case."""
    found = (_NAME.fullmatch(name) for name in names)
    bases = (*DOCUMENTATION, KEYSTORE_TYPE, TRUSTSTORE_TYPE)
    return {each[1].lower() for each in found if each is not None and each[2] in bases}


def configs_of(listener: str, configs: Mapping[str, str]) -> TlsConfigs:
    """Return a broker's configs of one listener."""
    values: dict[str, str] = {}
    for name, value in configs.items():
        found = _NAME.fullmatch(name)
        if found is not None and found[1].lower() == listener.lower() and value:
            values[found[2]] = value
    types = (values.get(KEYSTORE_TYPE), values.get(TRUSTSTORE_TYPE))
    return TlsConfigs(
        values.get(KEYSTORE),
        values.get(CHAIN),
        values.get(TRUSTSTORE),
        values.get(AUTHORITIES),
        frozenset(each.upper() for each in types if each is not None),
    )


def in_lines(pem: str) -> str:
    """Return PEM in lines, as OpenSSL reads it; tools write it in one line."""
    blocks = []
    for label, body in _BLOCK.findall(pem):
        text = "".join(body.split())
        lines = [text[at : at + LINE_CHARACTERS] for at in range(0, len(text), LINE_CHARACTERS)]
        blocks.append("\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]))
    return "".join(blocks)
