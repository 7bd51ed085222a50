"""Check the arguments of calls before librdkafka gets them.

Without checks, a string instead of a list would be read letter by letter, a misspelled word would
mean something else, and a negative offset is a special value of librdkafka. Each of these raises an
`ArgumentError` that says what to write instead. Records are checked only after librdkafka has
rejected them, so valid records have no extra cost.
"""

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Literal

from barnabas.client.client_messages import Record
from barnabas.client.errors import ArgumentError
from barnabas.model.ids import TopicPartition

StartWord = Literal["beginning", "end", "earliest", "latest"]
Start = StartWord | int
"""Where to begin: an offset, "beginning" or "end"; Kafka's "earliest" and "latest" mean these."""

OutOfRange = Literal["error", "beginning", "end", "earliest", "latest"]
"""What a consumer does when the log does not have the offset it wants to read next."""

Place = Literal["beginning", "end"]

PLACES: dict[object, Place] = {
    "beginning": "beginning",
    "earliest": "beginning",
    "end": "end",
    "latest": "end",
}
WORDS = '"beginning" (or "earliest") or "end" (or "latest")'
OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1


def as_start(value: object) -> Place | int:
    """Return the position for `assign` or `seek`."""
    if isinstance(value, str):
        if value in PLACES:
            return PLACES[value]
        raise ArgumentError(f"start={value!r} is not known; write an offset, {WORDS}")
    return as_offset(value)


def as_offset(value: object) -> int:
    """Return an offset: a whole number of at least 0."""
    number = _whole(value)
    if number is None or not 0 <= number <= OFFSET_MAX:
        raise ArgumentError(f"{value!r} is not an offset; write 0 or more, or {WORDS}")
    return number


def as_offsets(offsets: object) -> dict[TopicPartition, int]:
    """Return the next offset of each partition, for a commit."""
    if not isinstance(offsets, Mapping):
        raise ArgumentError(
            "offsets is a dict of partitions and their next offsets; "
            f'write {{TopicPartition("orders", 0): 5}}, not {offsets!r}'
        )
    return {as_partition(place): as_offset(offset) for place, offset in offsets.items()}


def as_partition(value: object) -> TopicPartition:
    """Return one partition; a pair of topic and number is also accepted."""
    if isinstance(value, tuple) and len(value) == 2:
        topic, number = value[0], _whole(value[1])
        if isinstance(topic, str) and number is not None and 0 <= number <= PARTITION_MAX:
            return TopicPartition(topic, number)
    raise ArgumentError(f'{value!r} is not a partition; write TopicPartition("orders", 0)')


def as_partitions(value: object) -> list[TopicPartition]:
    """Return partitions as a list."""
    if isinstance(value, TopicPartition):
        raise ArgumentError(f"one partition is not a list of partitions; write [{value!r}]")
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ArgumentError(
            f"{value!r} is not a list of partitions; consumer.partitions(topic) returns one"
        )
    return [as_partition(each) for each in value]


def as_topics(value: object) -> list[str]:
    """Return the topics to subscribe to as a list."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ArgumentError(f'subscribe takes a list of topics, not {value!r}; write ["orders"]')
    topics = [as_topic(each) for each in value]
    if not topics:
        raise ArgumentError("subscribe got no topic; close the consumer to leave the group")
    return topics


def as_topic(value: object) -> str:
    """Return the name of a topic."""
    if not isinstance(value, str) or not value:
        raise ArgumentError(f'{value!r} is not a topic; write its name, such as "orders"')
    return value


def as_timeout(value: object) -> float | None:
    """Return a number of seconds, or None for no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ArgumentError(f"timeout_s={value!r} is not a number of seconds")
    return float(value)


def as_count(value: object) -> int:
    """Return the maximum number of messages of a batch."""
    number = _whole(value)
    if number is None or number < 1:
        raise ArgumentError(f"count_max={value!r} is not a number of messages; write 1 or more")
    return number


def as_records(
    value: Iterable[Record | bytes | str | None],
) -> Iterable[Record | bytes | str | None]:
    """Return the records of a batch; reject a single text or record."""
    if isinstance(value, str | bytes | Record) or not isinstance(value, Iterable):
        raise ArgumentError(
            f"send_batch takes a list of records, not {type(value).__name__}; use send for one"
        )
    return value


def refused_record(topic: object, record: Record, cause: Exception) -> ArgumentError:
    """Return the error for a record that cannot be sent."""
    if isinstance(cause, UnicodeEncodeError):
        return ArgumentError(f"a text cannot be sent as UTF-8: {cause}; send bytes instead")
    wrong = _wrong_field(topic, record)
    if wrong is None and record.headers:
        wrong = (
            f"headers={record.headers!r} cannot be sent ({cause}); write a dict, or a list of "
            "pairs, of a name (str) and a value (bytes, str or None)"
        )
    return ArgumentError(wrong or f"the record cannot be sent: {cause}")


def _wrong_field(topic: object, record: Record) -> str | None:
    fields: tuple[tuple[str, object], ...] = (("value", record.value), ("key", record.key))
    for name, data in fields:
        if not isinstance(data, bytes | str | None):
            return f"a {name} is bytes, str or None, not {type(data).__name__}"
    for name, number in (("partition", record.partition), ("timestamp_ms", record.timestamp_ms)):
        if number is not None and _whole(number) is None:
            return f"{name}={number!r} is not a whole number"
    if record.partition is not None and record.partition > PARTITION_MAX:
        return f"partition={record.partition} is not a partition number"
    return None if isinstance(topic, str) else f"topic={topic!r} is not a topic name"


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
