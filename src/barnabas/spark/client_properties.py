"""Translates `kafka.*` options into librdkafka settings, including those that have Java client
names.

`java_properties.py` has the tables. A read ignores producer settings and a write ignores
consumer settings, so that one dict of options serves both.
"""

import logging
from collections.abc import Mapping
from enum import Enum
from functools import cache

from barnabas.spark.query_errors import OptionError
from barnabas.spark.settings.jaas import jaas_properties
from barnabas.spark.settings.java_properties import (
    CONSUMER,
    NO_EFFECT,
    OAUTH,
    PRODUCER,
    REFUSED,
    RENAMED,
    TRANSLATED,
)
from barnabas.spark.settings.option_names import BOOTSTRAP as BOOTSTRAP  # noqa: PLC0414 - exported
from barnabas.spark.settings.option_names import PREFIX
from barnabas.wire.link_security import LinkSecurity, link_security
from barnabas.wire.wire_failures import UnsupportedPropertyError

log = logging.getLogger("barnabas.spark")

OIDC_HANDLER = "OAuthBearerLoginCallbackHandler"
SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.")
"""The prefixes of properties about TLS and authentication."""
SOCKET_TIMEOUT_MS = (10, 300_000)
"""The range that librdkafka accepts for socket.timeout.ms."""

_warned: set[str] = set()


class Side(Enum):
    """Which half of the connector the options are for, and the options of the other half only."""

    READ = PRODUCER
    WRITE = CONSUMER


def client_properties(options: Mapping[str, str], side: Side = Side.READ) -> dict[str, str]:
    """Return the client's settings in the options, under librdkafka's names.

    Names of options are in lower case. A name of librdkafka takes precedence over Java's.
    """
    given = {
        name.removeprefix(PREFIX): value
        for name, value in options.items()
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in side.value
    }
    if BOOTSTRAP in options:
        given.setdefault(BOOTSTRAP, options[BOOTSTRAP])
    _refuse(given)
    if not given.get(BOOTSTRAP, "").strip():
        raise OptionError(
            "Option kafka.bootstrap.servers is missing; set it to HOST:PORT[,HOST:PORT...]"
        )
    _warn_of_no_effect(given)
    left_out = TRANSLATED | NO_EFFECT.keys() | REFUSED.keys()
    known = {name: value for name, value in given.items() if name not in left_out}
    renamed = {RENAMED.get(name, name): value for name, value in known.items()}
    return {**_translated(given, side), **renamed}


def security_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties about TLS and authentication."""
    return {name: value for name, value in properties.items() if name.startswith(SECURITY)}


def security_of(properties: Mapping[str, str]) -> LinkSecurity | None:
    """Return how connections are encrypted and authenticate; None for neither.

    Raises `UnsupportedPropertyError` for a property that only librdkafka supports, such as
    Kerberos.
    """
    return _security(tuple(sorted(security_properties(properties).items())))


def is_direct(properties: Mapping[str, str]) -> bool:
    """Whether our own connections can be used; otherwise librdkafka's are."""
    try:
        security_of(properties)
    except UnsupportedPropertyError:
        return False
    return True


@cache
def _security(properties: tuple[tuple[str, str], ...]) -> LinkSecurity | None:
    return link_security(dict(properties))


def is_read_committed(properties: Mapping[str, str]) -> bool:
    """Whether open and aborted transactions stay hidden; Java's default is that they do not."""
    level = properties.get("isolation.level", "read_uncommitted").lower()
    if level not in {"read_committed", "read_uncommitted"}:
        raise OptionError(
            f"kafka.isolation.level is {level!r}; write read_committed or read_uncommitted"
        )
    return level == "read_committed"


def request_timeout_s(properties: Mapping[str, str], default_s: float) -> float:
    """Return how long a broker may take to answer a request."""
    timeout_ms = whole_number(properties, "socket.timeout.ms", 1)
    return default_s if timeout_ms is None else timeout_ms / 1000


def whole_number(given: Mapping[str, str], name: str, least: int) -> int | None:
    """Return a number among the client's settings; None if it is not given."""
    text = given.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise OptionError(f"kafka.{name} is {text!r}; write a whole number from {least} on")
    return number


def _refuse(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        is_default = name.startswith(("partitioner.", "transaction.")) and value.lower() == "false"
        if name in REFUSED and not is_default:
            raise OptionError(f"kafka.{name} is a property of Java's client; {REFUSED[name]}")


def _warn_of_no_effect(given: Mapping[str, str]) -> None:
    for name in given.keys() & NO_EFFECT.keys() - _warned:
        _warned.add(name)
        log.warning("Option kafka.%s has no effect: %s", name, NO_EFFECT[name])


def _translated(given: Mapping[str, str], side: Side) -> dict[str, str]:
    """Return the settings whose values differ between the clients."""
    return {
        **_sockets(given, side),
        **_compression(given),
        **_buffer_memory(given),
        **_trust(given),
        **_key_pair(given),
        **_login(given),
    }


def _sockets(given: Mapping[str, str], side: Side) -> dict[str, str]:
    found = {}
    for java, own in (
        ("send.buffer.bytes", "socket.send.buffer.bytes"),
        ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
        ("connections.max.idle.ms", "connections.max.idle.ms"),
    ):
        number = whole_number(given, java, -1)
        if number is not None:  # Java's -1 (the system decides, or never) is librdkafka's 0
            found[own] = str(max(0, number))
    timeout_ms = whole_number(given, "request.timeout.ms", 1)
    if timeout_ms is not None:
        least, most = SOCKET_TIMEOUT_MS
        found["socket.timeout.ms"] = str(min(most, max(least, timeout_ms)))
        if side is Side.WRITE:
            found["request.timeout.ms"] = str(timeout_ms)
    return found


def _compression(given: Mapping[str, str]) -> dict[str, str]:
    """Java has a level for each codec; only that of the chosen codec counts."""
    level = given.get(f"compression.{given.get('compression.type', 'none').lower()}.level")
    return {} if level is None else {"compression.level": level}


def _buffer_memory(given: Mapping[str, str]) -> dict[str, str]:
    size = whole_number(given, "buffer.memory", 0)
    if size is None:
        return {}
    if size < 1024:
        raise OptionError(
            f"kafka.buffer.memory is {size} bytes; it becomes kafka.queue.buffering.max.kbytes: "
            "write 1024 or more"
        )
    return {"queue.buffering.max.kbytes": str(size // 1024)}


def _trust(given: Mapping[str, str]) -> dict[str, str]:
    found = {}
    algorithm = given.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        found["ssl.endpoint.identification.algorithm"] = algorithm.lower() or "none"
    place = given.get("ssl.truststore.location")
    kind = given.get("ssl.truststore.type", "JKS").upper()
    if place is not None and kind == "PEM":
        found["ssl.ca.location"] = place
    elif place is not None or "ssl.truststore.password" in given:
        raise OptionError(
            f"kafka.ssl.truststore.location of type {kind} is for Java alone; name a PEM file in "
            "kafka.ssl.ca.location (keytool -list -rfc -keystore STORE prints one), or set "
            "kafka.ssl.truststore.type=PEM where the file is PEM"
        )
    return found


def _key_pair(given: Mapping[str, str]) -> dict[str, str]:
    place = given.get("ssl.keystore.location")
    if place is None:
        return {}
    kind = given.get("ssl.keystore.type", "PKCS12").upper()
    if kind == "PEM":
        return {"ssl.certificate.location": place, "ssl.key.location": place}
    if kind != "PKCS12":
        raise OptionError(
            f"kafka.ssl.keystore.type is {kind}; librdkafka reads PKCS12 and PEM: keytool "
            "-importkeystore -srckeystore STORE -destkeystore STORE.p12 -deststoretype PKCS12"
        )
    return {"ssl.keystore.location": place}


def _login(given: Mapping[str, str]) -> dict[str, str]:
    handler = given.get("sasl.login.callback.handler.class")
    if handler is not None and not handler.endswith(OIDC_HANDLER):
        raise OptionError(
            f"kafka.sasl.login.callback.handler.class is a class of Java's client; {OAUTH}"
        )
    found = {} if handler is None else {"sasl.oauthbearer.method": "oidc"}
    text = given.get("sasl.jaas.config")
    return found if text is None else {**found, **jaas_properties(text)}
