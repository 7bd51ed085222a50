"""Parses `sasl.jaas.config`, Java's user name and password setting, into librdkafka settings.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";

Jobs for Spark's connector have such a line, so this connector accepts it. Messages never show its
values, since they are secrets.
"""

import re
from collections.abc import Mapping

from barnabas.spark.query_errors import OptionError

LINE = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", re.S)
SETTING = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""")
ESCAPED = re.compile(r"\\(.)")

_PASSWORD = {"username": "sasl.username", "password": "sasl.password"}
MODULES: Mapping[str, Mapping[str, str]] = {
    "PlainLoginModule": _PASSWORD,
    "ScramLoginModule": _PASSWORD,
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
    "Krb5LoginModule": {
        "principal": "sasl.kerberos.principal",
        "keyTab": "sasl.kerberos.keytab",
        "serviceName": "sasl.kerberos.service.name",
    },
}
"""The login modules, by the last part of their names, and the properties for their settings."""

REMEDY = "give kafka.sasl.username and kafka.sasl.password instead"


def jaas_properties(text: str) -> dict[str, str]:
    """Return librdkafka's properties for a line of JAAS configuration."""
    line = LINE.fullmatch(text)
    if line is None:
        raise OptionError(
            f"kafka.sasl.jaas.config is not of the form MODULE required NAME=VALUE ...; {REMEDY}"
        )
    module = line[1].rpartition(".")[2]
    names = MODULES.get(module)
    if names is None:
        raise OptionError(f"kafka.sasl.jaas.config names {module}, which only Java has; {REMEDY}")
    given = {name: _value(*quoted) for name, *quoted in SETTING.findall(line[2])}
    if given.get("tokenauth", "").lower() == "true":
        raise OptionError(
            "kafka.sasl.jaas.config has a delegation token (tokenauth), which librdkafka cannot "
            "log in with; use a password or a certificate"
        )
    found = {own: given[java] for java, own in names.items() if java in given}
    if names is _PASSWORD and len(found) < len(names):
        raise OptionError(f"kafka.sasl.jaas.config lacks username or password; {REMEDY}")
    return found


def _value(double: str, single: str, bare: str) -> str:
    return ESCAPED.sub(r"\1", double) or single or bare
