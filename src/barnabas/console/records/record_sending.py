"""Sends records: one that a page wrote, or a copy of one that is stored, byte for byte."""

import base64
import binascii
import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.admin.admin_errors import kafka_sentence
from barnabas.admin.connecting import open_producer
from barnabas.console.web.problems import ProblemError, bad_input, refused
from barnabas.console.web.request_bodies import Body

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

ANY_PARTITION = -1
DELIVERY_TIMEOUT_MS = 15_000
ENCODINGS = ("text", "json", "base64", "hex")
HEADERS_MAX = 1_000
OWN_SETTINGS: dict[str, object] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": DELIVERY_TIMEOUT_MS,
    "message.max.bytes": 8 << 20,
    # As Java's clients choose, so that a key goes to the partition of its other records.
    "partitioner": "murmur2_random",
}

Header = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def send(
    bootstrap: str, properties: list[str], topic: str, partition: int | None, record: NewRecord
) -> dict[str, int]:
    """Send a record; return where it was stored."""
    from confluent_kafka import KafkaException

    producer = open_producer(bootstrap, properties, OWN_SETTINGS)
    results: list[tuple[Any, Message]] = []
    optional = {"headers": list(record.headers)} if record.headers else {}
    try:
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=ANY_PARTITION if partition is None else partition,
            on_delivery=lambda error, message: results.append((error, message)),
            **optional,
        )
    except KafkaException as error:
        raise bad_input(f"The record was not sent: {kafka_sentence(error.args[0])}") from None
    producer.flush(2 * DELIVERY_TIMEOUT_MS / 1000)
    if not results:
        raise _timeout()
    failure, message = results[0]
    if failure is None:
        return {"partition": message.partition(), "offset": message.offset()}
    raise _failed(failure)


def _failed(failure: "KafkaError") -> ProblemError:
    sentence = f"The record was not sent: {kafka_sentence(failure)}"
    if failure.code() >= 0:
        return refused(failure.code(), sentence)
    # librdkafka's own: it gave up, or knows no such partition
    return _timeout() if failure.name() == "_MSG_TIMED_OUT" else bad_input(sentence)


def parse_record(body: Body) -> NewRecord:
    """Return the record that a page wrote."""
    encoding = body.text("encoding", "text")
    if encoding not in ENCODINGS:
        raise bad_input(f'"encoding" is none of {", ".join(ENCODINGS)}')
    headers: list[Header] = []
    for each in body.items("headers"):
        if not isinstance(each, dict):
            raise bad_input('"headers" must be a list of {"name": ..., "value": ...}')
        fields = Body(each)
        content = to_bytes(fields.optional_text("value"), _for_headers(encoding), "headers")
        headers.append((fields.text("name"), content))
    if len(headers) > HEADERS_MAX:
        raise bad_input(f'"headers" has more than {HEADERS_MAX:,}')
    return NewRecord(
        to_bytes(body.optional_text("key"), _for_headers(encoding), "key"),
        to_bytes(body.optional_text("value"), encoding, "value"),
        headers,
    )


def to_bytes(text: str | None, encoding: str, name: str) -> bytes | None:
    """Return the bytes that a text stands for; None for a null."""
    if text is None:
        return None
    try:
        match encoding:
            case "base64":
                return base64.b64decode(text, validate=True)
            case "hex":
                return bytes.fromhex(text.removeprefix("0x"))
            case "json":
                json.loads(text)
            case _:
                pass
    except (ValueError, binascii.Error, RecursionError) as error:
        raise bad_input(f'"{name}" is not {encoding}: {error}') from None
    return text.encode("utf-8", "replace")


def _for_headers(encoding: str) -> str:
    """Return the encoding of keys and headers: JSON is for values alone."""
    return "text" if encoding == "json" else encoding


def _timeout() -> ProblemError:
    return ProblemError(
        HTTPStatus.GATEWAY_TIMEOUT,
        "timeout",
        "The brokers did not confirm the record in time; it may have been stored",
    )
