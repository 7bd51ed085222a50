"""Tests a work queue over TLS with a login: its own connections use the same properties."""

from collections.abc import Iterator

import pytest

from barnabas.client import AuthenticationError, ClientError, Queue
from tests.support.security.sasl_broker import ADMIN, ADMIN_PASSWORD, SaslBroker

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[SaslBroker]:
    with SaslBroker() as broker:
        yield broker


def settings(broker: SaslBroker, password: str = ADMIN_PASSWORD) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": ADMIN,
        "sasl.password": password,
    }


def test_a_queue_logs_in(broker: SaslBroker) -> None:
    with Queue.create("jobs", broker.bootstrap, settings=settings(broker)) as queue:
        queue.put("secret")
        message = queue.take(PATIENCE_S)
        assert message is not None
        message.ack()
        queue.flush(PATIENCE_S)


def test_a_wrong_password_is_an_error_and_no_wait(broker: SaslBroker) -> None:
    with (
        Queue("jobs", broker.bootstrap, settings=settings(broker, "wrong")) as queue,
        pytest.raises(AuthenticationError),
    ):
        queue.take(PATIENCE_S)


def test_no_login_is_an_error_and_no_wait(broker: SaslBroker) -> None:
    with Queue("jobs", broker.bootstrap) as queue, pytest.raises(ClientError):
        queue.take(PATIENCE_S)
