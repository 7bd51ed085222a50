"""The options of a sink, read and checked when the query is planned.

    topic                  the topic of all rows; overrides a column topic
    includeHeaders         whether column headers is written (true)
    exactlyOnce            each row once, whatever fails (true); false is at least once
    transactionalIdPrefix  what transactional ids and marker groups begin with (barnabas-spark)
    txnAppId, txnVersion   batch writes: a version of an application is written once, however often
                           the job runs; in foreachBatch, its query's name and its batch id
    checkReplays           whether a batch that is written again must have the rows that it had
                           before (true); false skips it whatever its rows are
    kafka.*                properties of librdkafka, by its names

Spark's connector hands `kafka.*` to Java. Most names are the same in librdkafka; those that are
not are refused here, with the name that is meant. Whatever has no meaning on this path (linger.ms:
batches are made of whole Arrow batches and never wait) is accepted and has no effect.
"""

import difflib
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.protocol.compression import Codec
from barnabas.spark.sending import Delivery

PREFIX = "kafka."
OWN = (
    "topic",
    "includeHeaders",
    "exactlyOnce",
    "transactionalIdPrefix",
    "txnAppId",
    "txnVersion",
    "checkReplays",
    "kafka.bootstrap.servers",
)
SPARKS_OWN = {"checkpointlocation", "path", "queryname"}
"""Options that Spark passes on to every sink."""

DEFAULT_ID_PREFIX = "barnabas-spark"
BATCH_BYTES = 1_000_000
IN_FLIGHT_MAX = 5
DELIVERY_TIMEOUT_MS = 120_000
REQUEST_TIMEOUT_MS = 30_000
TRANSACTION_TIMEOUT_MS = 300_000
"""Rows wait for the slowest task of their batch, and readers wait for a batch that was killed."""

JAVA_ONLY = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "max.request.size": "message.max.bytes, and kafka.batch.size for what is sent at once",
    "max.block.ms": "delivery.timeout.ms",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "sasl.jaas.config": "sasl.username and kafka.sasl.password",
    "ssl.truststore.location": "ssl.ca.location (a PEM file)",
    "ssl.truststore.password": "ssl.ca.location (a PEM file needs no password)",
    "ssl.truststore.type": "ssl.ca.location (a PEM file)",
    "ssl.keystore.type": "ssl.certificate.location and kafka.ssl.key.location (PEM files)",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "connections.max.idle.ms": "connections.max.idle.ms is Java's; leave it out",
}
REFUSED = {
    "key.serializer": "bytes are written as they are; leave it out and cast column key",
    "value.serializer": "bytes are written as they are; leave it out and cast column value",
    "partitioner.class": "keys go where Java's default puts them; use a column partition",
    "interceptor.classes": "Java classes cannot run here; leave it out",
    "transactional.id": "set option transactionalIdPrefix; the rest of the id names the task",
}
ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


class OptionError(ValueError):
    """An option is missing, unknown or wrong; the message says what to write instead."""


class SinkOptions(NamedTuple):
    """What a sink was told."""

    bootstrap: str
    topic: str | None
    include_headers: bool
    exactly_once: bool
    id_prefix: str
    application: tuple[str, int] | None
    """The application and version of a batch write that is to happen once."""
    check_replays: bool
    """Whether a batch that is written again must have the same rows."""
    client_id: str
    delivery: Delivery
    batch_bytes: int
    transaction_timeout_ms: int
    properties: dict[str, str]
    """librdkafka's properties, all of them."""

    @property
    def target(self) -> str:
        """What rows are written to, as the record of a job names it."""
        return "topics of a column" if self.topic is None else self.topic

    @property
    def plaintext(self) -> bool:
        """Whether connections need neither TLS nor a password."""
        return self.properties.get("security.protocol", "plaintext").lower() == "plaintext"


def parse_options(options: Mapping[str, str]) -> SinkOptions:
    """Read options; their names are taken in any case."""
    given = {name.lower(): str(value) for name, value in options.items()}
    _refuse_unknown(given)
    properties = {
        name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)
    }
    bootstrap = properties.get("bootstrap.servers", "")
    if not bootstrap.strip():
        raise OptionError("Option kafka.bootstrap.servers is missing: HOST:PORT[,HOST:PORT...]")
    _refuse_javas(properties)
    exactly_once = _truth(given, "exactlyOnce", default=True)
    found = SinkOptions(
        bootstrap=bootstrap,
        topic=given.get("topic"),
        include_headers=_truth(given, "includeHeaders", default=True),
        exactly_once=exactly_once,
        id_prefix=given.get("transactionalidprefix", DEFAULT_ID_PREFIX),
        application=_application(given),
        check_replays=_truth(given, "checkReplays", default=True),
        client_id=properties.get("client.id", DEFAULT_ID_PREFIX),
        delivery=_delivery(properties, exactly_once=exactly_once),
        batch_bytes=_number(properties, ("batch.size",), BATCH_BYTES, low=1),
        transaction_timeout_ms=_number(
            properties, ("transaction.timeout.ms",), TRANSACTION_TIMEOUT_MS, low=1000
        ),
        properties=properties,
    )
    _check_together(found)
    return found


def check_properties(options: SinkOptions) -> None:
    """Let librdkafka check the names and values of its properties."""
    import confluent_kafka

    properties = {"log_level": "0", **options.properties}
    try:
        confluent_kafka.Producer({**properties, "bootstrap.servers": ""})
    except confluent_kafka.KafkaException as error:
        raise OptionError(
            f"A kafka.* option is wrong: {error.args[0].str()}; the names are those of "
            "https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md"
        ) from error


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in OWN}
    for name in given:
        if name.startswith(PREFIX) or name in known or name in SPARKS_OWN:
            continue
        close = difflib.get_close_matches(name, known, 1)
        meant = f"did you mean {known[close[0]]}?" if close else f"it knows {', '.join(OWN)}"
        hint = " (properties of the client begin with kafka.)" if "." in name else ""
        raise OptionError(f"The sink has no option {name!r}; {meant}{hint}")


def _refuse_javas(properties: Mapping[str, str]) -> None:
    for name in properties:
        if name in JAVA_ONLY:
            raise OptionError(f"kafka.{name} is Java's; write kafka.{JAVA_ONLY[name]}")
        if name in REFUSED:
            raise OptionError(f"kafka.{name}: {REFUSED[name]}")


def _delivery(properties: Mapping[str, str], *, exactly_once: bool) -> Delivery:
    codec = _either(properties, ("compression.type", "compression.codec"), "none").lower()
    if codec.upper() not in Codec.__members__:
        names = ", ".join(name.lower() for name in Codec.__members__)
        raise OptionError(f"kafka.compression.type is {codec!r}; it must be one of {names}")
    acks = _either(properties, ("acks", "request.required.acks"), "all").lower()
    if acks not in ACKS:
        raise OptionError(f"kafka.acks is {acks!r}; it must be all, 1 or 0")
    if exactly_once and ACKS[acks] != -1:
        raise OptionError(
            f"kafka.acks={acks} may lose rows; leave it out, or set exactlyOnce=false"
        )
    level = properties.get("compression.level")
    timeouts = ("delivery.timeout.ms", "message.timeout.ms")
    in_flight = ("max.in.flight.requests.per.connection", "max.in.flight")
    return Delivery(
        codec=Codec[codec.upper()],
        level=None if level in {None, "-1"} else _number(properties, ("compression.level",), 0),
        acks=ACKS[acks],
        request_timeout_ms=_number(properties, ("request.timeout.ms",), REQUEST_TIMEOUT_MS, low=1),
        delivery_timeout_ms=_number(properties, timeouts, DELIVERY_TIMEOUT_MS, low=1),
        in_flight_max=min(IN_FLIGHT_MAX, _number(properties, in_flight, IN_FLIGHT_MAX, low=1)),
    )


def _check_together(options: SinkOptions) -> None:
    if options.topic is not None and not options.topic.strip():
        raise OptionError("Option topic is empty; name a topic, or leave it out")
    if options.exactly_once and not options.plaintext:
        raise OptionError(
            "exactlyOnce needs a plaintext listener, since the driver ends transactions that tasks "
            "began and librdkafka cannot; name such a listener, or set exactlyOnce=false"
        )
    if options.application is not None and not options.exactly_once:
        raise OptionError("txnAppId and txnVersion need exactlyOnce=true")
    if options.exactly_once and options.properties.get("enable.idempotence", "true") != "true":
        raise OptionError("kafka.enable.idempotence=false needs exactlyOnce=false")


def _application(given: Mapping[str, str]) -> tuple[str, int] | None:
    name, version = given.get("txnappid"), given.get("txnversion")
    if name is None and version is None:
        return None
    if not name or version is None:
        raise OptionError("txnAppId and txnVersion go together; set both")
    return name, _number(given, ("txnversion",), 0, low=0, shown="txnVersion")


def _truth(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = given.get(name.lower(), str(default)).lower()
    if value not in {"true", "false"}:
        raise OptionError(f"Option {name} is {value!r}; it must be true or false")
    return value == "true"


def _either(given: Mapping[str, str], names: tuple[str, ...], default: str) -> str:
    return next((given[name] for name in names if name in given), default)


def _number(
    given: Mapping[str, str],
    names: tuple[str, ...],
    default: int,
    *,
    low: int | None = None,
    shown: str | None = None,
) -> int:
    value = _either(given, names, str(default))
    try:
        number = int(value)
    except ValueError:
        number = None
    if number is None or (low is not None and number < low):
        least = "" if low is None else f" of at least {low}"
        raise OptionError(
            f"Option {shown or PREFIX + names[0]} is {value!r}; it must be a whole number{least}"
        )
    return number
