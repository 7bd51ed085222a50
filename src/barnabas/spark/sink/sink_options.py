"""Parses and checks the options of the sink, when the query is planned.

    topic                  the topic of all rows; overrides a column topic
    includeHeaders         whether column headers is written (true)
    exactlyOnce            each row once, in spite of failures (true); false is at least once
    transactionalIdPrefix  the prefix of transactional ids and marker groups (barnabas-spark)
    txnAppId, txnVersion   batch writes: a version of an application is written once, even if the
                           job runs again; in foreachBatch, its query's name and its batch id
    checkReplays           whether a batch that is written again must have the same rows as before
                           (true); false skips it without a comparison
    kafka.*                client settings by librdkafka's or Java's names (client_properties.py)

Options of reads are ignored, so that one dict serves both. Settings of the client that do not apply
here (linger.ms: batches are made of whole Arrow batches and never wait) are accepted without
effect.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.protocol.compression import Codec
from barnabas.spark.client_properties import Side, client_properties, is_direct
from barnabas.spark.query_errors import OptionError
from barnabas.spark.settings.option_names import (
    BOOTSTRAP,
    PREFIX,
    READ_NAMES,
    WRITE_NAMES,
    nearest,
    unknown_names,
)
from barnabas.spark.sink.batch_sending import Delivery

DEFAULT_ID_PREFIX = "barnabas-spark"
BATCH_BYTES = 1_000_000
IN_FLIGHT_MAX = 5
DELIVERY_TIMEOUT_MS = 120_000
REQUEST_TIMEOUT_MS = 30_000
TRANSACTION_TIMEOUT_MS = 300_000
"""Rows wait for the slowest task of their batch, and readers wait for a batch that was killed."""

ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


class SinkOptions(NamedTuple):
    """The parsed options of a sink."""

    bootstrap: str
    topic: str | None
    include_headers: bool
    exactly_once: bool
    id_prefix: str
    application: tuple[str, int] | None
    """The application and version of a batch write that must happen once."""
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
        """The target of the rows, as the record of a job names it."""
        return "topics of a column" if self.topic is None else self.topic

    @property
    def is_direct(self) -> bool:
        """Whether our own connections can be used; otherwise librdkafka's are."""
        return is_direct(self.properties)


def parse_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse options; upper and lower case of names make no difference."""
    given = {name.lower(): str(value) for name, value in options.items()}
    _refuse_unknown(given)
    properties = client_properties(given, Side.WRITE)
    exactly_once = _truth(given, "exactlyOnce", default=True)
    found = SinkOptions(
        bootstrap=properties["bootstrap.servers"],
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
    """Have librdkafka check the names and values of its properties."""
    import confluent_kafka

    properties = {"log_level": "0", **options.properties}
    try:
        confluent_kafka.Producer({**properties, "bootstrap.servers": ""})
    except confluent_kafka.KafkaException as error:
        raise OptionError(
            f"A kafka.* option is invalid: {error.args[0].str()}; correct it or leave it out. "
            "Names and values are librdkafka's: "
            "https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md"
        ) from error


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in unknown_names(
        given, [each for each in READ_NAMES if each != BOOTSTRAP], WRITE_NAMES
    ):
        close = nearest(name, WRITE_NAMES)
        meant = f"did you mean {close}?" if close else f"it knows {', '.join(WRITE_NAMES)}"
        hint = " (properties of the client begin with kafka.)" if "." in name else ""
        raise OptionError(f"The sink has no option {name!r}; {meant}{hint}")


def _delivery(properties: Mapping[str, str], *, exactly_once: bool) -> Delivery:
    codec = _either(properties, ("compression.type", "compression.codec"), "none").lower()
    if codec.upper() not in Codec.__members__:
        names = ", ".join(name.lower() for name in Codec.__members__)
        raise OptionError(f"kafka.compression.type is {codec!r}; write one of {names}")
    acks = _either(properties, ("acks", "request.required.acks"), "all").lower()
    if acks not in ACKS:
        raise OptionError(f"kafka.acks is {acks!r}; write all, 1 or 0")
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
    if options.exactly_once and not options.is_direct:
        raise OptionError(
            "exactlyOnce needs connections of our own, since the driver ends transactions that "
            "tasks began and librdkafka cannot. They know PLAIN, SCRAM and OAUTHBEARER with a "
            "token, and certificates in PEM files; use one of these, or set exactlyOnce=false"
        )
    if options.application is not None and not options.exactly_once:
        raise OptionError(
            "txnAppId and txnVersion need exactlyOnce=true; set it, or leave both of them out"
        )
    if options.exactly_once and options.properties.get("enable.idempotence", "true") != "true":
        raise OptionError(
            "kafka.enable.idempotence is false, but exactlyOnce=true needs an idempotent producer; "
            "leave kafka.enable.idempotence out, or set exactlyOnce=false"
        )


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
        raise OptionError(f"Option {name} is {value!r}; write true or false")
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
            f"Option {shown or PREFIX + names[0]} is {value!r}; write a whole number{least}"
        )
    return number
