"""The broker's settings under Kafka's names, for clients that describe or alter a broker.

Four kinds of entries:

    mirrored   read-only: shows a setting that is fixed while the process runs
    inherited  dynamic: a default of topics (`log.retention.ms` for `retention.ms`) with the values
               of the topic config; `inherited` turns altered ones into topic configs
    own        dynamic: affects the broker itself
    kept       dynamic in Kafka, without effect here: the value is stored and described

The same requests may alter the same configs as in Kafka, with one difference: a name that Kafka
does not know is refused here, and stored by Kafka.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from barnabas.metadata import listener_tls
from barnabas.metadata.broker_config_table import STATIC
from barnabas.metadata.config_definition import (
    INT_MAX,
    LONG_MAX,
    SHORT_MAX,
    ConfigDefinition,
    ConfigType,
    Rule,
    boolean,
    double,
    int16,
    int32,
    int64,
    listing,
    text,
    unknown,
)
from barnabas.metadata.kafka_broker_configs import (
    DYNAMIC_TYPES,
    OF_LISTENERS_OF_ALL_BROKERS,
    OF_ONE_BROKER,
    OF_ONE_LISTENER,
    READ_ONLY,
)
from barnabas.metadata.topic_config import DEFINITIONS as TOPIC_DEFINITIONS
from barnabas.metadata.topic_config import defaults_from
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import Settings

_BUILT_IN = Settings()
_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")
NO_EFFECT = "Accepted for compatibility; has no effect in Barnabas."
CATCH_UP_RATE = "follower.replication.throttled.rate"

_PLAIN_RULES: Mapping[ConfigType, Rule] = {
    ConfigType.BOOLEAN: boolean(),
    ConfigType.SHORT: int16(-SHORT_MAX - 1),
    ConfigType.INT: int32(-INT_MAX - 1),
    ConfigType.LONG: int64(-LONG_MAX - 1),
    ConfigType.DOUBLE: double(),
    ConfigType.LIST: listing(),
    **{kind: replace(text(), type=kind) for kind in (ConfigType.STRING, ConfigType.CLASS)},
    ConfigType.PASSWORD: replace(text(), type=ConfigType.PASSWORD),
}
_RATES = ("leader.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfigEntry:
    """One config as a client sees it."""

    name: str
    """Kafka's name."""

    value: str
    """The current value."""

    type: ConfigType
    """The type of the value."""

    read_only: bool
    """Whether only a restart can change it."""

    is_default: bool
    """Whether the value is the default."""

    documentation: str
    """One sentence on what it does."""


STATIC_NAMES = frozenset(static.name for static in STATIC)
INHERITED: Mapping[str, ConfigDefinition] = {
    topic.synonyms[0]: topic for topic in TOPIC_DEFINITIONS.values() if topic.synonyms
}
"""The topic config for which each dynamic broker config is the default."""

OWN: Mapping[str, ConfigDefinition] = {
    CATCH_UP_RATE: ConfigDefinition(
        name=CATCH_UP_RATE,
        rule=int64(0),
        default=str(LONG_MAX),
        documentation="The most bytes a second that this broker fetches for out-of-sync "
        "replicas, whichever replicas follower.replication.throttled.replicas names.",
    )
}
"""The dynamic configs that affect the broker itself."""

KEPT: Mapping[str, ConfigDefinition] = {
    name: ConfigDefinition(
        name=name,
        rule=int64(0) if name in _RATES else _PLAIN_RULES[kind],
        default="",
        documentation=NO_EFFECT,
    )
    for name, kind in DYNAMIC_TYPES.items()
    if name not in STATIC_NAMES and name not in OWN
}
"""The dynamic configs of Kafka that have no effect here."""

assert not STATIC_NAMES & INHERITED.keys()


def describe(settings: Settings) -> list[BrokerConfigEntry]:
    """Return every config by name, as the process was started with it."""
    entries = [*_describe_static(settings), *_describe_inherited(settings)]
    return sorted(entries, key=lambda entry: entry.name)


def dynamic(name: str) -> ConfigDefinition | None:
    """Return the definition of a dynamic config, if the name is one."""
    known = INHERITED.get(name) or OWN.get(name) or KEPT.get(name)
    if known is None and (found := _LISTENER.fullmatch(name)) is not None:
        known = _of_listener(name, found[1])
    # Under the broker config's name, so that messages show the name that the client sent.
    return None if known is None else replace(known, name=name)


JAAS = ".sasl.jaas.config"
"""How the names of configs end that have users with passwords in Kafka."""


def validate_broker(name: str, value: str, *, of_all: bool) -> ConfigDefinition:
    """Return the definition of a config; raise unless clients may set it to the value.

    `of_all` says that it is altered for all brokers at once.
    """
    if name in STATIC_NAMES or name in READ_ONLY:
        raise _refusal(f"Cannot update these configs dynamically: [{name}]")
    if name in OF_ONE_LISTENER:
        raise _refusal(
            f"Security configs can be updated only for one listener: use listener.name.NAME.{name}"
        )
    _refuse_secret(name, value)
    known = dynamic(name)
    if known is None:
        raise unknown("broker", name, (*STATIC_NAMES, *READ_ONLY, *INHERITED, *OWN, *KEPT))
    if of_all and _belongs_to_one(name):
        raise _refusal(
            f"Cannot update {name} for all brokers at once; name the broker that it is for"
        )
    try:
        known.parse(value)
    except ApiError as error:
        raise _refusal(error.message) from None
    return known


def inherited(altered: Mapping[str, str]) -> dict[str, str]:
    """Return the topic defaults that dynamic broker configs set."""
    return {INHERITED[name].name: value for name, value in altered.items() if name in INHERITED}


def _refuse_secret(name: str, value: str) -> None:
    """Refuse keys and passwords: metadata is on the disks of all brokers."""
    if name.endswith(JAAS):
        raise _refusal(
            f"{name} would store a secret in the cluster's metadata; it has no effect here: "
            "`barnabas user create` makes users"
        )
    found = _LISTENER.fullmatch(name)
    base = "" if found is None else found[1]
    if base in listener_tls.INLINE and "PRIVATE KEY" in value:
        base = listener_tls.KEY
    if base in listener_tls.REFUSED:
        instead = listener_tls.REFUSED[base]
        raise _refusal(f"{name} would store a secret in the cluster's metadata; {instead}")


def _refusal(message: str) -> ApiError:
    """Return Kafka's error for changes of broker configs, which is not INVALID_CONFIG."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _of_listener(name: str, base: str) -> ConfigDefinition | None:
    """Return the definition of a config for one listener or for one of its mechanisms."""
    while base not in DYNAMIC_TYPES and base not in READ_ONLY:
        _, dot, base = base.partition(".")
        if not dot:
            return None
    rule = _PLAIN_RULES[DYNAMIC_TYPES.get(base, ConfigType.STRING)]
    documentation = listener_tls.DOCUMENTATION.get(base, NO_EFFECT)
    return ConfigDefinition(name=name, rule=rule, default="", documentation=documentation)


def _belongs_to_one(name: str) -> bool:
    found = _LISTENER.fullmatch(name)
    return name in OF_ONE_BROKER if found is None else found[1] not in OF_LISTENERS_OF_ALL_BROKERS


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
        for static in STATIC
    ]


def _describe_inherited(settings: Settings) -> list[BrokerConfigEntry]:
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
        for name, topic in INHERITED.items()
    ]


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
