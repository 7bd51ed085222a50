"""Check the options of a queue, and make its properties."""

from collections.abc import Mapping

from barnabas.client.client_settings import Setting, Settings, common
from barnabas.client.errors import ArgumentError, SettingError

PREFETCH = 1
"""Nothing ahead: a message that is held and given back has used up one of its deliveries."""
PREFETCH_MAX = 1000


def queue_properties(bootstrap: str, settings: Settings | None) -> dict[str, Setting]:
    """Return librdkafka's properties; those about TLS and logins hold for all connections."""
    if settings is not None and not isinstance(settings, Mapping):
        raise SettingError(f"settings is a dict of librdkafka's properties, not {settings!r}")
    return {**common(bootstrap), **(settings or {})}


def as_group(group: object, topic: str) -> str:
    """Return the group; a queue has a group with the name of its topic."""
    if group is None:
        return topic
    if not isinstance(group, str) or not group:
        raise SettingError(f"group={group!r} is not a group name; omit it, or write a name")
    return group


def as_prefetch(value: object) -> int:
    """Return how many messages one request may bring."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= PREFETCH_MAX:
        raise SettingError(f"prefetch={value!r} is not a number from 1 to {PREFETCH_MAX}")
    return value


def as_partitions_count(value: object, name: str) -> int | None:
    """Return a number of partitions or replicas; None lets the broker choose."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{name}={value!r} is not a number; write 1 or more, or omit it")
    return value
