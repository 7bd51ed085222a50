"""How the named options of this package become librdkafka's properties.

Anything librdkafka knows can be given as `settings={...}`; what is given there wins, so nothing
is out of reach. See librdkafka's CONFIGURATION.md for the names.
"""

from collections.abc import Mapping

from confluent_kafka import KafkaException

from barnabas.client.errors import ClientError, SettingError, from_exception
from barnabas.model.ids import NO_GROUP

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

Setting = str | int | float | bool
Settings = Mapping[str, Setting]


def common(bootstrap: str) -> dict[str, Setting]:
    """Return what every client sets."""
    # The library's own log lines would land on the program's stderr; errors reach us anyway.
    return {"bootstrap.servers": bootstrap, "client.id": "barnabas", "log_level": 0}


def for_producer(
    bootstrap: str,
    *,
    acks: str,
    compression: str,
    linger_ms: float,
    settings: Settings | None,
) -> dict[str, Setting]:
    """Return a producer's properties; acks=all brings idempotence, so retries never repeat."""
    return {
        **common(bootstrap),
        "acks": acks,
        "compression.type": compression,
        "linger.ms": linger_ms,
        "enable.idempotence": acks == "all",
        **(settings or {}),
    }


def for_consumer(
    bootstrap: str,
    *,
    group: str | None,
    start: str,
    auto_commit: bool,
    settings: Settings | None,
) -> dict[str, Setting]:
    """Return a consumer's properties; without a group no coordinator is used."""
    return {
        **common(bootstrap),
        "group.id": group or NO_GROUP,
        "auto.offset.reset": "earliest" if start == "beginning" else "latest",
        "enable.auto.commit": auto_commit and group is not None,
        # Offsets are stored when a message is done with, not when it is fetched.
        "enable.auto.offset.store": False,
        **(settings or {}),
    }


def setting_error(exception: Exception) -> ClientError:
    """Say which setting a client refused to start with."""
    if isinstance(exception, KafkaException):
        found = from_exception(exception)
        return SettingError(str(found), found.code)
    return SettingError(str(exception))
