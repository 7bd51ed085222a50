"""Files of client properties, with librdkafka's names or Java's.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
        username="alice" password="secret";
    ssl.truststore.location=/etc/kafka/ca.pem
    ssl.truststore.type=PEM

A file that kafka-topics or a Java client takes with `--command-config` works here as well, as long
as its certificates are PEM files. Errors name the line and the property, and never show a value.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas.admin.admin_errors import AdminError
from barnabas.wire.link_security import TOKEN_LOGIN

_JAAS = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", re.S)
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
_ESCAPED = re.compile(r"\\(.)")
JAAS_MODULES = ("PlainLoginModule", "ScramLoginModule")
STORE_TYPES = ("ssl.truststore.type", "ssl.keystore.type")
IGNORED = (*STORE_TYPES, "ssl.truststore.password", "key.serializer", "value.serializer")
"""Java's properties that have no meaning here."""

Translation = Callable[[str], Mapping[str, str]]


def read_client_file(file: Path) -> dict[str, str]:
    """Return the properties in a file, with librdkafka's names."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise AdminError(f"{file}: the client's properties: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AdminError(f"{file}: the client's properties are not UTF-8") from None
    found: dict[str, str] = {}
    for number, line in _lines(text):
        key, value = _split(line)
        if not key:
            raise AdminError(f"{file}, line {number}: write KEY=VALUE")
        found[key] = value
    try:
        return _translated(found)
    except AdminError as error:
        raise AdminError(f"{file}: {error}") from None


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with properties and their numbers; `\\` at an end continues a line."""
    found: list[tuple[int, str]] = []
    begun: str | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if begun is None and (not line or line[0] in "#!"):
            continue
        if begun is not None:
            line = begun + line
        ends = len(line) - len(line.rstrip("\\"))
        if ends % 2:
            begun = line[:-1]
        else:
            begun = None
            found.append((number, line))
    if begun is not None:
        found.append((number, begun))
    return found


def _split(line: str) -> tuple[str, str]:
    """Split KEY=VALUE; Java also takes a colon."""
    found = re.match(r"([^=:\s]+)\s*[=:]\s*(.*)", line, re.S)
    return (found[1], found[2]) if found else ("", "")


def _translated(found: Mapping[str, str]) -> dict[str, str]:
    for name in STORE_TYPES:
        if name in found and found[name].upper() != "PEM":
            raise AdminError(f"{name} is not PEM; convert the store to PEM files")
    made: dict[str, str] = {}
    for name, value in found.items():
        if name in IGNORED:
            continue
        translate = _TRANSLATIONS.get(name)
        made.update({name: value} if translate is None else translate(value))
    password = found.get("ssl.keystore.password")
    if password is not None and "ssl.key.password" not in made:
        made["ssl.key.password"] = password
    return made


def _jaas(value: str) -> Mapping[str, str]:
    line = _JAAS.fullmatch(value)
    module = "" if line is None else line[1].rpartition(".")[2]
    if line is None or module not in JAAS_MODULES:
        raise AdminError(
            "sasl.jaas.config is not understood; set sasl.username and sasl.password instead"
        )
    options = {
        name: _ESCAPED.sub(r"\1", double) or single or bare
        for name, double, single, bare in _JAAS_OPTION.findall(line[2])
    }
    if not {"username", "password"} <= options.keys():
        raise AdminError("sasl.jaas.config lacks username or password")
    found = {"sasl.username": options["username"], "sasl.password": options["password"]}
    if options.get("tokenauth", "").lower() == "true":
        found[TOKEN_LOGIN] = "true"
    return found


_TRANSLATIONS: Mapping[str, Translation] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": lambda value: {"ssl.ca.location": value},
    "ssl.truststore.certificates": lambda value: {"ssl.ca.pem": value},
    "ssl.keystore.location": lambda value: {
        "ssl.certificate.location": value,
        "ssl.key.location": value,
    },
    "ssl.keystore.password": lambda _: {},
    "ssl.endpoint.identification.algorithm": lambda value: {
        "ssl.endpoint.identification.algorithm": value or "none"
    },
}
