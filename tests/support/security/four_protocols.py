"""One broker with a listener for each of Kafka's security protocols, and how clients connect.

    with broker_of(folder) as site:
        Producer(site.librdkafka("SASL_SSL"))

`MUTUAL` is SSL with a certificate of the client. Clients are `User:ANONYMOUS` on PLAINTEXT and SSL,
`User:alice` on MUTUAL and `User:admin` where they log in. All of them are super users.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from barnabas.testing.broker import Broker
from tests.support.security.certificates import Certificates, Files, secure
from tests.support.security.tls_clients import trusting

MUTUAL = "MUTUAL"
WAYS = ("PLAINTEXT", "SSL", MUTUAL, "SASL_PLAINTEXT", "SASL_SSL")
"""The names of the listeners."""
NAMED = (MUTUAL, "SASL_PLAINTEXT", "SASL_SSL")
"""Those whose clients have names."""
ADMIN, PASSWORD, CLIENT = "admin", "the password of admin", "alice"
MECHANISM = "SCRAM-SHA-512"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Site:
    """A broker, and the properties of its clients in the words of each client."""

    def __init__(self, broker: Broker, certificates: Certificates, client: Files) -> None:
        self._broker = broker
        self._certificates = certificates
        self._client = client

    def address(self, way: str) -> str:
        """Return the address of a listener."""
        host, port = self._broker.listeners[way]
        return f"{host}:{port}"

    def librdkafka(
        self, way: str, *, user: str = ADMIN, password: str = PASSWORD
    ) -> dict[str, Any]:
        """Return the properties of librdkafka."""
        found = {"bootstrap.servers": self.address(way), "security.protocol": _protocol(way)}
        if _has_tls(way):
            found["ssl.ca.location"] = self._certificates.authority
        if way == MUTUAL:
            found["ssl.certificate.location"] = self._client.certificate
            found["ssl.key.location"] = self._client.key
        if _has_login(way):
            found |= {
                "sasl.mechanism": MECHANISM,
                "sasl.username": user,
                "sasl.password": password,
            }
        return found

    def python(self, way: str) -> dict[str, Any]:
        """Return the arguments of kafka-python and aiokafka."""
        found: dict[str, Any] = {
            "bootstrap_servers": self.address(way),
            "security_protocol": _protocol(way),
        }
        if _has_tls(way):
            found["ssl_context"] = self._context(way)
        if _has_login(way):
            found |= {
                "sasl_mechanism": MECHANISM,
                "sasl_plain_username": ADMIN,
                "sasl_plain_password": PASSWORD,
            }
        return found

    def librdkafka_file(self, folder: Path, way: str) -> Path:
        """Write the properties of librdkafka into a file, as `kcat -F` takes it."""
        return _written(folder / f"{way}.conf", self.librdkafka(way))

    def java_file(self, folder: Path, way: str) -> Path:
        """Write the properties of a Java client into a file."""
        found = {"security.protocol": _protocol(way)}
        if _has_tls(way):
            found |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self._certificates.authority,
            }
        if way == MUTUAL:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(_keystore(folder, self._client)),
            }
        if _has_login(way):
            login = f'{SCRAM} required username="{ADMIN}" password="{PASSWORD}";'
            found |= {"sasl.mechanism": MECHANISM, "sasl.jaas.config": login}
        return _written(folder / f"{way}.properties", found)

    def _context(self, way: str) -> ssl.SSLContext:
        return trusting(self._certificates, self._client if way == MUTUAL else None)


@contextmanager
def broker_of(folder: Path) -> Iterator[Site]:
    """Run the broker."""
    certificates = Certificates(folder / "certificates")
    files = certificates.broker()
    secret = folder / "token.secret"
    secret.write_text("a secret of all brokers of the cluster\n")
    settings = {
        "listeners.PLAINTEXT.listen": "127.0.0.1:0",
        **secure(certificates, files, name="SSL"),
        **secure(certificates, files, name=MUTUAL, clients="required"),
        f"listeners.{MUTUAL}.principal_mapping_rules": ["RULE:^CN=(.*?)(,.*)?$/$1/"],
        "listeners.SASL_PLAINTEXT.listen": "127.0.0.1:0",
        "listeners.SASL_PLAINTEXT.protocol": "SASL_PLAINTEXT",
        **secure(certificates, files, name="SASL_SSL"),
        "listeners.SASL_SSL.protocol": "SASL_SSL",
        "security.authorizer": "acl",
        "security.super_users": ["User:ANONYMOUS", f"User:{CLIENT}", f"User:{ADMIN}"],
        "security.delegation_token_secret_file": str(secret),
        "groups.initial_rebalance_delay": "0s",
    }
    with Broker(settings=settings, first_admin=(ADMIN, PASSWORD)) as broker:
        yield Site(broker, certificates, certificates.client(CLIENT))


def _protocol(way: str) -> str:
    return "SSL" if way == MUTUAL else way


def _has_tls(way: str) -> bool:
    return _protocol(way).endswith("SSL")


def _has_login(way: str) -> bool:
    return way.startswith("SASL_")


def _written(file: Path, properties: dict[str, Any]) -> Path:
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return file


def _keystore(folder: Path, files: Files) -> Path:
    """Write a key and its certificates into one file. Java wants the key in PKCS 8."""
    key = load_pem_private_key(Path(files.key).read_bytes(), None)
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "client.keystore.pem"
    file.write_bytes(written + Path(files.certificate).read_bytes())
    return file
