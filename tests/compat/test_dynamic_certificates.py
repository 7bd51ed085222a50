"""Certificates by dynamic configs (KIP-226), as users set them: kafka-configs, confluent-kafka."""

import json
import ssl
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.testing.broker import Broker
from barnabas.testing.cluster_processes import ClusterProcesses, Config
from barnabas.testing.raw_client import RawClient
from barnabas.testing.waiting import eventually
from tests.support.loads.kafka_tools import tools
from tests.support.security.certificates import (
    Certificates,
    Files,
    local_and_secure,
    secure,
)
from tests.support.security.tls_clients import SecureClient, trusting

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
PATIENCE_S = 60.0
PREFIX = "listener.name.secure."
KEYSTORE, CHAIN = f"{PREFIX}ssl.keystore.location", f"{PREFIX}ssl.keystore.certificate.chain"
TRUSTSTORE = f"{PREFIX}ssl.truststore.location"
AUTHORITIES = f"{PREFIX}ssl.truststore.certificates"
TYPE = f"{PREFIX}ssl.keystore.type"
Changes = dict[str, str | None]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "certificates")


def settings_of(certificates: Certificates, *, clients: str = "none") -> dict[str, object]:
    return {
        "listeners.LOCAL.listen": "127.0.0.1:0",
        **secure(certificates, certificates.broker(), clients=clients),
        "security.certificate_check_interval": "0",
    }


@pytest.fixture
def broker(certificates: Certificates, tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "data", settings=settings_of(certificates)) as started:
        yield started


def in_one_file(certificates: Certificates, files: Files, name: str = "store.pem") -> str:
    """Return a PEM keystore as Kafka's users have them: key and certificates in one file."""
    path = certificates.folder / name
    path.touch(mode=0o600)
    path.write_text(Path(files.key).read_text() + Path(files.certificate).read_text())
    return str(path)


def certificate_in(path: str) -> bytes:
    """Return the first certificate of a file."""
    text = Path(path).read_text()
    begin = text.index("-----BEGIN CERTIFICATE")
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(text[begin : text.index(end) + len(end)])


def served(
    address: tuple[str, int], certificates: Certificates, client: Files | None = None
) -> bytes | None:
    """Return the certificate that a new connection gets, after a request."""
    with SecureClient(address, trusting(certificates, client)) as connected:
        assert connected.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        assert isinstance(connected.socket, ssl.SSLSocket)
        return connected.socket.getpeercert(binary_form=True)


def address_of(listener: str) -> tuple[str, int]:
    host, _, port = listener.rpartition(":")
    return host, int(port)


def serves(address: tuple[str, int], certificates: Certificates, path: str) -> bool:
    """Tell whether a new connection gets the certificate in a file."""
    return served(address, certificates) == certificate_in(path)


def alter(bootstrap: str, changes: Changes, broker: str = "1", *, dry_run: bool = False) -> None:
    """Change configs of a broker; None deletes one."""
    entries = [
        ConfigEntry(
            name,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for name, value in changes.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    (done,) = admin.incremental_alter_configs([resource], validate_only=dry_run).values()
    done.result(PATIENCE_S)


def local(broker: Broker) -> str:
    return "{}:{}".format(*broker.listeners["LOCAL"])


def test_a_location_is_used_and_survives_a_restart(
    broker: Broker, certificates: Certificates
) -> None:
    store = in_one_file(certificates, certificates.broker("renewed"))
    alter(local(broker), {KEYSTORE: store, TYPE: "PEM"})
    assert served(broker.listeners["SECURE"], certificates) == certificate_in(store)
    broker.stop()
    broker.start()
    assert served(broker.listeners["SECURE"], certificates) == certificate_in(store)
    alter(local(broker), {KEYSTORE: None})
    settings_certificate = certificate_in(str(certificates.folder / "broker.pem"))
    assert served(broker.listeners["SECURE"], certificates) == settings_certificate


def test_the_same_location_again_reloads_the_file(
    broker: Broker, certificates: Certificates
) -> None:
    store = in_one_file(certificates, certificates.broker("first"))
    alter(local(broker), {KEYSTORE: store})
    first = served(broker.listeners["SECURE"], certificates)
    in_one_file(certificates, certificates.broker("second"))
    assert served(broker.listeners["SECURE"], certificates) == first
    alter(local(broker), {KEYSTORE: store})
    assert served(broker.listeners["SECURE"], certificates) == certificate_in(store) != first


def test_open_connections_go_on(broker: Broker, certificates: Certificates) -> None:
    store = in_one_file(certificates, certificates.broker("renewed"))
    with SecureClient(broker.listeners["SECURE"], trusting(certificates)) as client:
        client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        alter(local(broker), {KEYSTORE: store})
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def test_a_chain_in_the_config_is_used_with_the_key_of_the_settings(
    broker: Broker, certificates: Certificates
) -> None:
    chain = Path(certificates.folder / "broker.pem").read_text()
    in_one_line = "".join(chain.split("\n"))
    alter(local(broker), {CHAIN: in_one_line})
    (stored,) = (broker.data / "certificates").iterdir()
    assert stored.read_text().split() == chain.split()
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert served(broker.listeners["SECURE"], certificates) == certificate_in(str(stored))
    admin = AdminClient({"bootstrap.servers": local(broker), "log_level": 0})
    (done,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    entry = done.result(PATIENCE_S)[CHAIN]
    assert (entry.value, entry.is_sensitive) == (None, True)


def refusal(bootstrap: str, changes: Changes, broker: str = "1") -> str:
    """Return why a change is refused."""
    with pytest.raises(KafkaException) as caught:
        alter(bootstrap, changes, broker)
    error = caught.value.args[0]
    assert error.code() == KafkaError.INVALID_REQUEST
    return str(error.str())


def test_unusable_files_are_refused_and_change_nothing(
    broker: Broker, certificates: Certificates, tmp_path: Path
) -> None:
    before = served(broker.listeners["SECURE"], certificates)
    one, other = certificates.broker("one"), certificates.broker("other")
    mixed = in_one_file(certificates, Files(one.certificate, other.key), "mixed.pem")
    expired = in_one_file(certificates, certificates.expired(), "expired.pem")
    folder, empty = tmp_path / "folder", tmp_path / "empty.pem"
    folder.mkdir()
    empty.touch()
    cases: list[tuple[Changes, str]] = [
        ({KEYSTORE: mixed}, "is not the key of the certificate"),
        ({KEYSTORE: expired}, "certificate has expired"),
        ({KEYSTORE: one.certificate}, "has no private key in PEM"),
        ({KEYSTORE: str(empty)}, "has no certificate in PEM"),
        ({KEYSTORE: "/nowhere/store.pem"}, "No such file"),
        ({KEYSTORE: "store.pem"}, "is relative"),
        ({KEYSTORE: str(folder)}, "is not a file"),
        ({KEYSTORE: "/dev/zero"}, "is not a file"),
        ({KEYSTORE: mixed, TYPE: "JKS"}, "stores of type JKS cannot be read"),
        ({CHAIN: Path(one.certificate).read_text()}, "is not the key of the certificate"),
        ({CHAIN: "nonsense"}, "no certificate in PEM"),
        ({TRUSTSTORE: str(empty)}, "no certificate"),
        ({AUTHORITIES: "nonsense"}, "no certificate"),
        ({KEYSTORE: mixed, CHAIN: "x"}, "exclude each other"),
        ({f"{PREFIX}ssl.keystore.key": Path(one.key).read_text()}, "would store a secret"),
        ({CHAIN: Path(mixed).read_text()}, "would store a secret"),
        ({f"{PREFIX}ssl.key.password": "x"}, "key_password_file"),
        ({"listener.name.local.ssl.keystore.location": mixed}, "it has no TLS"),
        ({"listener.name.other.ssl.keystore.location": mixed}, "there is none"),
        ({"ssl.keystore.location": mixed}, "listener.name.NAME"),
    ]
    for changes, said in cases:
        problem = refusal(local(broker), changes)
        assert said in problem, (changes, problem)
        assert "PRIVATE KEY" not in problem
        assert served(broker.listeners["SECURE"], certificates) == before
    assert not [*(broker.data / "certificates").glob("*")]


def test_authorities_are_replaced_while_the_broker_runs(
    certificates: Certificates, tmp_path: Path
) -> None:
    others = Certificates(tmp_path / "others")
    stranger = others.client("alice")
    settings = settings_of(certificates, clients="required")
    with Broker(tmp_path / "data", settings=settings) as broker:
        secured = broker.listeners["SECURE"]
        with pytest.raises((OSError, EOFError)):
            served(secured, certificates, stranger)
        alter(local(broker), {TRUSTSTORE: others.authority})
        assert served(secured, certificates, stranger)
        both = Path(others.authority).read_text() + Path(certificates.authority).read_text()
        alter(local(broker), {TRUSTSTORE: None, AUTHORITIES: both})
        assert served(secured, certificates, stranger)
        assert served(secured, certificates, certificates.client("bob"))


def test_kafka_configs(jars: str, broker: Broker, certificates: Certificates) -> None:
    which = ("--entity-type", "brokers", "--entity-name", "1")
    store = in_one_file(certificates, certificates.broker("renewed"))
    expired = in_one_file(certificates, certificates.expired(), "expired.pem")
    with tools(RUN_TOOLS, jars, local(broker)) as jvm:

        def run(*words: str) -> str:
            return jvm.run("kafka.admin.ConfigCommand", *which, *words).output

        said = run("--alter", "--add-config", f"{KEYSTORE}={store},{TYPE}=PEM")
        assert "Completed updating config" in said, said
        assert served(broker.listeners["SECURE"], certificates) == certificate_in(store)
        assert f"{KEYSTORE}={store}" in run("--describe")
        said = run("--alter", "--add-config", f"{KEYSTORE}={expired}")
        assert "certificate has expired" in said, said
        for name, content, problem in (
            (f"{PREFIX}ssl.keystore.key", "renewed.key", "would store a secret"),
            (CHAIN, "renewed.pem", "exclude each other"),
        ):
            properties = certificates.folder / "changes.properties"
            pem = (certificates.folder / content).read_text()
            properties.write_text(f"{name}={pem}".replace("\n", "\\n"))
            said = run("--alter", "--add-config-file", str(properties))
            assert problem in said, said
        assert served(broker.listeners["SECURE"], certificates) == certificate_in(store)
        in_one_file(certificates, certificates.broker("again"))
        run("--alter", "--add-config", f"{KEYSTORE}={store}")
        assert served(broker.listeners["SECURE"], certificates) == certificate_in(store)
        assert "MII" not in run("--describe")


def test_each_broker_of_a_cluster_tests_its_own_files(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    files = certificates.broker()
    config = tmp_path / "barnabas.yaml"
    config.write_text(f"{local_and_secure(files)}security:\n  certificate_check_interval: 0\n")
    store = in_one_file(certificates, certificates.broker("renewed"))
    with ClusterProcesses(tmp_path / "nodes", config=Config(config, "LOCAL")) as cluster:
        controller = cluster.controller()
        for number, node in cluster.nodes.items():
            secured = address_of(node.listeners["SECURE"])
            said = refusal(cluster.bootstrap, {KEYSTORE: "/nowhere.pem"}, str(number))
            assert "No such file" in said, (number, controller, said)
            alter(cluster.bootstrap, {KEYSTORE: store}, str(number), dry_run=True)
            assert served(secured, certificates) == certificate_in(files.certificate)
            alter(cluster.bootstrap, {KEYSTORE: store}, str(number))
            eventually(partial(serves, secured, certificates, store))
        for number, node in cluster.nodes.items():
            other = next(each for each in cluster.nodes if each != number)
            assert f"only broker {other}" in asked_at(node.address, other, store)
            assert not [line for line in node.log_text().splitlines() if "PRIVATE" in line]


def asked_at(address: tuple[str, int], number: int, store: str) -> str:
    """Send a change of one broker to another, which no client does; return the refusal."""
    from barnabas.protocol.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    change = AlterableConfig(name=KEYSTORE, config_operation=0, value=store)
    resource = AlterConfigsResource(resource_type=4, resource_name=str(number), configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with RawClient(address) as client:
        (result,) = client.ask(request, 1, IncrementalAlterConfigsResponse).responses
    return json.dumps(result.error_message)
