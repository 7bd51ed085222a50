"""Stock clients that get their tokens from an OpenID Connect issuer by themselves.

librdkafka and Kafka's Java client ask the issuer's token endpoint with their secrets (client
credentials). The broker fetches the issuer's keys over https. Issuer, broker and clients know of
each other by their settings alone.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from barnabas.admin.access.acl_admin import AclAdmin
from barnabas.metadata.security_records import AclAdded
from barnabas.model.permissions import Operation, PatternType, PermissionType, ResourceType
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.waiting import eventually
from barnabas.wire.cluster_wire import Wire
from tests.support.loads.kafka_tools import tools
from tests.support.security.certificates import Certificates
from tests.support.security.oidc_issuer import AUDIENCE, OidcIssuer

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

RUN_TOOLS = Path(__file__).parent / "java" / "RunTools.java"
TOOLS = "org.apache.kafka.tools"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ORDERS, STRANGER = "orders", "stranger"
SECRETS = {ORDERS: "the-secret-of-orders", STRANGER: "the-secret-of-a-stranger"}
TOPIC = "orders-topic"
RECORDS = [f"record {number}" for number in range(100)]
PATIENCE_S = 60.0
SHORT_S = 6
CONFIG = """\
listeners:
  LOCAL:
    listen: 127.0.0.1:0
  TOKENS:
    listen: 127.0.0.1:0
    protocol: SASL_SSL
    mechanisms: [OAUTHBEARER]
    certificate: {files.certificate}
    key: {files.key}
security:
  authorizer: acl
  super_users: [User:ANONYMOUS]
  oauth_keys: {issuer.keys_url}
  oauth_issuer: {issuer.name}
  oauth_audience: {audience}
  oauth_clock_skew: 0s
"""


class Site:
    """A broker and its issuer."""

    def __init__(self, folder: Path, issuer: OidcIssuer) -> None:
        self.issuer = issuer
        self._certificates = Certificates(folder / "certificates")
        config = folder / "barnabas.yaml"
        files = self._certificates.broker()
        config.write_text(CONFIG.format(files=files, issuer=issuer, audience=AUDIENCE))
        self.broker = BrokerSubprocess(
            folder / "data",
            arguments=("--config", str(config)),
            listener="LOCAL",
            environment={"SSL_CERT_FILE": issuer.authority},
        )

    def prepare(self) -> None:
        """Give the client `orders` its rights; the other one has none."""
        with Wire({"bootstrap.servers": self.broker.listeners["LOCAL"]}) as wire:
            AclAdmin(wire).create([*rights(ResourceType.TOPIC), *rights(ResourceType.GROUP)])

    def librdkafka(self, client: str, **others: object) -> dict[str, Any]:
        """Return the properties of confluent-kafka."""
        return {
            "bootstrap.servers": self.broker.listeners["TOKENS"],
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self._certificates.authority,
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": client,
            "sasl.oauthbearer.client.secret": SECRETS[client],
            "sasl.oauthbearer.token.endpoint.url": self.issuer.token_url,
            "https.ca.location": self.issuer.authority,
            **others,
        }

    def java_file(self, folder: Path, client: str) -> str:
        """Write the properties of a Java client."""
        file = folder / f"{client}.properties"
        login = (
            f'{OAUTH}.OAuthBearerLoginModule required clientId="{client}" '
            f'clientSecret="{SECRETS[client]}" scope="kafka" ssl.truststore.type="PEM" '
            f'ssl.truststore.location="{self.issuer.authority}";'
        )
        properties = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificates.authority,
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": self.issuer.token_url,
            "sasl.jaas.config": login,
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return str(file)


def rights(resource: ResourceType) -> Iterator[AclAdded]:
    """Return ACLs that let `orders` do everything with its topics or groups."""
    yield AclAdded(
        acl_id="",
        resource_type=resource,
        pattern_type=PatternType.PREFIXED,
        resource_name=ORDERS,
        principal=f"User:{ORDERS}",
        host="*",
        operation=Operation.ALL,
        permission_type=PermissionType.ALLOW,
    )


@contextlib.contextmanager
def site_of(folder: Path, *, lifetime_s: int = 3600) -> Iterator[Site]:
    with OidcIssuer(folder / "issuer", SECRETS, lifetime_s=lifetime_s) as issuer:
        made = Site(folder, issuer)
        with made.broker:
            made.prepare()
            yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("oidc")) as running:
        yield running


def send(given: dict[str, Any], topic: str, values: list[str]) -> list[KafkaError | None]:
    """Produce, and return what was reported of each record."""
    told: list[KafkaError | None] = []
    producer = Producer(given)
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return told


def read(given: dict[str, Any], topic: str, group: str) -> list[str]:
    """Consume in a group."""
    consumer = Consumer({**given, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[str] = []

    def look() -> bool:
        messages = consumer.consume(100, 0.1)
        found.extend((each.value() or b"").decode() for each in messages if not each.error())
        return len(found) >= len(RECORDS)

    try:
        eventually(look, PATIENCE_S)
    finally:
        consumer.close()
    return found


def test_librdkafka(site: Site) -> None:
    given = site.librdkafka(ORDERS)
    before = len(site.issuer.given)
    assert set(send(given, f"{TOPIC}-c", RECORDS)) == {None}
    assert read(given, f"{TOPIC}-c", "orders-group") == RECORDS
    assert site.issuer.given[before:] == [ORDERS, ORDERS], "one for each client object"


def test_the_subject_of_the_token_is_the_principal(site: Site) -> None:
    (told,) = send(site.librdkafka(STRANGER), f"{TOPIC}-c", ["denied"])
    assert told is not None
    assert told.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_java_clients(site: Site, jars: str, tmp_path: Path) -> None:
    topic, text = f"{TOPIC}-java", "".join(f"{value}\n" for value in RECORDS)
    allowed = (f"-D{ALLOWED_URLS}={site.issuer.token_url}",)
    with tools(RUN_TOOLS, jars, site.broker.listeners["TOKENS"], flags=allowed) as jvm:
        config = ("--command-config", site.java_file(tmp_path, ORDERS), "--topic", topic)
        made = jvm.run(f"{TOOLS}.TopicCommand", *config, "--create", "--partitions", "1")
        assert made.code == 0, made.output
        sent = jvm.run(f"{TOOLS}.ConsoleProducer", *config, text=text)
        assert sent.code == 0, sent.output
        wanted = ("--from-beginning", "--max-messages", str(len(RECORDS)))
        name, group = f"{TOOLS}.consumer.ConsoleConsumer", ("--group", "orders-java")
        shown = jvm.run(name, *config, *wanted, *group, "--timeout-ms", "60000")
        assert [line for line in shown.output.splitlines() if line in RECORDS] == RECORDS
        config = ("--command-config", site.java_file(tmp_path, STRANGER), "--topic", topic)
        denied = jvm.run(f"{TOOLS}.TopicCommand", *config, "--delete")
        assert denied.code == 1, denied.output
    assert STRANGER in site.issuer.given


def test_the_issuer_changes_its_key(site: Site) -> None:
    """The broker notices by the first token with the new key, and fetches the keys again."""
    site.issuer.rotate()
    assert set(send(site.librdkafka(ORDERS), f"{TOPIC}-rotated", RECORDS)) == {None}


def test_clients_go_on_when_their_tokens_expire(tmp_path: Path) -> None:
    """Tokens live for seconds: clients get new ones, log in again, and lose nothing.

    A busy machine may make a client late, and connect anew. That loses nothing either.
    """
    with site_of(tmp_path, lifetime_s=SHORT_S) as site:
        sent, delivered = send_until_renewed(site, tokens=4)
        assert delivered == sent
        assert len(set(read(site.librdkafka(ORDERS), TOPIC, "orders-group"))) >= len(RECORDS)
        log = site.broker.log_file.read_text()
    assert not any(secret in log for secret in SECRETS.values())


def send_until_renewed(site: Site, tokens: int) -> tuple[int, int]:
    """Produce until the issuer has given so many tokens; return what was sent and delivered."""
    told: list[KafkaError | None] = []
    given = site.librdkafka(ORDERS, **{"enable.idempotence": True, "log_level": 0})
    producer, sent = Producer(given), 0

    def has_renewed() -> bool:
        nonlocal sent
        producer.produce(TOPIC, str(sent), on_delivery=lambda error, _: told.append(error))
        sent += 1
        producer.poll(0.05)
        return len(site.issuer.given) >= tokens

    eventually(has_renewed, PATIENCE_S)
    assert producer.flush(PATIENCE_S) == 0
    return sent, told.count(None)
