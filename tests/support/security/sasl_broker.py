"""A real broker whose clients authenticate with SASL."""

import dataclasses
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from barnabas.model.security_settings import ListenerSettings, SecuritySettings
from barnabas.model.settings import Settings
from barnabas.testing.broker import Broker
from barnabas.testing.free_ports import free_port

ADMIN, ADMIN_PASSWORD = "admin", "the admin's password, =, \u00fcber"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


class SaslBroker(Broker):
    """A broker with one SASL_PLAINTEXT listener and an admin."""

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        mechanisms: tuple[str, ...] = MECHANISMS,
        security: SecuritySettings | None = None,
        password: str = ADMIN_PASSWORD,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(data, settings=settings, first_admin=(ADMIN, password))
        self._mechanisms = mechanisms
        self._security = security or SecuritySettings()

    @property
    def settings(self) -> Settings:
        """The settings of the broker."""
        listener = ListenerSettings(
            name="SASL", protocol="SASL_PLAINTEXT", mechanisms=self._mechanisms
        )
        return dataclasses.replace(super().settings, listeners=(listener,), security=self._security)


@contextmanager
def sasl_cluster(
    folder: Path, security: SecuritySettings | None = None
) -> Iterator[list[SaslBroker]]:
    """Run three brokers that are one cluster, in threads of this process."""
    voters = ",".join(f"{number}@127.0.0.1:{free_port()}" for number in (1, 2, 3))
    brokers = [
        SaslBroker(
            folder / str(number),
            security=security,
            settings={
                "broker.id": number,
                "cluster.voters": voters,
                "cluster.broker_session_timeout": "9s",
            },
        )
        for number in (1, 2, 3)
    ]
    with ThreadPoolExecutor(len(brokers)) as threads:
        try:
            list(threads.map(SaslBroker.start, brokers))  # a majority is needed to start
            yield brokers
        finally:
            list(threads.map(SaslBroker.stop, brokers))


def properties(
    bootstrap: str,
    mechanism: str = "SCRAM-SHA-512",
    user: str = ADMIN,
    password: str = ADMIN_PASSWORD,
) -> dict[str, str | int]:
    """Return librdkafka's properties for a user."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }
