"""Reads and writes offsets of many partitions as JSON: {"orders": {"0": 12, "1": -1}}.

The same text that Spark's own connector reads in options and writes to checkpoints. As a limit,
-2 stands for the earliest offset there is and -1 for the latest.
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
    """Read an option; say what is wrong where it is not such JSON."""
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
    """Return offsets as Spark keeps them, in one order whatever order they came in."""
    found: Nested = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def flat(stored: Nested) -> dict[TopicPartition, int]:
    """Return what Spark kept."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in stored.items()
        for partition, offset in partitions.items()
    }
