"""The configs of groups: config resources of type GROUP (KIP-932, KIP-1240).

Only share groups have configs so far. A group has the values of its own, and otherwise those of the
broker's settings. The settings also bound what a group may have: a change outside the bounds is
refused, and a value that was stored under other bounds counts as the nearest that is allowed.

A group need not exist to have configs, and keeps them when it is deleted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeVar

from barnabas.metadata.config_definition import (
    ConfigDefinition,
    ConfigType,
    Rule,
    Value,
    boolean,
    choice,
    int32,
    text,
    unknown,
)
from barnabas.model.dead_letter_rules import (
    COPY_RECORD,
    DEFAULT_PREFIX,
    FLOOD_LIMIT,
    TOPIC_NAME,
    DeadLetterRules,
    problem_with,
)
from barnabas.model.durations import parse_duration_ms
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.settings import ShareSettings

T = TypeVar("T")

KIND = "group"
"""Of the records that change the configs of groups."""
GROUPS_MAX = 10_000
"""How many groups may have configs."""

OFFSET_RESET, ISOLATION = "share.auto.offset.reset", "share.isolation.level"
LOCK_DURATION, COUNT_LIMIT = "share.record.lock.duration.ms", "share.delivery.count.limit"
RECORD_LOCKS, RENEW = "share.partition.max.record.locks", "share.renew.acknowledge.enable"
BACKOFF, BACKOFF_MAX = "share.retry.backoff.ms", "share.retry.backoff.max.ms"
BACKOFF_MS_MAX = 24 * 60 * 60 * 1000
SESSION, HEARTBEAT = "share.session.timeout.ms", "share.heartbeat.interval.ms"

BY_DURATION = "by_duration:"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"


class Reset(Enum):
    """Where a group begins in a partition from which it got nothing yet."""

    LATEST = "latest"
    EARLIEST = "earliest"
    BY_DURATION = "by_duration"
    """At the records of the last `duration_ms`."""


class OffsetReset(NamedTuple):
    """The config `share.auto.offset.reset`."""

    reset: Reset
    duration_ms: int = 0


LATEST = OffsetReset(Reset.LATEST)
EARLIEST = OffsetReset(Reset.EARLIEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """The configs of one share group, as they are in effect."""

    offset_reset: OffsetReset = LATEST
    """Where the group begins."""

    read_committed: bool = False
    """Whether records of aborted transactions are skipped, and those of open ones wait."""

    record_lock_duration_ms: int
    """How long a consumer may keep a record without an acknowledgement."""

    delivery_count_limit: int
    """How often a record is delivered before the group gives up on it."""

    partition_max_record_locks: int
    """How many records of a partition the consumers may keep at a time."""

    renew_enabled: bool = True
    """Whether consumers may renew their locks."""

    retry_backoff_ms: int = 0
    """How long a record that a consumer released waits before it is delivered again; the time
    doubles with each delivery."""

    retry_backoff_max_ms: int = 60_000
    """How long it waits at most."""

    session_timeout_ms: int
    """After how long without a heartbeat a member is removed."""

    heartbeat_interval_ms: int
    """How often members send heartbeats."""

    dead_letters: DeadLetterRules | None = None
    """Where records go that the group gives up on; None if they are only archived."""


class Bounds(NamedTuple):
    """The values that a group may have for a number, and the one it has by default."""

    least: int
    default: int
    most: int


def bounds_of(settings: ShareSettings) -> dict[str, Bounds]:
    """Return the bounds of all numbers; a default of the broker is always within."""
    lock_ms = settings.record_lock_duration_ms
    least_ms, most_ms = settings.min_record_lock_duration_ms, settings.max_record_lock_duration_ms
    return {
        LOCK_DURATION: _around(lock_ms, least_ms, most_ms),
        COUNT_LIMIT: _around(settings.delivery_count_limit, 2, 10),
        RECORD_LOCKS: _around(settings.partition_max_record_locks, 100, 4_000),
        BACKOFF: Bounds(0, 0, BACKOFF_MS_MAX),
        BACKOFF_MAX: Bounds(0, 60_000, BACKOFF_MS_MAX),
        SESSION: _around(settings.session_timeout_ms, 45_000, 60_000),
        HEARTBEAT: _around(settings.heartbeat_interval_ms, 5_000, 15_000),
    }


def resolve(configs: Mapping[str, str], settings: ShareSettings) -> ShareGroupConfig:
    """Return what is in effect for a group with these configs; never raises."""
    bounds = bounds_of(settings)

    def number(name: str) -> int:
        least, default, most = bounds[name]
        return min(max(_value(configs, name, int, default), least), most)

    return ShareGroupConfig(
        offset_reset=_value(configs, OFFSET_RESET, offset_reset, LATEST),
        read_committed=configs.get(ISOLATION) == READ_COMMITTED,
        record_lock_duration_ms=number(LOCK_DURATION),
        delivery_count_limit=number(COUNT_LIMIT),
        partition_max_record_locks=number(RECORD_LOCKS),
        renew_enabled=configs.get(RENEW, "true").lower() != "false",
        retry_backoff_ms=number(BACKOFF),
        retry_backoff_max_ms=number(BACKOFF_MAX),
        session_timeout_ms=number(SESSION),
        heartbeat_interval_ms=number(HEARTBEAT),
        dead_letters=_dead_letters(configs),
    )


def check(configs: Mapping[str, str], settings: ShareSettings) -> None:
    """Raise INVALID_CONFIG if a group may not have these configs."""
    bounds = bounds_of(settings)
    for name, value in configs.items():
        if name not in DEFINITIONS:
            raise unknown("group", name, DEFINITIONS)
        DEFINITIONS[name].parse(value)
        if name in bounds:
            _check_bounds(name, int(value), bounds[name])
    problem = problem_with(configs.get(TOPIC_NAME, "").strip() or DEFAULT_PREFIX)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{TOPIC_NAME}: {problem}")
    resolved = resolve(configs, settings)
    if resolved.session_timeout_ms <= resolved.heartbeat_interval_ms:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{SESSION} must be greater than {HEARTBEAT}.")


def offset_reset(text: str) -> OffsetReset:
    """Read `latest`, `earliest` or `by_duration:` and an ISO 8601 duration."""
    if text.startswith(BY_DURATION):
        duration = text.removeprefix(BY_DURATION)
        if not duration.upper().startswith("P"):
            raise ValueError(text)
        return OffsetReset(Reset.BY_DURATION, parse_duration_ms(duration))
    if text not in (Reset.LATEST.value, Reset.EARLIEST.value):
        raise ValueError(text)
    return OffsetReset(Reset(text))


def broker_default(name: str, settings: ShareSettings) -> str:
    """Return the value of a config for groups that have none of their own."""
    bounds = bounds_of(settings).get(name)
    return DEFINITIONS[name].default if bounds is None else str(bounds.default)


def _around(default: int, least: int, most: int) -> Bounds:
    return Bounds(min(least, default), default, max(most, default))


def _check_bounds(name: str, value: int, bounds: Bounds) -> None:
    if not bounds.least <= value <= bounds.most:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {value} for {name}: it must be from {bounds.least} to {bounds.most} on "
            "this cluster.",
        )


def _value(configs: Mapping[str, str], name: str, read: Callable[[str], T], default: T) -> T:
    """Return a value; the default for one that this release cannot read."""
    try:
        return read(configs[name].strip()) if name in configs else default
    except ValueError:
        return default


def _dead_letters(configs: Mapping[str, str]) -> DeadLetterRules | None:
    topic = configs.get(TOPIC_NAME, "").strip()
    if not topic:
        return None
    copies = configs.get(COPY_RECORD, "true").strip().lower() != "false"
    return DeadLetterRules(topic, copies, _value(configs, FLOOD_LIMIT, int, 0))


def _reset_rule() -> Rule:
    def read(text: str) -> Value:
        offset_reset(text)
        return text

    allowed = "latest, earliest, or by_duration: and an ISO 8601 duration such as PT1H30M"
    return Rule(ConfigType.STRING, allowed, read)


_DEFAULTS = bounds_of(ShareSettings())


def _number(name: str, least: int, documentation: str) -> ConfigDefinition:
    return ConfigDefinition(
        name=name,
        rule=int32(least),
        default=str(_DEFAULTS[name].default),
        documentation=documentation,
        synonyms=(f"group.{name}",),
    )


DEFINITIONS: dict[str, ConfigDefinition] = {
    each.name: each
    for each in (
        ConfigDefinition(
            name=COPY_RECORD,
            rule=boolean(),
            default="true",
            documentation="Whether a dead letter is the whole record, and not only headers.",
        ),
        ConfigDefinition(
            name=FLOOD_LIMIT,
            rule=int32(0),
            default="0",
            documentation="So many dead letters of a partition in a minute pause its delivery "
            "until the minute is over; 0 for no limit.",
        ),
        ConfigDefinition(
            name=TOPIC_NAME,
            rule=text(),
            default="",
            documentation="The topic for records that the group gives up on; empty for none.",
        ),
        ConfigDefinition(
            name=OFFSET_RESET,
            rule=_reset_rule(),
            default=Reset.LATEST.value,
            documentation="Where a share group begins in a partition.",
        ),
        _number(COUNT_LIMIT, 2, "How often a record is delivered before the group gives up on it."),
        _number(HEARTBEAT, 1, "How often members of a share group send heartbeats."),
        ConfigDefinition(
            name=ISOLATION,
            rule=choice(READ_COMMITTED, READ_UNCOMMITTED),
            default=READ_UNCOMMITTED,
            documentation="Whether a share group gets records of aborted and open transactions.",
        ),
        _number(
            RECORD_LOCKS, 100, "How many records of a partition the consumers may keep at a time."
        ),
        _number(
            LOCK_DURATION, 1, "How long a consumer may keep a record without an acknowledgement."
        ),
        ConfigDefinition(
            name=RENEW,
            rule=boolean(),
            default="true",
            documentation="Whether consumers may renew the locks of their records.",
        ),
        _number(
            BACKOFF, 0, "How long a record that was released waits; doubled with each delivery."
        ),
        _number(BACKOFF_MAX, 0, "How long a record that was released waits at most."),
        _number(SESSION, 1, "After how long without a heartbeat a member is removed."),
    )
}
"""The configs of a group."""
