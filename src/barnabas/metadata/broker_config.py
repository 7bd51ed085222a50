"""The broker's settings under Kafka's names, for clients that describe or alter a broker.

Two kinds of entries. Most mirror a setting that is fixed for the life of the process: they are
read-only. The rest are defaults that topics inherit (`log.retention.ms` for `retention.ms`):
they are dynamic, take what the topic config takes, and `inherited` turns those that were altered
back into topic config names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from barnabas.metadata.config_definition import (
    ConfigDefinition,
    ConfigType,
    Rule,
    boolean,
    int32,
    int64,
    listing,
    text,
    unknown,
)
from barnabas.metadata.topic_config import DEFINITIONS as TOPIC_DEFINITIONS
from barnabas.metadata.topic_config import defaults_from
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import Settings

Read = Callable[[Settings], object]
_BUILT_IN = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfigEntry:
    """One config as a client sees it."""

    name: str
    """Kafka's name."""

    value: str
    """What holds now."""

    type: ConfigType
    """How the value is to be read."""

    read_only: bool
    """Whether only a restart can change it."""

    is_default: bool
    """Whether it is what the broker comes with."""

    documentation: str
    """One sentence on what it does."""


@dataclass(frozen=True, slots=True)
class _Static:
    """A config that mirrors one setting."""

    name: str
    rule: Rule
    read: Read
    documentation: str


def listener(host: str, port: int) -> str:
    """Return an address in the form of Kafka's listeners."""
    bracketed = f"[{host}]" if ":" in host else host
    return f"PLAINTEXT://{bracketed}:{port}"


def _listeners(settings: Settings) -> str:
    return listener(settings.broker.host, settings.broker.port)


def _advertised(settings: Settings) -> str:
    broker = settings.broker
    port = broker.port if broker.advertised_port is None else broker.advertised_port
    return listener(broker.advertised_host or broker.host, port)


_STATIC = (
    _Static(
        "advertised.listeners",
        listing(),
        _advertised,
        "The address that clients are told to connect to.",
    ),
    _Static(
        "auto.create.topics.enable",
        boolean(),
        lambda s: s.broker.auto_create_topics,
        "Whether a topic is made when a client first asks for it.",
    ),
    _Static("broker.id", int32(0), lambda s: s.broker.node_id, "The number of this broker."),
    _Static(
        "broker.rack",
        text(),
        lambda s: s.broker.rack or "",
        "Where this broker stands.",
    ),
    _Static(
        "connections.max.idle.ms",
        int64(0),
        lambda s: s.performance.connection_idle_ms,
        "A connection that is silent for this long is closed.",
    ),
    _Static(
        "default.replication.factor",
        int32(1),
        lambda s: s.replication.default_replication_factor,
        "The copies of a topic that is made without saying how many.",
    ),
    _Static(
        "delete.topic.enable",
        boolean(),
        lambda s: s.broker.delete_topics,
        "Whether clients may delete topics.",
    ),
    _Static(
        "fetch.max.bytes",
        int32(1024),
        lambda s: s.performance.max_fetch_bytes,
        "The most that one fetch is answered with.",
    ),
    _Static("listeners", listing(), _listeners, "The address that the broker listens on."),
    _Static(
        "log.cleaner.backoff.ms",
        int64(0),
        lambda s: s.storage.compaction_check_interval_ms,
        "How often compacted topics are looked over for work.",
    ),
    _Static("log.dir", text(), lambda s: s.broker.data_dir, "The folder that holds the logs."),
    _Static("log.dirs", listing(), lambda s: s.broker.data_dir, "The folder that holds the logs."),
    _Static(
        "log.retention.check.interval.ms",
        int64(1),
        lambda s: s.storage.retention_check_interval_ms,
        "How often old segments are looked for.",
    ),
    _Static(
        "max.connections",
        int32(0),
        lambda s: s.performance.max_connections,
        "Connections beyond this are refused.",
    ),
    _Static(
        "max.connections.per.ip",
        int32(0),
        lambda s: s.performance.max_connections_per_ip,
        "Connections from one address beyond this are refused; 0 is no limit.",
    ),
    _Static(
        "max.incremental.fetch.session.cache.slots",
        int32(0),
        lambda s: s.performance.fetch_session_slots,
        "How many incremental fetch sessions are remembered.",
    ),
    _Static("node.id", int32(0), lambda s: s.broker.node_id, "The number of this broker."),
    _Static(
        "num.partitions",
        int32(1),
        lambda s: s.broker.default_partitions,
        "The partitions of a topic that is made without saying how many.",
    ),
    _Static(
        "offsets.topic.replication.factor",
        int32(1),
        lambda s: s.replication.internal_replication_factor,
        "The copies of __consumer_offsets.",
    ),
    _Static(
        "producer.id.expiration.ms",
        int64(1),
        lambda s: s.storage.producer_id_expiration_ms,
        "An idempotent producer that is silent for this long is forgotten.",
    ),
    _Static(
        "replica.lag.time.max.ms",
        int64(0),
        lambda s: s.replication.replica_lag_max_ms,
        "A replica that has not caught up for this long is out of sync.",
    ),
    _Static(
        "socket.listen.backlog.size",
        int32(1),
        lambda s: s.performance.backlog,
        "How many connections may wait to be accepted.",
    ),
    _Static(
        "socket.receive.buffer.bytes",
        int32(-1),
        # Kafka writes "as the system likes" as -1, our settings as 0.
        lambda s: s.performance.socket_receive_buffer_bytes or -1,
        "The receive buffer of a socket; -1 lets the operating system tune it.",
    ),
    _Static(
        "socket.request.max.bytes",
        int32(1),
        lambda s: s.performance.max_request_bytes,
        "A request that announces more than this closes its connection.",
    ),
    _Static(
        "socket.send.buffer.bytes",
        int32(-1),
        lambda s: s.performance.socket_send_buffer_bytes or -1,
        "The send buffer of a socket; -1 lets the operating system tune it.",
    ),
    _Static(
        "transaction.state.log.replication.factor",
        int32(1),
        lambda s: s.replication.internal_replication_factor,
        "The copies of __transaction_state.",
    ),
)

STATIC_NAMES = frozenset(static.name for static in _STATIC)
DYNAMIC: Mapping[str, ConfigDefinition] = {
    topic.synonyms[0]: topic for topic in TOPIC_DEFINITIONS.values() if topic.synonyms
}
"""The topic config that each dynamic broker config is the default of."""

assert not STATIC_NAMES & DYNAMIC.keys()


def describe(settings: Settings) -> list[BrokerConfigEntry]:
    """Return every config by name, as the process was started with it."""
    entries = [*_describe_static(settings), *_describe_dynamic(settings)]
    return sorted(entries, key=lambda entry: entry.name)


def validate_broker(name: str, value: str) -> None:
    """Raise INVALID_CONFIG unless the config exists, is dynamic, and may have the value."""
    if name in STATIC_NAMES:
        message = f"{name} is fixed while the broker runs; change its settings and restart it."
        raise ApiError(ErrorCode.INVALID_CONFIG, message)
    if name not in DYNAMIC:
        raise unknown("broker", name, (*STATIC_NAMES, *DYNAMIC))
    # Under the broker's name, so that the message names what the client wrote.
    replace(DYNAMIC[name], name=name).parse(value)


def inherited(altered: Mapping[str, str]) -> dict[str, str]:
    """Return dynamic broker configs as the topic defaults they stand for."""
    return {DYNAMIC[name].name: value for name, value in altered.items() if name in DYNAMIC}


def _describe_static(settings: Settings) -> list[BrokerConfigEntry]:
    return [
        BrokerConfigEntry(
            name=static.name,
            value=_written(static.read(settings)),
            type=static.rule.type,
            read_only=True,
            is_default=static.read(settings) == static.read(_BUILT_IN),
            documentation=static.documentation,
        )
        for static in _STATIC
    ]


def _describe_dynamic(settings: Settings) -> list[BrokerConfigEntry]:
    values = defaults_from(settings)
    return [
        BrokerConfigEntry(
            name=name,
            value=values.get(topic.name, topic.default),
            type=topic.type,
            read_only=False,
            is_default=values.get(topic.name, topic.default) == topic.default,
            documentation=topic.documentation,
        )
        for name, topic in DYNAMIC.items()
    ]


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
