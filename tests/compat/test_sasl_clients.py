"""Stock clients against a broker that demands a login: every mechanism of each client."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from barnabas.model.security_settings import SecuritySettings
from barnabas.security.authenticator import FAILED_TEXT, Authenticator
from barnabas.testing.waiting import eventually
from tests.support.security.sasl_broker import (
    ADMIN,
    ADMIN_PASSWORD,
    MECHANISMS,
    SaslBroker,
    properties,
)
from tests.support.security.tokens import AUDIENCE, ISSUER, Issuer

kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")
aiokafka_abc = pytest.importorskip("aiokafka.abc")
kafka_oauth = pytest.importorskip("kafka.net.sasl.oauth")

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OAUTHBEARER = "OAUTHBEARER"
EVERY = (*MECHANISMS, OAUTHBEARER)
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def security(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> SecuritySettings:
    keys: Path = tmp_path_factory.mktemp("oauth") / "keys.json"
    keys.write_text(issuer.published())
    return SecuritySettings(oauth_keys=str(keys), oauth_issuer=ISSUER, oauth_audience=AUDIENCE)


@pytest.fixture(scope="module")
def broker(security: SecuritySettings) -> Iterator[SaslBroker]:
    with SaslBroker(mechanisms=EVERY, security=security) as running:
        yield running


def librdkafka(
    broker: SaslBroker, mechanism: str, issuer: Issuer, lifetime_s: float = 600
) -> dict[str, Any]:
    """Return the properties of confluent-kafka."""
    if mechanism != OAUTHBEARER:
        return properties(broker.bootstrap, mechanism)

    def token(_: str) -> tuple[str, float]:
        expires_s = time.time() + lifetime_s
        return issuer.token(exp=expires_s), expires_s

    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "oauth_cb": token,
        "log_level": 0,
    }


def send(producer: Producer, topic: str, count: int = 10) -> list[Message]:
    """Produce some records; return those that were delivered."""
    delivered: list[Message] = []

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None
        delivered.append(message)

    for number in range(count):
        producer.produce(topic, str(number).encode(), on_delivery=note)
    assert producer.flush(PATIENCE_S) == 0
    return delivered


def read(consumer: Consumer, topic: str, count: int = 10) -> list[bytes]:
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        messages = consumer.consume(1_000, timeout=0.5)
        found += [each.value() or b"" for each in messages if each.error() is None]
    return found


def python_settings(broker: SaslBroker, mechanism: str, tokens: object) -> dict[str, Any]:
    """Return the settings of kafka-python and aiokafka; `tokens` is for OAUTHBEARER."""
    if mechanism == OAUTHBEARER:
        login = {"sasl_oauth_token_provider": tokens}
    else:
        login = {"sasl_plain_username": ADMIN, "sasl_plain_password": ADMIN_PASSWORD}
    return {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        **login,
    }


def numbers(count: int = 10) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


@pytest.mark.parametrize("mechanism", EVERY)
def test_confluent_kafka(broker: SaslBroker, issuer: Issuer, mechanism: str, topic: str) -> None:
    given = librdkafka(broker, mechanism, issuer)
    producer = Producer(given)
    producer.poll(0)  # which calls oauth_cb
    assert len(send(producer, topic)) == 10
    consumer = Consumer({**given, "group.id": topic, "auto.offset.reset": "earliest"})
    with contextlib.closing(consumer):
        assert read(consumer, topic) == numbers()


@pytest.mark.parametrize("mechanism", EVERY)
def test_kafka_python(broker: SaslBroker, issuer: Issuer, mechanism: str, topic: str) -> None:
    class Tokens(kafka_oauth.AbstractTokenProvider):  # type: ignore[misc, name-defined]
        def token(self) -> str:
            return issuer.token()

    given = python_settings(broker, mechanism, Tokens())
    producer = kafka.KafkaProducer(**given)
    for value in numbers():
        producer.send(topic, value).get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=10_000, **given
    )
    found = []
    for record in consumer:
        found.append(record.value)
        if len(found) == 10:
            break
    consumer.close()
    assert found == numbers()


@pytest.mark.parametrize("mechanism", EVERY)
def test_aiokafka(broker: SaslBroker, issuer: Issuer, mechanism: str, topic: str) -> None:
    class Tokens(aiokafka_abc.AbstractTokenProvider):  # type: ignore[misc, name-defined]
        async def token(self) -> str:
            return issuer.token()

    given = python_settings(broker, mechanism, Tokens())

    async def scenario() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(**given)
        await producer.start()
        for value in numbers():
            await producer.send_and_wait(topic, value)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **given
        )
        await consumer.start()
        found = [(await consumer.getone()).value for _ in range(10)]
        await consumer.stop()
        return found

    assert asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S)) == numbers()


def problem_of(given: dict[str, Any]) -> str:
    """Return what librdkafka reports of a login that fails."""
    found: list[str] = []
    admin = AdminClient({**given, "error_cb": lambda error: found.append(error.str())})
    eventually(lambda: admin.poll(0.1) is not None and len(found) > 0)
    return found[0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(ADMIN, "wrong"), ("mallory", ADMIN_PASSWORD)])
def test_a_wrong_password(broker: SaslBroker, mechanism: str, user: str, password: str) -> None:
    given = properties(broker.bootstrap, mechanism, user, password)
    assert FAILED_TEXT in problem_of(given)


def test_a_token_of_another_issuer(broker: SaslBroker) -> None:
    given = librdkafka(broker, OAUTHBEARER, Issuer())
    assert FAILED_TEXT in problem_of(given)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_and_aiokafka_report_a_wrong_password(
    broker: SaslBroker, mechanism: str
) -> None:
    given = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": ADMIN,
        "sasl_plain_password": "wrong",
    }
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaProducer(**given, bootstrap_timeout_ms=1_000).close()

    async def scenario() -> None:
        producer = aiokafka.AIOKafkaProducer(**given)
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.KafkaError):
        asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_the_admin_client_manages_users(broker: SaslBroker) -> None:
    admin = AdminClient(properties(broker.bootstrap))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    upsertion = UserScramCredentialUpsertion("carol", info, b"carol's", b"a salt of carol")
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result(PATIENCE_S)
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(PATIENCE_S)
    found = [(each.mechanism, each.iterations) for each in described.scram_credential_infos]
    assert found == [(ScramMechanism.SCRAM_SHA_256, 8192)]
    assert set(admin.describe_user_scram_credentials(None).result(PATIENCE_S)) == {ADMIN, "carol"}
    carol = AdminClient(properties(broker.bootstrap, "SCRAM-SHA-256", "carol", "carol's"))
    assert carol.list_topics(timeout=PATIENCE_S).brokers
    deletion = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
    for future in admin.alter_user_scram_credentials([deletion]).values():
        future.result(PATIENCE_S)
    given = properties(broker.bootstrap, "SCRAM-SHA-256", "carol", "carol's")
    assert FAILED_TEXT in problem_of(given)


class TestReauthentication:
    """Sessions of two seconds: clients log in again while they work."""

    @pytest.fixture
    def short(self, security: SecuritySettings) -> Iterator[SaslBroker]:
        from dataclasses import replace

        with SaslBroker(
            mechanisms=EVERY, security=replace(security, reauthentication_ms=1_500)
        ) as running:
            yield running

    @pytest.mark.parametrize("mechanism", EVERY)
    def test_under_load(
        self,
        short: SaslBroker,
        issuer: Issuer,
        mechanism: str,
        topic: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """librdkafka logs in again in time: no connection is lost, and no record."""
        again: list[Authenticator] = []
        original = Authenticator.authenticate_again

        def noted(authenticator: Authenticator) -> None:
            again.append(authenticator)
            original(authenticator)

        monkeypatch.setattr(Authenticator, "authenticate_again", noted)
        lost: list[str] = []
        given = librdkafka(short, mechanism, issuer)
        producer = Producer({**given, "error_cb": lambda error: lost.append(error.str())})
        producer.poll(0)
        sent = 0
        until = time.monotonic() + 4
        while time.monotonic() < until:
            sent += len(send(producer, topic, 200))
        consumer = Consumer({**given, "group.id": topic, "auto.offset.reset": "earliest"})
        with contextlib.closing(consumer):
            assert len(read(consumer, topic, sent)) == sent
        assert lost == []
        assert len(again) >= 2

    def test_kafka_python_goes_on(self, short: SaslBroker, topic: str) -> None:
        """It logs in again, or connects again, and loses no record."""
        producer = kafka.KafkaProducer(
            bootstrap_servers=short.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username=ADMIN,
            sasl_plain_password=ADMIN_PASSWORD,
            enable_idempotence=True,
        )
        sent, until = 0, time.monotonic() + 4
        while time.monotonic() < until:
            producer.send(topic, str(sent).encode()).get(PATIENCE_S)
            sent += 1
        producer.close()
        assert self.count(short, topic) == sent

    def test_aiokafka_goes_on(self, short: SaslBroker, topic: str) -> None:
        """It cannot log in again, so it connects again."""

        async def scenario() -> int:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=short.bootstrap,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="SCRAM-SHA-512",
                sasl_plain_username=ADMIN,
                sasl_plain_password=ADMIN_PASSWORD,
                enable_idempotence=True,
            )
            await producer.start()
            sent, until = 0, time.monotonic() + 4
            while time.monotonic() < until:
                await producer.send_and_wait(topic, str(sent).encode())
                sent += 1
            await producer.stop()
            return sent

        sent = asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
        assert self.count(short, topic) == sent

    @staticmethod
    def count(broker: SaslBroker, topic: str) -> int:
        consumer = Consumer({**properties(broker.bootstrap), "group.id": "count"})
        with contextlib.closing(consumer):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        return int(high) - int(low)

    def test_a_user_that_was_deleted_is_out_when_its_session_ends(
        self, short: SaslBroker, topic: str
    ) -> None:
        admin = AdminClient(properties(short.bootstrap))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = UserScramCredentialUpsertion("dave", info, b"dave's", b"a salt of dave")
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(PATIENCE_S)
        found: list[str] = []
        given = properties(short.bootstrap, "SCRAM-SHA-512", "dave", "dave's")
        producer = Producer(
            {
                **given,
                "error_cb": lambda error: found.append(error.str()),
                "message.timeout.ms": 60_000,
            }
        )
        send(producer, topic)
        deletion = UserScramCredentialDeletion("dave", ScramMechanism.SCRAM_SHA_512)
        for future in admin.alter_user_scram_credentials([deletion]).values():
            future.result(PATIENCE_S)
        eventually(lambda: producer.poll(0.1) >= 0 and any(FAILED_TEXT in text for text in found))


def test_a_password_that_changes_while_a_client_is_connected(
    broker: SaslBroker, topic: str
) -> None:
    """As in Kafka, an open connection stays open; the next one needs the new password."""
    admin = AdminClient(properties(broker.bootstrap))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)

    def set_password(password: bytes) -> None:
        upsertion = UserScramCredentialUpsertion("erin", info, password, b"a salt of erin")
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(PATIENCE_S)

    set_password(b"first")
    given = properties(broker.bootstrap, "PLAIN", "erin", "first")
    producer = Producer(given)
    send(producer, topic)
    set_password(b"second")
    send(producer, topic)
    assert FAILED_TEXT in problem_of(given)
    again = properties(broker.bootstrap, "PLAIN", "erin", "second")
    assert AdminClient(again).list_topics(timeout=PATIENCE_S).brokers


def test_many_logins_at_once(broker: SaslBroker) -> None:
    """Key derivations run on threads: a client that is connected is served meanwhile."""
    found: list[bool] = []

    def log_in(number: int) -> None:
        from barnabas.wire.cluster_wire import Wire

        mechanism = MECHANISMS[number % len(MECHANISMS)]
        with Wire(properties(broker.bootstrap, mechanism)) as wire:
            found.append(bool(wire.metadata().brokers))

    def run(target: Callable[[int], None], number: int) -> threading.Thread:
        thread = threading.Thread(target=target, args=(number,))
        thread.start()
        return thread

    for thread in [run(log_in, number) for number in range(30)]:
        thread.join()
    assert found == [True] * 30
