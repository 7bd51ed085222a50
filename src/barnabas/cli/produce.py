"""`barnabas produce`: lines in, records out, and every one of them accounted for.

Each record ends in one of three counts, and they add up to what was read: delivered, failed
(the broker or the client gave up on it) or skipped (a line that could not be read, with
--skip-bad). Anything but "all delivered" ends with exit code 1.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from barnabas.cli.connection import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Properties,
    complete_topic,
    metadata,
    no_topic,
    open_producer,
    pair,
)
from barnabas.cli.delivery import Delivery
from barnabas.cli.failure import CommandError, kafka_sentence, warn
from barnabas.cli.lines import BadLineError, Header, Outgoing, Parse, json_parser, line_parser
from barnabas.cli.progress import Progress

if TYPE_CHECKING:
    from confluent_kafka import Producer

HELP = "Send records from standard input or files, one a line."
EPILOG = (
    "Example: printf 'a:1\\nb:2\\n' | barnabas produce orders --key-separator : ; "
    "barnabas produce orders --file records.jsonl --format json --compression zstd"
)
STDIN = "-"
CREATION_TIMEOUT_S = 3.0


class Format(StrEnum):
    """What a line is."""

    LINES = "lines"
    JSON = "json"


class Compression(StrEnum):
    """What batches are packed with."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Who must have a record before it counts as delivered."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


def produce(  # noqa: PLR0913 - one parameter an option
    topic: Annotated[
        str,
        typer.Argument(metavar="TOPIC", help="Where to send.", autocompletion=complete_topic),
    ],
    *,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", help="Read this instead of stdin; may be repeated."),
    ] = None,
    input_format: Annotated[
        Format, typer.Option("--format", help="What a line is.")
    ] = Format.LINES,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="Each line is KEY, this, VALUE.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of every record."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send all of them here.")
    ] = None,
    compression: Annotated[
        Compression, typer.Option("--compression", "-z", help="How to pack batches.")
    ] = Compression.NONE,
    acks: Annotated[
        Acks, typer.Option(help="Who must have it: nobody, the leader, all.")
    ] = Acks.ALL,
    linger: Annotated[float, typer.Option(min=0, help="Milliseconds to wait for more.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Most bytes in a batch.")] = 1_000_000,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on after a line that cannot be read.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Send records."""
    headers = [_header(text) for text in header or ()]
    if input_format is Format.JSON:
        if key_separator is not None:
            raise CommandError("--key-separator is for lines of text; JSON lines have a key field")
        parse = json_parser(key=key, headers=headers, partition=partition)
    else:
        parse = line_parser(
            key=key, key_separator=key_separator, headers=headers, partition=partition
        )
    own = {
        "acks": acks.value,
        "enable.idempotence": acks is Acks.ALL,
        "compression.type": compression.value,
        "linger.ms": linger,
        "batch.size": batch,
    }
    with ExitStack() as stack:
        inputs = _open(files or [STDIN], stack)
        producer = open_producer(bootstrap, properties, own)
        _require_topic(producer, bootstrap, topic)
        delivery = Delivery(producer, topic)
        _run(delivery, _records(inputs, parse, delivery, skip_bad=skip_bad), _size(files))
    if not delivery.is_perfect:
        sys.exit(1)


def _run(delivery: Delivery, records: Iterable[Outgoing], size_bytes: int | None) -> None:
    """Send everything; whatever stops us, wait for what is under way and give the counts."""
    started_s = time.monotonic()
    interactive = size_bytes is None and sys.stdin.isatty()
    progress = Progress("records", total=size_bytes, enabled=not interactive)
    try:
        with progress:
            for record in records:
                delivery.send(record)
                if delivery.sent % 512 == 0:
                    progress.update(delivery.bytes_read, delivery.delivered)
            delivery.finish(lambda: progress.update(delivery.bytes_read, delivery.delivered))
    except KeyboardInterrupt:
        delivery.give_up()
    except CommandError:
        delivery.finish()
        raise
    finally:
        warn(delivery.summary(time.monotonic() - started_s))


def _records(
    inputs: Iterable[tuple[str, BinaryIO]], parse: Parse, delivery: Delivery, *, skip_bad: bool
) -> Iterator[Outgoing]:
    for name, stream in inputs:
        for number, line in enumerate(stream, 1):
            delivery.bytes_read += len(line)
            try:
                yield parse(line[:-1] if line.endswith(b"\n") else line)
            except BadLineError as error:
                place = f"line {number}" if name == STDIN else f"{name} line {number}"
                if not skip_bad:
                    raise CommandError(
                        f"{place}: {error}. Correct it, or pass --skip-bad to leave such lines out"
                    ) from error
                warn(f"Skipped {place}: {error}")
                delivery.skipped += 1


def _open(names: Iterable[str], stack: ExitStack) -> list[tuple[str, BinaryIO]]:
    return [
        (name, sys.stdin.buffer if name == STDIN else stack.enter_context(Path(name).open("rb")))
        for name in names
    ]


def _size(files: list[str] | None) -> int | None:
    if not files or STDIN in files:
        return None
    return sum(Path(name).stat().st_size for name in files)


def _header(text: str) -> Header:
    name, value = pair(text, "--header")
    return name, value.encode()


def _require_topic(producer: "Producer", bootstrap: str, topic: str) -> None:
    """Return once the topic is there, giving a broker that creates topics the time to."""
    from confluent_kafka import KafkaError

    deadline_s = time.monotonic() + CREATION_TIMEOUT_S
    while (error := metadata(producer, bootstrap, topic).topics[topic].error) is not None:
        pending = error.code() in {
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError.LEADER_NOT_AVAILABLE,
        }
        if not pending:
            raise CommandError(f"Topic {topic!r}: {kafka_sentence(error)}")
        if time.monotonic() > deadline_s:
            raise no_topic(topic)
        producer.poll(0.1)
