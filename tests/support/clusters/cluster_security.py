"""The security of a cluster of real processes: certificates, users, rights and quotas.

    security = ClusterSecurity(folder, Loopback(), (1, 2, 3))
    with SecuredProcesses(folder, security) as cluster:
        security.give("alice", (READ, "TOPIC", "orders"))
        Consumer({"bootstrap.servers": security.bootstrap, **security.properties("alice")})

Each broker has a certificate of one authority, which it uses for its clients and for the other
brokers. Clients connect with SASL_SSL to the listener CLIENTS, or with a certificate to MUTUAL. The
test looks at the cluster through HEALTH, which is plaintext: `User:ANONYMOUS` may describe the
cluster and its topics, and nothing else.
"""

import signal
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Self

from barnabas.admin.access.acl_admin import AclAdmin
from barnabas.admin.access.quota_admin import Quotas, entity_from
from barnabas.admin.access.users import set_password
from barnabas.metadata.acl_filter import EVERY_NAME
from barnabas.metadata.security_records import AclAdded
from barnabas.model.permissions import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from barnabas.testing.cluster_processes import ClusterNode, ClusterProcesses, Config
from barnabas.testing.free_ports import free_port
from barnabas.testing.places import Loopback, Place
from barnabas.testing.waiting import eventually
from barnabas.wire.cluster_wire import Wire
from tests.support.security.certificates import Certificates, Files

HEALTH, CLIENTS, MUTUAL = "HEALTH", "CLIENTS", "MUTUAL"
ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
PORTS = {CLIENTS: 9094, MUTUAL: 9095}
"""The ports of a node with an address of its own."""
PATIENCE_S = 60.0
LOADED = "loaded a certificate"
KEPT = "kept the old certificate: the new files cannot be used"
SETTINGS: Mapping[str, str] = {
    "certificate_check_interval": "500ms",
    "reauthentication_time": "20s",
}
YAML = """\
listeners:
  HEALTH:
    listen: {health}
  CLIENTS:
    listen: {clients}
    protocol: SASL_SSL
    certificate: {files.certificate}
    key: {files.key}
  MUTUAL:
    listen: {mutual}
    protocol: SSL
    certificate: {files.certificate}
    key: {files.key}
    authorities: {authority}
    client_authentication: required
    principal_mapping_rules: ["RULE:^CN=(.*?)(,.*)?$/$1/", DEFAULT]
cluster:
  tls_certificate: {files.certificate}
  tls_key: {files.key}
  tls_authorities: {authority}
security:
  authorizer: acl
  super_users: [User:admin]
{security}
"""


class Damage(Enum):
    """What is wrong with the files of a certificate."""

    KEY = "the key of another certificate"
    CONTENT = "no certificate"
    DATE = "an expired certificate"


class Allowed:
    """One right of a user: an operation on a resource, or on all with a prefix."""

    def __init__(
        self, operation: Operation, resource: ResourceType, name: str, *, prefix: bool = False
    ) -> None:
        self.operation = operation
        self.resource = resource
        self.name = name
        self.pattern = PatternType.PREFIXED if prefix else PatternType.LITERAL

    def acl(self, principal: str) -> AclAdded:
        """Return the ACL that gives it to a principal."""
        return AclAdded(
            acl_id="",
            resource_type=self.resource,
            pattern_type=self.pattern,
            resource_name=self.name,
            principal=principal,
            host="*",
            operation=self.operation,
            permission_type=PermissionType.ALLOW,
        )


LOOK = (
    Allowed(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME),
    Allowed(Operation.DESCRIBE, ResourceType.TOPIC, EVERY_NAME),
)
"""What the test may do on the listener HEALTH."""


class ClusterSecurity:
    """The certificates of the brokers of one cluster, and the rights of its users."""

    def __init__(
        self,
        folder: Path,
        place: Place,
        nodes: Sequence[int],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder / "security"
        self.certificates = Certificates(self._folder / "certificates")
        self._place = place
        self._addresses = {n: _addresses(place, n) for n in nodes}
        self.files = {number: self.renew(number) for number in nodes}
        self._write_private("admin.password", _password(ADMIN))
        for number in nodes:
            self._write_private(
                f"broker-{number}.yaml", self._yaml(number, {**SETTINGS, **(settings or {})})
            )

    @property
    def configs(self) -> dict[int, Config]:
        """The settings files of the brokers."""
        admin = ("--bootstrap-admin", ADMIN, "--bootstrap-admin-password-file")
        arguments = (*admin, str(self._folder / "admin.password"))
        return {
            number: Config(self._folder / f"broker-{number}.yaml", HEALTH, arguments)
            for number in self._addresses
        }

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers of clients with passwords."""
        return ",".join(self.address(number) for number in self._addresses)

    def address(self, number: int, listener: str = CLIENTS) -> str:
        """Return the address of a broker's listener."""
        host, port = self._addresses[number][listener]
        return f"{host}:{port}"

    def properties(self, user: str) -> dict[str, str]:
        """Return librdkafka's properties of a user, except for the addresses."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": _password(user),
            "ssl.ca.location": self.certificates.authority,
        }

    def client(self, user: str) -> dict[str, str]:
        """Return librdkafka's properties of a user."""
        return {"bootstrap.servers": self.bootstrap, **self.properties(user)}

    def prepare(self) -> None:
        """Give the test the rights to look at the cluster."""
        with self.admin() as wire:
            AclAdmin(wire).create([each.acl("User:ANONYMOUS") for each in LOOK])

    def add_user(self, user: str, rights: Iterable[Allowed] = ()) -> None:
        """Create a user with rights."""
        with self.admin() as wire:
            set_password(wire, user, _password(user), [MECHANISM])
        self.give(user, rights)

    def give(self, user: str, rights: Iterable[Allowed]) -> None:
        """Give rights to a user."""
        acls = [each.acl(f"User:{user}") for each in rights]
        if acls:
            with self.admin() as wire:
                AclAdmin(wire).create(acls)

    def set_quota(self, user: str, key: str, value: float) -> None:
        """Set a quota of a user."""
        with self.admin() as wire:
            Quotas(wire).set(entity_from(user, None, None), {key: value})

    def remove_quota(self, user: str, key: str) -> None:
        """Remove a quota of a user."""
        with self.admin() as wire:
            Quotas(wire).remove(entity_from(user, None, None), [key])

    def admin(self) -> Wire:
        """Return a connection of the admin to all brokers."""
        return Wire(self.client(ADMIN))

    def renew(self, number: int, valid_s: float | None = None) -> Files:
        """Replace the certificate of a broker by a new one of the same authority."""
        hosts = {host for host, _ in self._addresses[number].values()}
        hosts.add(self._place.peer_address(number)[0])
        return self.certificates.broker(
            f"broker-{number}", hosts=("localhost", *sorted(hosts)), valid_s=valid_s
        )

    def damage(self, number: int, damage: Damage) -> None:
        """Put files in place that the broker cannot use."""
        files = self.files[number]
        match damage:
            case Damage.KEY:
                other = self.certificates.broker("other")
                Path(files.key).write_bytes(Path(other.key).read_bytes())
            case Damage.CONTENT:
                Path(files.certificate).write_text("this is no certificate\n")
            case Damage.DATE:
                self.renew(number, valid_s=-60.0)

    def served(self, number: int) -> bytes:
        """Return the certificate that a new connection to a broker gets; empty if there is none."""
        context = ssl.create_default_context(cafile=self.certificates.authority)
        host, port = self._addresses[number][CLIENTS]
        try:
            with (
                socket.create_connection((host, port), 2.0) as connected,
                context.wrap_socket(connected, server_hostname="localhost") as secured,
            ):
                return secured.getpeercert(binary_form=True) or b""
        except OSError:
            return b""

    def in_file(self, number: int) -> bytes:
        """Return the certificate in the file of a broker."""
        text = Path(self.files[number].certificate).read_text()
        end = "-----END CERTIFICATE-----"
        return ssl.PEM_cert_to_DER_cert(text.partition(end)[0] + end + "\n")

    def wait_served(self, numbers: Iterable[int], patience_s: float = PATIENCE_S) -> None:
        """Return once new connections get the certificates that are in the files."""
        for number in numbers:
            wanted = self.in_file(number)
            eventually(lambda n=number, w=wanted: self.served(n) == w, patience_s)  # type: ignore[misc]

    def _yaml(self, number: int, settings: Mapping[str, str]) -> str:
        host, port = self._place.client_address(number)
        return YAML.format(
            health=f"{host}:{port}",
            clients=self.address(number),
            mutual=self.address(number, MUTUAL),
            files=self.files[number],
            authority=self.certificates.authority,
            security="\n".join(f"  {name}: {value}" for name, value in settings.items()),
        )

    def _write_private(self, name: str, text: str) -> None:
        path = self._folder / name
        path.touch(mode=0o600)
        path.write_text(text)


class SecuredProcesses(ClusterProcesses):
    """A cluster with security."""

    def __init__(
        self,
        folder: Path,
        security: ClusterSecurity,
        *,
        settings: Mapping[str, object] | None = None,
        place: Place | None = None,
        data: Mapping[int, Path] | None = None,
        environments: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        super().__init__(
            folder,
            brokers=len(security.configs),
            settings=settings,
            place=place or security._place,
            data=data,
            environments=environments,
            config=security.configs,
        )
        self.security = security

    def start(self) -> Self:
        """Start all nodes; return once the cluster is healthy."""
        for node in self.nodes.values():
            node.spawn()
        for node in self.nodes.values():
            node.wait_ready()
        self.security.prepare()
        self.wait_healthy()
        return self


def reload_certificate(node: ClusterNode) -> None:
    """Have a running broker read its certificates again, as an operator does."""
    if node.running:
        node.send(signal.SIGHUP)


def _password(user: str) -> str:
    return f"the password of {user}"


def _addresses(place: Place, number: int) -> dict[str, tuple[str, int]]:
    host, _ = place.client_address(number)
    shared = isinstance(place, Loopback)
    return {name: (host, free_port(host) if shared else port) for name, port in PORTS.items()}
