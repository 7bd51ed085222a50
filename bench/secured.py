"""The two brokers with listeners for TLS and SASL, and with ACLs, for the rows about security.

Both have the same certificate (ECDSA on P-256), TLS 1.3 with one cipher, and the same user, who
authenticates with PLAIN. The plaintext listener stays for administration: its clients may do
everything.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from barnabas.cli.cert.authority import Authority
from barnabas.model.permissions import Operation, PatternType, PermissionType
from bench.access import PASSWORD, USER, Files, Listener, Setup, access_to, key_of
from bench.authorizer import ACLS, acl
from bench.brokers import Barnabas, Broker, Entry, Kafka, free_port
from bench.places import BARNABAS, WORK
from bench.process import LoadError

FILES = Files(folder=WORK / "certificates")
ACLS_AT_ONCE = 500
TIMEOUT_S = 60.0
VALID_DAYS = 3650


class Secured:
    """What both have in common: ports, certificates, ACLs."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._ports: dict[Listener, int] = {}

    @property
    def setup(self) -> Setup:
        """Which rows it is for."""
        return self._setup

    def choose_ports(self, port: int) -> dict[Listener, int]:
        """A port for each listener; the plaintext one has the given."""
        self._ports = {listener: free_port() for listener in Listener}
        self._ports[Listener.PLAINTEXT] = port
        return self._ports

    def entry(self, listener: Listener, port: int) -> Entry:
        """Where and how clients of a listener connect."""
        del port
        return Entry(port=self._ports[listener], access=access_to(listener, FILES))

    def set_up(self, address: str) -> None:
        """Create the ACLs."""
        if self._setup is not Setup.ACLS:
            return
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        left = bindings()
        while some := list(islice(left, ACLS_AT_ONCE)):
            try:
                for future in admin.create_acls(some, request_timeout=TIMEOUT_S).values():
                    future.result(TIMEOUT_S)
            except (KafkaException, TimeoutError) as error:
                raise LoadError(f"cannot create ACLs: {error}") from error


class SecuredBarnabas(Secured, Barnabas):
    """Barnabas, with a settings file."""

    def __init__(self, setup: Setup) -> None:
        Barnabas.__init__(self)
        Secured.__init__(self, setup)

    def prepare(self, data: Path, port: int) -> None:
        """Write the settings beside the data."""
        super().prepare(data, port)
        make_certificates()
        settings_file(data).write_text(barnabas_settings(self.choose_ports(port), self._setup))
        password_file(data).write_text(PASSWORD)
        password_file(data).chmod(0o600)

    def command(self, data: Path, port: int) -> list[str | Path]:
        """`barnabas serve`, which creates the user at the first start."""
        del port
        words: list[str | Path] = [BARNABAS, "serve", "--config", settings_file(data)]
        words += ["--bootstrap-admin", USER, "--bootstrap-admin-password-file", password_file(data)]
        return [*words, "--data", data, "--json"]


class SecuredKafka(Secured, Kafka):
    """Kafka, with more properties."""

    def __init__(self, setup: Setup) -> None:
        Kafka.__init__(self)
        Secured.__init__(self, setup)

    def properties(self, data: Path, port: int) -> str:
        """Those of the other rows, and those of security; of two values the last counts."""
        make_certificates()
        keystore = data / "broker.keystore.pem"
        keystore.write_text(key_of(FILES.broker).read_text() + FILES.broker.read_text())
        controller = free_port()
        more = kafka_properties(self.choose_ports(port), controller, keystore, self._setup)
        return super().properties(data, port) + more


SECURED_BROKERS: dict[str, list[Broker]] = {
    "barnabas": [SecuredBarnabas(setup) for setup in (Setup.SECURED, Setup.ACLS)],
    "kafka": [SecuredKafka(setup) for setup in (Setup.SECURED, Setup.ACLS)],
}


def settings_file(data: Path) -> Path:
    """Barnabas's settings."""
    return data.with_suffix(".yaml")


def password_file(data: Path) -> Path:
    """The password of the user that Barnabas creates."""
    return data.with_suffix(".password")


def make_certificates() -> None:
    """Make an authority, the broker's certificate and the client's, once."""
    if FILES.client.exists():
        return
    FILES.folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(FILES.folder, VALID_DAYS)
    if not FILES.broker.exists():
        authority.sign_broker(FILES.broker.stem, ["127.0.0.1", "localhost"])
    authority.sign_client(FILES.client.stem)


def barnabas_settings(ports: dict[Listener, int], setup: Setup) -> str:
    """The settings file."""
    lines = ["listeners:"]
    for listener, port in ports.items():
        lines += [f"  {listener.value}:", f"    listen: 127.0.0.1:{port}"]
        lines += [f"    protocol: {listener.protocol}"]
        if listener.is_encrypted:
            lines += [f"    certificate: {FILES.broker}", f"    key: {key_of(FILES.broker)}"]
        if listener is Listener.MTLS:
            lines += ["    client_authentication: required", f"    authorities: {FILES.authority}"]
        if listener.has_login:
            lines += ["    mechanisms: [PLAIN]"]
    if setup is Setup.ACLS:
        lines += ["security:", "  authorizer: acl", "  super_users: [User:ANONYMOUS]"]
    return "\n".join(lines) + "\n"


def kafka_properties(
    ports: dict[Listener, int], controller: int, keystore: Path, setup: Setup
) -> str:
    """The properties that differ from those of the plain broker, and more."""
    addresses = {listener.value: port for listener, port in ports.items()}
    addresses["CONTROLLER"] = controller
    named = ",".join(f"{name}://127.0.0.1:{port}" for name, port in addresses.items())
    protocols = ",".join(f"{listener.value}:{listener.protocol}" for listener in ports)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    values = {
        "listeners": named,
        "advertised.listeners": named,
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocols}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(FILES.authority),
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384",
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    for listener in (Listener.SASL_SSL, Listener.SASL_PLAINTEXT):
        name = f"listener.name.{listener.value.lower()}.plain.sasl.jaas.config"
        values[name] = f'{login} user_{USER}="{PASSWORD}";'
    if setup is Setup.ACLS:
        values["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        values["super.users"] = "User:ANONYMOUS"
    return "".join(f"{name}={value}\n" for name, value in values.items())


def bindings() -> Iterator[AclBinding]:
    """10,000 ACLs: that for the user on the topics of the benchmark, and those of `authorizer`."""
    yield AclBinding(
        ResourceType.TOPIC,
        "bench-",
        ResourcePatternType.PREFIXED,
        f"User:{USER}",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    rng = Random(1)
    for number in range(1, ACLS):
        one = acl(number, rng)
        yield AclBinding(
            ResourceType.TOPIC,
            one.resource_name,
            ResourcePatternType[PatternType(one.pattern_type).name],
            one.principal,
            one.host,
            AclOperation[Operation(one.operation).name],
            AclPermissionType[PermissionType(one.permission_type).name],
        )
