"""Login as a user of the brokers: the session's own connections then act as that user.

The console's properties say how to reach the brokers. The user and the password replace those in
them, so that ACLs decide what the user may read and change.
"""

from collections.abc import Sequence

from barnabas.admin.connecting import pairs, settings
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.security.scram_formulas import SCRAM_BY_NAME
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.link_security import TOKEN, TOKEN_LOGIN
from barnabas.wire.login import PLAIN
from barnabas.wire.wire_failures import LoginError

TIMEOUT_S = 10.0
MECHANISM = "sasl.mechanism"
DEFAULT_MECHANISM = "SCRAM-SHA-512"


def user_properties(own: Sequence[str], user: str, password: str) -> tuple[str, ...]:
    """Return the console's properties with another user and password."""
    given = pairs(own, "property")
    given.pop("sasl.mechanisms", None)
    for secret in (TOKEN, TOKEN_LOGIN, "sasl.username", "sasl.password"):
        given.pop(secret, None)
    mechanism = given.get(MECHANISM, DEFAULT_MECHANISM).upper()
    if mechanism != PLAIN and mechanism not in SCRAM_BY_NAME:
        mechanism = DEFAULT_MECHANISM
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    encrypted = protocol.endswith("SSL")
    given["security.protocol"] = "SASL_SSL" if encrypted else "SASL_PLAINTEXT"
    named = given | {MECHANISM: mechanism, "sasl.username": user, "sasl.password": password}
    return tuple(f"{key}={value}" for key, value in named.items())


def check_login(bootstrap: str, properties: Sequence[str]) -> bool:
    """Return whether the brokers accept a login; raise where none answers."""
    try:
        with Wire(settings(bootstrap, properties), "barnabas-console", TIMEOUT_S) as wire:
            wire.ask_any(MetadataRequest(topics=[]), MetadataResponse)
    except (LoginError, UnicodeError):  # a password that SCRAM cannot take is also a wrong one
        return False
    return True
