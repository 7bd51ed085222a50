"""Reads and writes offsets of many partitions as JSON: {"orders": {"0": 12, "1": -1}}.

Spark's own connector uses the same text in options and checkpoints. As a limit, -2 means the
earliest offset and -1 the latest.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import OptionError

LATEST, EARLIEST = -1, -2

Offsets: TypeAlias = Mapping[TopicPartition, int]
Nested: TypeAlias = dict[str, Any]

EXAMPLE = '{"orders": {"0": 12, "1": -1}}'


def parse_offsets(option: str, text: str, least: int = EARLIEST) -> dict[TopicPartition, int]:
    """Read an option; raise with the reason if it is invalid."""
    try:
        nested = json.loads(text)
        found = {
            TopicPartition(topic, int(partition)): _whole(offset)
            for topic, partitions in nested.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise OptionError(f"{option} is {text!r}; write it like {EXAMPLE} ({error})") from None
    for place, offset in found.items():
        if offset < least or place.partition < 0:
            raise OptionError(f"{option} is {offset} for {place}; write {least} or more")
    return found


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{number!r} is not a whole number")
    return number


def parse_partitions(option: str, text: str) -> frozenset[TopicPartition]:
    """Read the option `assign`."""
    try:
        nested = json.loads(text)
        found = frozenset(
            TopicPartition(topic, _whole(partition))
            for topic, partitions in nested.items()
            for partition in partitions
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise OptionError(
            f'{option} is {text!r}; write it like {{"orders": [0, 1]}} ({error})'
        ) from None
    if not found:
        raise OptionError(f'{option} names no partition; write it like {{"orders": [0, 1]}}')
    return found


def nested(offsets: Offsets) -> Nested:
    """Return offsets as text for a checkpoint, in a fixed order."""
    found: Nested = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def flat(stored: Nested) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in stored.items()
        for partition, offset in partitions.items()
    }
