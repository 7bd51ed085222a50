"""Parse a scope of partitions: TOPIC for all of a topic, or TOPIC:0,2,5-7 for some."""

from collections.abc import Iterable, Mapping

from barnabas.admin.admin_errors import AdminError, no_topic
from barnabas.health.cluster_facts import Place

__all__ = ["Place", "Scope", "expand", "parse_scope"]

Scope = tuple[str, list[int] | None]


def parse_scope(text: str, option: str) -> Scope:
    """Split a scope into topic and partitions; no partitions means all."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return text, None
    try:
        found = [number for part in numbers.split(",") for number in _range(part)]
    except ValueError as error:
        raise AdminError(
            f"{option} {text!r} names no partitions; write orders:0 or orders:0,2,5-7"
        ) from error
    return topic, sorted(set(found))


def _range(text: str) -> range:
    first, dash, last = text.partition("-")
    found = range(int(first), int(last if dash else first) + 1)
    if not found:
        raise ValueError(text)
    return found


def expand(scopes: Iterable[Scope], counts: Mapping[str, int]) -> list[Place]:
    """Return the partitions that scopes name, given the partition count of each topic."""
    places: set[Place] = set()
    for topic, numbers in scopes:
        if topic not in counts:
            raise no_topic(topic)
        count = counts[topic]
        missing = [number for number in numbers or () if number >= count]
        if missing:
            raise AdminError(
                f"Topic {topic} has no partition {missing[0]}; it has 0 to {count - 1}"
            )
        places |= {(topic, number) for number in (range(count) if numbers is None else numbers)}
    return sorted(places)
