"""Connect to a cluster with confluent-kafka.

A plain TCP connection is tried first. librdkafka would retry a dead address until its timeout,
while the operating system reports immediately that no process listens there.
"""

import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.admin.admin_errors import AdminError, no_broker, no_topic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.addresses import split_address
from barnabas.wire.cluster_wire import Wire
from barnabas.wire.link_security import TOKEN, TOKEN_LOGIN
from barnabas.wire.wire_failures import DemandError, LinkError, UnsupportedPropertyError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 10.0
TOKEN_VALID_S = 3600.0


def pair(text: str, what: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise AdminError(f"{what} {text!r} is not of the form KEY=VALUE")
    return key, value


def pairs(texts: Iterable[str] | None, what: str) -> dict[str, str]:
    """Split several KEY=VALUE; the last value of a key counts."""
    return dict(pair(text, what) for text in texts or ())


def settings(bootstrap: str, properties: Iterable[str] | None) -> dict[str, object]:
    """Return librdkafka's properties: our defaults, overridden by those of the command line."""
    given = pairs(properties, "property")
    # librdkafka's log lines would mix with our output; they help only when debugging.
    level = 7 if "debug" in given else 0
    base = {"bootstrap.servers": bootstrap, "client.id": "barnabas-cli", "log_level": level}
    token = given.pop(TOKEN, None)
    if token is None:
        return {**base, **given}
    # librdkafka has no property for a token that was made elsewhere.
    return {**base, **given, "oauth_cb": lambda _: (token, time.time() + TOKEN_VALID_S)}


def require_listener(bootstrap: str, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
    """Raise unless some address of the list accepts connections."""
    for address in bootstrap.split(","):
        host, port = split_address(address)
        try:
            with socket.create_connection((host, port), timeout_s):
                return
        except OSError:
            continue
    raise no_broker(bootstrap)


def require_access(bootstrap: str, properties: list[str] | None) -> None:
    """Raise if no broker answers, or if it demands TLS or a login that the client lacks.

    librdkafka would retry, and then report a timeout.
    """
    require_listener(bootstrap)
    given = settings(bootstrap, properties)
    if TOKEN_LOGIN in given:
        raise AdminError(
            "librdkafka, which this command uses, cannot log in with a delegation token; log in "
            "with a password or a certificate"
        )
    is_plain = str(given.get("security.protocol", "plaintext")).lower() == "plaintext"
    try:
        with Wire(given, "barnabas-cli", CONNECT_TIMEOUT_S) as wire:
            wire.ask_any(MetadataRequest(topics=[]), MetadataResponse)
    except UnsupportedPropertyError:
        return
    except LinkError as error:
        if isinstance(error, DemandError) or not is_plain:
            raise AdminError(str(error)) from None


def open_admin(bootstrap: str, properties: list[str] | None) -> "AdminClient":
    """Return an admin client for a broker that accepts connections."""
    from confluent_kafka.admin import AdminClient

    require_access(bootstrap, properties)
    return AdminClient(settings(bootstrap, properties))


def open_producer(
    bootstrap: str, properties: list[str] | None, own: Mapping[str, object]
) -> "Producer":
    """Return a producer; properties of the command line override those of the command."""
    from confluent_kafka import Producer

    require_access(bootstrap, properties)
    return Producer({**own, **settings(bootstrap, properties)})


def open_consumer(
    bootstrap: str, properties: list[str] | None, own: Mapping[str, object]
) -> "Consumer":
    """Return a consumer; properties of the command line override those of the command."""
    from confluent_kafka import Consumer

    require_access(bootstrap, properties)
    return Consumer({**own, **settings(bootstrap, properties)})


def metadata(
    client: "AdminClient | Producer | Consumer", bootstrap: str, topic: str | None = None
) -> "ClusterMetadata":
    """Request metadata; a broker with auto-creation may create the named topic."""
    from confluent_kafka import KafkaException

    try:
        return client.list_topics(topic, timeout=ANSWER_TIMEOUT_S)
    except KafkaException as error:
        raise AdminError(
            f"{bootstrap} accepts connections but did not answer like a Kafka broker "
            f"({error.args[0].str()}); check the port, and security.protocol (--config or -X)"
        ) from error


def existing_topic(
    client: "AdminClient | Producer | Consumer", bootstrap: str, name: str
) -> "TopicMetadata":
    """Return a topic's metadata, or raise an error that says how to create the topic."""
    found = metadata(client, bootstrap).topics.get(name)
    if found is None:
        raise no_topic(name)
    return found
