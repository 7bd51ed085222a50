"""Names the listeners of a secured broker, and says how each kind of client connects to one."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

USER, PASSWORD = "user-7", "a password of the benchmark"
"""One of the principals that `bench.authorizer` has ACLs for."""


class Setup(Enum):
    """What a broker is set up with before rows run on it."""

    PLAIN = "plain"
    """One listener, without anything else."""
    SECURED = "secured"
    """A listener of each kind, and no authorizer."""
    ACLS = "acls"
    """The same with an authorizer and 10,000 ACLs."""


class Listener(Enum):
    """A listener; the value is its name. A broker that is not secured has the first alone."""

    PLAINTEXT = "PLAINTEXT"
    TLS = "TLS"
    MTLS = "MTLS"
    """TLS that asks for the client's certificate."""
    SASL_SSL = "SASL_SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"

    @property
    def is_encrypted(self) -> bool:
        """Whether it has TLS."""
        return self in (Listener.TLS, Listener.MTLS, Listener.SASL_SSL)

    @property
    def has_login(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self in (Listener.SASL_SSL, Listener.SASL_PLAINTEXT)

    @property
    def protocol(self) -> str:
        """Kafka's name for what it speaks."""
        return "SSL" if self in (Listener.TLS, Listener.MTLS) else self.value


@dataclass(frozen=True, kw_only=True)
class Files:
    """The certificates in a directory."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate of the authority."""
        return self.folder / "ca.pem"

    @property
    def broker(self) -> Path:
        """The certificate of the broker, for 127.0.0.1; its key is beside it."""
        return self.folder / "broker.pem"

    @property
    def client(self) -> Path:
        """The certificate of the clients; its key is beside it."""
        return self.folder / "client.pem"


def key_of(certificate: Path) -> Path:
    """The file with the key of a certificate."""
    return certificate.with_suffix(".key")


Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Access:
    """What each kind of client needs to connect; nothing for plaintext."""

    rdkafka: Pairs = ()
    """Properties of librdkafka."""
    java: Pairs = ()
    """Properties of Kafka's Java clients."""
    wire: tuple[str, ...] = ()
    """Options of `wire.c`."""


PLAINTEXT_ACCESS = Access()


def access_to(listener: Listener, files: Files) -> Access:
    """How clients connect to this listener. With a certificate of the client only `wire.c` does."""
    if listener is Listener.PLAINTEXT:
        return PLAINTEXT_ACCESS
    common: dict[str, str] = {"security.protocol": listener.protocol}
    rdkafka, java, wire = dict(common), dict(common), list[str]()
    if listener.is_encrypted:
        rdkafka["ssl.ca.location"] = str(files.authority)
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(files.authority)}
        wire.append("--tls")
    if listener is Listener.MTLS:
        wire += ["--certificate", str(files.client), "--key", str(key_of(files.client))]
    if listener.has_login:
        rdkafka |= {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        java["sasl.mechanism"] = "PLAIN"
        java["sasl.jaas.config"] = f'{login} username="{USER}" password="{PASSWORD}";'
        wire += ["--user", USER, "--password", PASSWORD]
    return Access(rdkafka=tuple(rdkafka.items()), java=tuple(java.items()), wire=tuple(wire))
