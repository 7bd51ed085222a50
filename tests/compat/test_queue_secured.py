"""Tests a work queue over TLS and with logins: its own connections use the same properties."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client import AuthenticationError, ClientError, Queue
from tests.support.security.four_protocols import WAYS, Site, broker_of

pytestmark = pytest.mark.compat

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with broker_of(tmp_path_factory.mktemp("secured")) as site:
        yield site


def settings(site: Site, way: str, **named: str) -> dict[str, Any]:
    return {name: str(value) for name, value in site.librdkafka(way, **named).items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_queue_works_over_each_protocol(site: Site, way: str) -> None:
    given = settings(site, way)
    name = f"jobs-{way.lower()}"
    with Queue.create(name, site.address("SASL_SSL"), settings=settings(site, "SASL_SSL")) as made:
        made.put("job")
    with Queue(name, site.address(way), settings=given) as queue:
        message = queue.take(PATIENCE_S)
        assert message is not None
        message.extend()
        message.ack()
        queue.flush(PATIENCE_S)


@pytest.mark.parametrize("way", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_wrong_password_is_an_error_and_no_wait(site: Site, way: str) -> None:
    given = settings(site, way, password="wrong")
    with (
        Queue("jobs", site.address(way), settings=given) as queue,
        pytest.raises(AuthenticationError),
    ):
        queue.take(PATIENCE_S)


def test_no_login_is_an_error_and_no_wait(site: Site) -> None:
    with Queue("jobs", site.address("SASL_PLAINTEXT")) as queue, pytest.raises(ClientError):
        queue.take(PATIENCE_S)
