"""Read the `listeners` section: the addresses for clients, by name.

A listener has an address, a protocol, and the settings for TLS and SASL. Files are tested here, so
that a broker with an unusable certificate reports it before it starts.
"""

import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from barnabas.config.keys import LISTENERS, PORT_MAX, Key, Kind, Raw
from barnabas.model.errors import BrokerError
from barnabas.model.security_settings import ListenerSettings, TlsFiles
from barnabas.model.settings import Settings
from barnabas.security.principal_mapping import MappingError, PrincipalMapping, split_rules

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
CLEAR_MECHANISMS = ("PLAIN", "OAUTHBEARER")
"""The mechanisms whose clients send a secret in clear text."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
INT_MAX = 2**31 - 1
RESERVED = "PEER"
"""The name of the listener for other brokers."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]]+):([0-9]{1,5})")
_ADVERTISED = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]]+)(?::([0-9]{1,5}))?")


def _key(name: str, kind: Kind, **more: Any) -> Key:  # noqa: ANN401 - the fields of a key
    return Key(LISTENERS, name, name, kind, **more)


KEYS = {
    key.name: key
    for key in (
        _key("listen", Kind.TEXT),
        _key("advertised", Kind.TEXT, optional=True),
        _key("protocol", Kind.TEXT, choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        _key("certificate", Kind.TEXT, optional=True),
        _key("key", Kind.TEXT, optional=True),
        _key("key_password_file", Kind.TEXT, optional=True),
        _key("key_password_variable", Kind.TEXT, optional=True),
        _key("authorities", Kind.TEXT, optional=True),
        _key("client_authentication", Kind.TEXT, choices=("none", "requested", "required")),
        _key("principal_mapping_rules", Kind.TEXTS),
        _key("mechanisms", Kind.TEXTS),
        _key("max_connections", Kind.INTEGER, most=INT_MAX),
    )
}
TLS_KEYS = (
    "certificate",
    "key",
    "key_password_file",
    "key_password_variable",
    "authorities",
    "client_authentication",
    "principal_mapping_rules",
)
FILES = ("certificate", "key", "key_password_file", "authorities")

Problem = tuple[str, str]
"""A key, and what is wrong with it."""


class ListenerDraft:
    """A listener under construction, while its entries are read."""

    def __init__(self, name: str, origin: str) -> None:
        self.name = name
        self.fields: dict[str, Any] = {}
        self._origins: dict[str, str] = {}
        self._origin = origin

    def take(self, name: str, raw: Raw, origin: str) -> None:
        """Add one key, or raise ValueError with what to write instead."""
        self._origins[name] = origin
        reader = _READERS.get(name)
        if reader is not None:
            self.fields |= reader(raw)
        else:
            self.fields[name] = KEYS[name].read(raw)

    def finish(self) -> tuple[ListenerSettings, list[str]]:
        """Return the listener, and its problems with their places."""
        made = ListenerSettings(name=self.name, **self.fields)
        found = [
            f"{self._origins.get(key, self._origin)}: {LISTENERS}.{self.name}.{key} {problem}"
            for key, problem in _problems(made, self.fields)
        ]
        return made, found


def begin(name: str, origin: str) -> ListenerDraft:
    """Return a draft, or raise ValueError if the name is invalid."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a listener name; write letters, digits, - and _, such as INTERNAL"
        )
    if name == RESERVED:
        raise ValueError(f"{RESERVED} is the listener for other brokers; choose another name")
    return ListenerDraft(name, origin)


def problems_together(listeners: Sequence[ListenerSettings]) -> Iterator[str]:
    """Return the problems between listeners."""
    known: dict[tuple[str, int], str] = {}
    for each in listeners:
        place = each.host, each.port
        if each.port and place in known:
            yield (
                f"{LISTENERS}.{each.name}.listen and {LISTENERS}.{known[place]}.listen are both "
                f"{each.host}:{each.port}; give each listener its own port"
            )
        known.setdefault(place, each.name)


def peer_problems(settings: Settings) -> Iterator[str]:
    """Return the problems of the listener for other brokers and its TLS."""
    cluster = settings.cluster
    given = (cluster.tls_certificate, cluster.tls_authorities)
    if any(given) != all(given):
        yield (
            "cluster.tls_certificate and cluster.tls_authorities belong together; set both, so "
            "that brokers verify each other, or none"
        )
    elif cluster.tls_files is not None:
        missing = [path for path in cluster.tls_files.paths if not Path(path).is_file()]
        if missing:
            yield f"cluster: there is no file {missing[0]!r}; write the path of a PEM file"
        elif (problem := problem_of(cluster.tls_files, connects=True)) is not None:
            yield f"cluster.tls_certificate cannot be used: {problem}"
    if _exposes_peers(settings) and not cluster.allow_plaintext_peers:
        yield (
            f"cluster.host is {cluster.host!r}: other brokers would connect over a network without "
            "TLS, and every client on that port can do everything; set cluster.tls_certificate and "
            "cluster.tls_authorities, or cluster.allow_plaintext_peers (--allow-plaintext-peers) "
            "if the network is trusted"
        )


def _exposes_peers(settings: Settings) -> bool:
    """Whether the listener for other brokers is open beyond this machine, without TLS."""
    cluster = settings.cluster
    is_local = cluster.host in ("localhost", "::1") or cluster.host.startswith("127.")
    return bool(cluster.voters) and cluster.tls_certificate is None and not is_local


def warnings(settings: Settings) -> Iterator[str]:
    """Return warnings about settings that work but are not safe."""
    if _exposes_peers(settings):
        yield (
            "other brokers connect without TLS; keep clients away from that port, or set "
            "cluster.tls_certificate and cluster.tls_authorities"
        )
    for path in sorted(set(_keys(settings))):
        if Path(path).stat().st_mode & stat.S_IROTH:
            yield f"every user of this machine can read the private key {path}; chmod 600 it"
    http_host = (settings.observability.http_listen or "").rpartition(":")[0].strip("[]")
    if http_host and http_host not in LOOPBACK and settings.is_secured:
        yield (
            "observability.http_listen has no password and no TLS; keep all but operators and "
            "Prometheus away from that port"
        )
    for each in settings.listeners:
        clear = [name for name in CLEAR_MECHANISMS if name in each.mechanisms]
        if clear and each.protocol == "SASL_PLAINTEXT" and each.host not in LOOPBACK:
            yield (
                f"listener {each.name} takes passwords or tokens without encryption; set its "
                f"protocol to SASL_SSL, or remove {' and '.join(clear)} from its mechanisms"
            )


def _keys(settings: Settings) -> Iterator[str]:
    """Return the files with private keys."""
    every = [each.tls_files for each in settings.listeners if each.has_tls]
    if settings.cluster.voters and settings.cluster.tls_files is not None:
        every.append(settings.cluster.tls_files)
    yield from (files.key for files in every)


def _problems(made: ListenerSettings, given: dict[str, Any]) -> Iterator[Problem]:
    if "host" not in given:
        yield "listen", "is missing; write HOST:PORT, such as 0.0.0.0:9093"
    yield from _of_tls(made, given) if made.has_tls else _without_tls(made, given)
    if not made.has_sasl and "mechanisms" in given:
        yield "mechanisms", f"has no effect with protocol {made.protocol}; remove it"
    if made.has_sasl and not made.mechanisms:
        yield "mechanisms", f"is empty; write some of {', '.join(MECHANISMS)}"


def _without_tls(made: ListenerSettings, given: dict[str, Any]) -> Iterator[Problem]:
    secure = "SASL_SSL" if made.has_sasl else "SSL"
    for name in TLS_KEYS:
        if given.get(name) is not None:
            yield (
                name,
                f"has no effect with protocol {made.protocol}; set protocol to {secure}, "
                "or remove it",
            )


def _no_file(name: str, path: str) -> str:
    """Report a missing file; a password in the place of a file name is not shown."""
    remedy = "there is no such file; write the path of a file"
    return (
        f"names a file, but {remedy}"
        if name == "key_password_file"
        else f"is {path!r}, and {remedy}"
    )


def _of_tls(made: ListenerSettings, given: dict[str, Any]) -> Iterator[Problem]:
    if made.certificate is None:
        yield (
            "certificate",
            f"is missing, and protocol {made.protocol} needs it; write the path of a PEM file, "
            "or make one with `barnabas cert create`",
        )
        return
    if made.key_password_file is not None and made.key_password_variable is not None:
        yield "key_password_file", "and key_password_variable are both set; remove one of the two"
        return
    if made.client_authentication != "none" and made.authorities is None:
        yield (
            "authorities",
            f"is missing, and client_authentication {made.client_authentication} needs it; "
            "write the path of a PEM file",
        )
        return
    if made.authorities is not None and made.client_authentication == "none":
        yield "authorities", "has no effect with client_authentication none; set it to required"
    missing = [
        (name, _no_file(name, path))
        for name in FILES
        if (path := getattr(made, name)) is not None and not Path(path).is_file()
    ]
    yield from missing
    if not missing:
        problem = problem_of(made.tls_files)
        if problem is not None:
            named = {made.key: "key", made.authorities: "authorities"}
            where = next((name for path, name in named.items() if path and path in problem), "")
            yield where or "certificate", f"cannot be used: {problem}"


def problem_of(files: TlsFiles, *, connects: bool = False) -> str | None:
    """Test the files of a listener, or those between brokers; return their problems."""
    from barnabas.server.tls import tls_context  # noqa: PLC0415 - most brokers have no TLS

    try:
        tls_context.check(files)
        tls_context.server_context(files)
        if connects:
            tls_context.check_between_brokers(files)
    except BrokerError as error:
        return str(error)
    return None


def _read_listen(raw: Raw) -> dict[str, Any]:
    found = None if not isinstance(raw, str) else _LISTEN.fullmatch(raw.strip())
    if found is None or int(found[2]) > PORT_MAX:
        raise ValueError("write HOST:PORT, such as 0.0.0.0:9093 or [::1]:9093")
    return {"host": found[1].strip("[]"), "port": int(found[2])}


def _read_advertised(raw: Raw) -> dict[str, Any]:
    if raw is None or raw == "":
        return {}
    found = None if not isinstance(raw, str) else _ADVERTISED.fullmatch(raw.strip())
    if found is None or not 0 < int(found[2] or 1) <= PORT_MAX:
        raise ValueError("write HOST or HOST:PORT, such as kafka.example.com:9093")
    host = found[1].strip("[]")
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared with, not bound to
        raise ValueError("clients cannot connect to it; write the name of this machine")
    return {"advertised_host": host, "advertised_port": int(found[2]) if found[2] else None}


def _read_rules(raw: Raw) -> dict[str, Any]:
    try:
        rules = split_rules(raw) if isinstance(raw, str) else tuple(raw or ())
        PrincipalMapping(rules)
    except MappingError as error:
        raise ValueError(str(error)) from None
    return {"principal_mapping_rules": rules or ("DEFAULT",)}


def _read_mechanisms(raw: Raw) -> dict[str, Any]:
    read = KEYS["mechanisms"].read(raw) if raw else ()
    assert isinstance(read, tuple)
    unknown = [each for each in read if each not in MECHANISMS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a mechanism; use {', '.join(MECHANISMS)}")
    return {"mechanisms": tuple(dict.fromkeys(read))}


_READERS: dict[str, Callable[[Raw], dict[str, Any]]] = {
    "listen": _read_listen,
    "advertised": _read_advertised,
    "principal_mapping_rules": _read_rules,
    "mechanisms": _read_mechanisms,
}
