"""Clients with delegation tokens: their properties, and users to make tokens for."""

from pathlib import Path

from barnabas.admin.access.users import set_password
from barnabas.admin.token_admin import Token
from barnabas.model.security_settings import SecuritySettings
from barnabas.wire.cluster_wire import Wire
from tests.support.security.sasl_broker import properties

ROOT = "root"
"""A super user whose name is its password, and can be written into every file of properties."""
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def token_security(
    folder: Path, secret: str = "planted-secret-of-all-brokers", **others: object
) -> SecuritySettings:
    """Return settings with ACLs and a secret for delegation tokens."""
    file = folder / "token.secret"
    file.write_text(f"{secret}\n")
    return SecuritySettings(
        authorizer="acl",
        super_users=("User:admin", f"User:{ROOT}"),
        delegation_token_secret_file=str(file),
        **others,  # type: ignore[arg-type]
    )


def add_user(bootstrap: str, name: str) -> None:
    """Create a user, whose password is its name."""
    with Wire(properties(bootstrap)) as wire:
        set_password(wire, name, name, ("SCRAM-SHA-256", "SCRAM-SHA-512"))


def as_user(bootstrap: str, name: str) -> Wire:
    """Return a connection of a user."""
    return Wire(properties(bootstrap, user=name, password=name))


def token_properties(
    bootstrap: str, token: Token, mechanism: str = "SCRAM-SHA-512"
) -> dict[str, object]:
    """Return our own properties of a client with a token."""
    plain = properties(bootstrap, mechanism, token.token_id, token.password)
    return {**plain, "sasl.tokenauth": "true"}


def java_file(
    folder: Path, user: str, password: str, *, mechanism: str = "SCRAM-SHA-512", token: bool = False
) -> Path:
    """Write the properties of a Java client."""
    extension = ' tokenauth="true"' if token else ""
    file = folder / f"{user}.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={SCRAM} required username="{user}" password="{password}"{extension};\n'
    )
    return file
