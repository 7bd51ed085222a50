"""`barnabas produce`: send lines of input as records.

The command counts every record as delivered, failed (rejected by the broker or timed out) or
skipped (an unreadable line, with --skip-bad). If not all records are delivered, the exit code is 1.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from barnabas.admin.admin_errors import AdminError, kafka_sentence, no_topic
from barnabas.admin.connecting import metadata, open_producer, pair
from barnabas.cli.common.failure import CommandError, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Properties, complete_topic
from barnabas.cli.common.progress import Progress
from barnabas.cli.records.delivery import Delivery
from barnabas.cli.records.input_lines import (
    BadLineError,
    Header,
    Outgoing,
    Parse,
    json_parser,
    line_parser,
)

if TYPE_CHECKING:
    from confluent_kafka import Producer

HELP = "Send records from standard input or files, one per line."
EPILOG = (
    "Example: printf 'a:1\\nb:2\\n' | barnabas produce orders --key-separator : ; "
    "barnabas produce orders --file records.jsonl --format json --compression zstd"
)
STDIN = "-"
CREATION_TIMEOUT_S = 3.0


class Format(StrEnum):
    """The format of a line."""

    LINES = "lines"
    JSON = "json"


class Compression(StrEnum):
    """The compression of batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Which brokers must have a record before it counts as delivered."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


def produce(  # noqa: PLR0913 - one parameter an option
    topic: Annotated[
        str,
        typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topic),
    ],
    *,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", help="Read this file instead of stdin; may be repeated."),
    ] = None,
    input_format: Annotated[
        Format, typer.Option("--format", help="The format of a line.")
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
        int | None,
        typer.Option("--partition", "-p", min=0, help="Send all records to this partition."),
    ] = None,
    compression: Annotated[
        Compression, typer.Option("--compression", "-z", help="The compression of batches.")
    ] = Compression.NONE,
    acks: Annotated[
        Acks, typer.Option(help="Acknowledgements: 0 none, 1 the leader, all in-sync replicas.")
    ] = Acks.ALL,
    linger: Annotated[
        float, typer.Option(min=0, help="Milliseconds to wait for a fuller batch.")
    ] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Maximum bytes of a batch.")] = 1_000_000,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip unreadable lines.")] = False,
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
    """Send all records; in every case wait for records in flight and print the counts."""
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
    except AdminError:
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
                        f"{place}: {error}. Correct it, or pass --skip-bad to skip such lines"
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
    """Return once the topic exists; a broker with auto-creation gets time to create it."""
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
