"""`barnabas queue put`, `take` and `peek`: messages in and out."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import pair
from barnabas.admin.record_lines import record_line
from barnabas.admin.wording import plural
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.queue.queue_arguments import Group, Name, client_settings, open_queue

if TYPE_CHECKING:
    from barnabas.client import Consumer, Message, Queue, QueueMessage
    from barnabas.client.queue_stats import PartitionStats

PUT_EPILOG = (
    "Example: barnabas queue put jobs 'resize cat.jpg' ; "
    "ls *.jpg | barnabas queue put jobs --key photos"
)
TAKE_EPILOG = (
    "Example: barnabas queue take jobs --count 10 --timeout 2 --json ; barnabas queue take jobs "
    "--keep"
)
PEEK_EPILOG = "Example: barnabas queue peek jobs --count 5 --json"
PUT_BATCH = 1000
"""How many lines of stdin go out together."""
TAKE_BATCH = 100
NOTHING_CAME = 1
"""The exit code of `take` without a message, for scripts."""
POLL_S = 5.0


def put(
    name: Name,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MESSAGE]...", help="Messages; without, lines of stdin."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of each message.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of each message."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Add messages to a queue."""
    from barnabas.client import Record

    headers = [pair(text, "--header") for text in header or ()]
    # Not Queue's own check: librdkafka may create a topic that does not exist.
    with open_queue(name, None, bootstrap, properties) as queue:
        queue.stats()
        count = 0
        for batch in _batches(values):
            queue.put_many([Record(value=value, key=key, headers=headers) for value in batch])
            count += len(batch)
    warn(f"Put {plural(count, 'message')} into {name}")


def take(  # noqa: PLR0913 - one parameter an option
    name: Name,
    *,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Take at most this many.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for the next one.")
    ] = 5.0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Give them back; it counts as a delivery.")
    ] = False,
    reject: Annotated[
        bool, typer.Option("--reject", help="Reject them: no member gets them again.")
    ] = False,
    group: Group = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Print messages and acknowledge them; the exit code is 1 if none came."""
    if keep and reject:
        raise CommandError("--keep and --reject exclude each other; pass one of them")
    prefetch = min(count, TAKE_BATCH)
    with open_queue(name, group, bootstrap, properties, prefetch) as queue:
        queue.stats()  # a topic that does not exist is an error, not a queue without messages
        kept: list[QueueMessage] = []
        found = 0
        for message in _taken(queue, count, timeout):
            found += 1
            _print(_taken_line(message) if as_json else (message.value or b""))
            if keep:
                kept.append(message)  # given back at the end, or it would come again
            elif reject:
                message.reject()
            else:
                message.ack()
        for message in kept:
            message.nack()
        queue.flush()
    if not found:
        warn(f"No message came within {timeout:g} s")
        raise typer.Exit(NOTHING_CAME)


def peek(
    name: Name,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="Show at most this many.")
    ] = 10,
    group: Group = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Show messages without taking them.

    It reads from the start offset that the group has stored. Messages after it may be in flight, or
    done already: brokers do not tell clients which.
    """
    from barnabas.client import Consumer

    own = client_settings(bootstrap, properties)
    with open_queue(name, group, bootstrap, properties) as queue:
        parts = queue.stats().partitions
    left = count
    with Consumer(bootstrap, settings=own) as consumer:
        for part in parts:
            for message in _peeked(consumer, name, part, left):
                _print(_line(message) if as_json else (message.value or b""))
                left -= 1
            if not left:
                return


def _batches(values: list[str] | None) -> Iterator[list[bytes | str]]:
    if values:
        yield list(values)
        return
    batch: list[bytes | str] = []
    for line in sys.stdin.buffer:
        batch.append(line.rstrip(b"\r\n"))
        if len(batch) == PUT_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _taken(queue: "Queue", count: int, timeout_s: float) -> "Iterator[QueueMessage]":
    left = count
    while left:
        batch = queue.take_batch(left, timeout_s)
        if not batch:
            return
        yield from batch
        left -= len(batch)


def _peeked(
    consumer: "Consumer", topic: str, part: "PartitionStats", count: int
) -> "Iterator[Message]":
    from barnabas.client import TopicPartition

    if not count or not part.depth:
        return
    consumer.assign([TopicPartition(topic, part.partition)], part.start)
    deadline_s = time.monotonic() + POLL_S
    while count and time.monotonic() < deadline_s:
        message = consumer.poll(POLL_S)
        if message is None or message.offset >= part.end:
            return
        yield message
        count -= 1
        if message.offset == part.end - 1:
            return


def _taken_line(message: "QueueMessage") -> bytes:
    return _line(message)[:-1] + b', "deliveries": %d}' % message.deliveries


def _line(message: "Message | QueueMessage") -> bytes:
    return record_line(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=message.timestamp_ms or 0,
        key=message.key,
        value=message.value,
        headers=list(message.headers),
    ).rstrip(b"\n")


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
