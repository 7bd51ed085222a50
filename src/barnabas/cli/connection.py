"""The options every command shares, and how a broker is reached.

A plain TCP connection is tried first: librdkafka would go on trying a dead address until its
time is over, while the operating system knows at once that nobody listens.
"""

import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.failure import CommandError, no_broker
from barnabas.wire.addresses import split_address

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 10.0
COMPLETION_TIMEOUT_S = 0.2

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="BARNABAS_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Where to find a broker.",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-X",
        metavar="KEY=VALUE",
        help="Any property of librdkafka; may be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def pair(text: str, what: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise CommandError(f"{what} {text!r} is not of the form KEY=VALUE")
    return key, value


def pairs(texts: Iterable[str] | None, what: str) -> dict[str, str]:
    """Split many KEY=VALUE; the last one of a key wins."""
    return dict(pair(text, what) for text in texts or ())


def settings(bootstrap: str, properties: Iterable[str] | None) -> dict[str, object]:
    """Return librdkafka's properties: ours, then those of the command line."""
    given = pairs(properties, "property")
    # Its log lines would mix with our sentences; they are wanted only by whoever debugs.
    level = 7 if "debug" in given else 0
    base = {"bootstrap.servers": bootstrap, "client.id": "barnabas-cli", "log_level": level}
    return {**base, **given}


def require_listener(bootstrap: str, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
    """Raise unless some address of the list takes connections."""
    for address in bootstrap.split(","):
        host, port = split_address(address)
        try:
            with socket.create_connection((host, port), timeout_s):
                return
        except OSError:
            continue
    raise no_broker(bootstrap)


def open_admin(bootstrap: str, properties: list[str] | None) -> "AdminClient":
    """Return an admin client of a broker that takes connections."""
    from confluent_kafka.admin import AdminClient

    require_listener(bootstrap)
    return AdminClient(settings(bootstrap, properties))


def open_producer(
    bootstrap: str, properties: list[str] | None, own: Mapping[str, object]
) -> "Producer":
    """Return a producer; the command line's properties win over the command's own."""
    from confluent_kafka import Producer

    require_listener(bootstrap)
    return Producer({**own, **settings(bootstrap, properties)})


def open_consumer(
    bootstrap: str, properties: list[str] | None, own: Mapping[str, object]
) -> "Consumer":
    """Return a consumer; the command line's properties win over the command's own."""
    from confluent_kafka import Consumer

    require_listener(bootstrap)
    return Consumer({**own, **settings(bootstrap, properties)})


def metadata(
    client: "AdminClient | Producer | Consumer", bootstrap: str, topic: str | None = None
) -> "ClusterMetadata":
    """Ask for the cluster's topics; naming one lets a broker that does so create it."""
    from confluent_kafka import KafkaException

    try:
        return client.list_topics(topic, timeout=ANSWER_TIMEOUT_S)
    except KafkaException as error:
        raise CommandError(
            f"{bootstrap} takes connections but did not answer as a Kafka broker "
            f"({error.args[0].str()}); check the port and -X security.protocol"
        ) from error


def existing_topic(
    client: "AdminClient | Producer | Consumer", bootstrap: str, name: str
) -> "TopicMetadata":
    """Return a topic's metadata, or say how to get such a topic."""
    found = metadata(client, bootstrap).topics.get(name)
    if found is None:
        raise no_topic(name)
    return found


def no_topic(name: str) -> CommandError:
    """Return the error for a topic that is not there."""
    return CommandError(
        f"There is no topic {name}; `barnabas topic list` shows those there are, "
        f"`barnabas topic create {name}` makes it"
    )


def complete_topic(context: typer.Context, incomplete: str) -> list[str]:
    """Offer topic names to the shell, if a broker answers at once."""
    bootstrap = context.params.get("bootstrap") or DEFAULT_BOOTSTRAP
    try:
        require_listener(bootstrap, COMPLETION_TIMEOUT_S)
        from confluent_kafka.admin import AdminClient

        client = AdminClient(settings(bootstrap, context.params.get("properties")))
        names = client.list_topics(timeout=COMPLETION_TIMEOUT_S).topics
    except Exception:  # noqa: BLE001 - a shell wants names or silence
        return []
    return sorted(name for name in names if name.startswith(incomplete))
