"""Records and messages: the frozen values that producers take and consumers return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message as RawMessage

from barnabas.client.errors import ArgumentError

Data = bytes | str | None
"""A key or value: text is sent as UTF-8, None is Kafka's null (a tombstone, as a value)."""

Header = tuple[str, bytes | None]
Headers = Mapping[str, Data] | Sequence[tuple[str, Data]]
"""Headers as a mapping, or as pairs if a name repeats or the order matters."""

# librdkafka's own names for "not given"; they never reach the wire.
ANY_PARTITION = -1
NO_TIMESTAMP_TYPE = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One record as read from the log."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    """When it was written, or appended if the topic is configured so; None without a timestamp."""

    @property
    def text(self) -> str:
        """The value as UTF-8 text; an empty string if it is null."""
        return (self.value or b"").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record to send, for `send_batch`."""

    value: Data
    key: Data = None
    headers: Headers = ()
    partition: int | None = None
    """None: the key selects the partition, or the producer if there is no key."""
    timestamp_ms: int | None = None
    """Milliseconds since 1970, at least 1; None means now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The partition and offset of a delivered record."""

    topic: str
    partition: int
    offset: int | None
    """None with acks=0, because the broker does not answer."""
    timestamp_ms: int | None


def to_bytes(data: Data) -> bytes | None:
    """Encode text; return bytes and null unchanged."""
    return data.encode() if isinstance(data, str) else data


def to_header_list(headers: Headers) -> list[Header]:
    """Return headers as ordered pairs, as they are sent."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found = [(name, to_bytes(value)) for name, value in pairs]
    for name, _ in found:
        if not isinstance(name, str):
            raise ArgumentError(f"the name of a header is a str, not {type(name).__name__}")
    return found


def produce_arguments(topic: str, record: Record) -> dict[str, Any]:
    """Return the keyword arguments that confluent-kafka's `produce` takes for a record."""
    arguments: dict[str, Any] = {
        "topic": topic,
        "value": to_bytes(record.value),
        "key": to_bytes(record.key),
        "partition": ANY_PARTITION if record.partition is None else record.partition,
    }
    if record.headers:
        arguments["headers"] = to_header_list(record.headers)
    if record.timestamp_ms is not None:
        if record.timestamp_ms <= 0:  # librdkafka would take 0 for now
            raise ArgumentError(
                f"timestamp_ms={record.timestamp_ms} is not after 1970; omit it to use now"
            )
        arguments["timestamp"] = record.timestamp_ms
    return arguments


def message_from(raw: RawMessage) -> Message:
    """Convert confluent-kafka's message to a value."""
    return Message(
        topic=raw.topic(),
        partition=raw.partition(),
        offset=raw.offset(),
        key=raw.key(),
        value=raw.value(),
        headers=tuple(raw.headers() or ()),
        timestamp_ms=_timestamp_ms(raw),
    )


def result_from(raw: RawMessage) -> SendResult:
    """Return the partition and offset of a delivered message."""
    offset = raw.offset()
    return SendResult(
        topic=raw.topic(),
        partition=raw.partition(),
        offset=offset if offset is not None and offset >= 0 else None,
        timestamp_ms=_timestamp_ms(raw),
    )


def _timestamp_ms(raw: RawMessage) -> int | None:
    kind, timestamp_ms = raw.timestamp()
    return None if kind == NO_TIMESTAMP_TYPE else int(timestamp_ms)
