"""Subscriptions to the metrics of clients: config resources of type CLIENT_METRICS (KIP-714).

A subscription names metrics by their prefixes, how often clients push them, and which clients it is
for. A client gets the union of all subscriptions that match it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.metadata.config_definition import (
    INT_MAX,
    ConfigDefinition,
    ConfigType,
    Rule,
    Value,
    int32,
    listing,
    split_list,
    unknown,
)
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.name_pattern import NamePattern, PatternError

KIND = "client-metrics"
"""Of the records that change subscriptions."""
TOPIC = "__client_metrics"
"""Where brokers write the metrics that clients push."""
METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
SUBSCRIPTIONS_MAX = 1_000
SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
)
"""Kafka also has client_source_port, which changes with each connection."""


class Selector(NamedTuple):
    """What a property of a client must match as a whole."""

    name: str
    pattern: str

    def matches(self, value: str) -> bool:
        """Whether a value matches. The pattern was accepted before; RE2 bounds its time."""
        try:
            return NamePattern(self.pattern).matches(value)
        except PatternError:
            return False


class Subscription(NamedTuple):
    """One subscription."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[Selector, ...]

    def includes(self, client: Mapping[str, str]) -> bool:
        """Whether it is for a client; without selectors it is for all."""
        return all(each.matches(client.get(each.name, "")) for each in self.match)


def subscription(configs: Mapping[str, str]) -> Subscription:
    """Return what the configs of a resource say; raise `ApiError`, with Kafka's codes, if that is
    invalid.
    """
    for name in configs:
        if name not in DEFINITIONS:
            message = unknown("client metrics", name, DEFINITIONS).message
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
    interval_ms = int(_text(configs, INTERVAL))
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL}: it must be from {INTERVAL_MS_MIN} to "
            f"{INTERVAL_MS_MAX} (an hour).",
        )
    return Subscription(
        split_list(_text(configs, METRICS)), interval_ms, selectors(_text(configs, MATCH))
    )


def selectors(text: str) -> tuple[Selector, ...]:
    """Return the selectors of a list such as `client_id=app.*,client_software_name=librdkafka`."""
    found = []
    for item in split_list(text):
        name, _, pattern = item.partition("=")
        if name.strip() not in SELECTORS or not pattern.strip() or "=" in pattern:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"{MATCH} has {item!r}; write SELECTOR=EXPRESSION with one of "
                f"{', '.join(SELECTORS)}",
            )
        try:
            NamePattern(pattern.strip())
        except PatternError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{MATCH} has {item!r}: {error}") from None
        found.append(Selector(name.strip(), pattern.strip()))
    return tuple(found)


def _text(configs: Mapping[str, str], name: str) -> str:
    value = configs.get(name, DEFINITIONS[name].default).strip()
    DEFINITIONS[name].parse(value)
    return value


def _selector_list() -> Rule:
    def read(text: str) -> Value:
        return tuple("=".join(each) for each in selectors(text))

    return Rule(ConfigType.LIST, "a list of SELECTOR=EXPRESSION", read)


DEFINITIONS: dict[str, ConfigDefinition] = {
    each.name: each
    for each in (
        ConfigDefinition(
            name=METRICS,
            rule=listing(),
            default="",
            documentation="Prefixes of the names of metrics; * for all, none for no metric.",
        ),
        ConfigDefinition(
            name=INTERVAL,
            rule=int32(-INT_MAX - 1),
            default=str(DEFAULT_INTERVAL_MS),
            documentation="How often clients push their metrics.",
        ),
        ConfigDefinition(
            name=MATCH,
            rule=_selector_list(),
            default="",
            documentation="The clients that it is for: SELECTOR=EXPRESSION, all of which match.",
        ),
    )
}
"""The configs of a subscription."""
