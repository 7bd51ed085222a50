"""`barnabas consume`: print records from any position of a topic, once or continuously.

Without --group partitions are assigned explicitly: no coordinator is used, nothing is committed, no
topic is created, and no group is affected. With --group the command starts at the group's committed
offsets, and commits records after it has printed them.
"""

import select
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import existing_topic, open_consumer
from barnabas.admin.topic_positions import (
    At,
    Beginning,
    End,
    Position,
    Since,
    parse_position,
    parse_until,
)
from barnabas.cli.common.failure import CommandError, quiet_exit, warn
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Properties, complete_topic
from barnabas.cli.records.record_formats import Render, compile_format, render_json
from barnabas.model.ids import NO_GROUP

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from barnabas.admin.partition_reading import Place

HELP = r"""Print records.

--from and --until accept: beginning, end, an OFFSET, -N (before the end), @TIME (ISO or ms).

--format accepts %t topic, %p partition, %o offset, %k key, %v value, %T timestamp, %h headers,
%s size, and \n \t.
"""
EPILOG = (
    r"Example: barnabas consume orders --from -10 --until end --format '%p %o %k=%v\n' ; "
    "barnabas consume orders --from @2026-03-01T12:00:00Z --json | jq .value"
)
DEFAULT_FORMAT = r"%v\n"


def consume(  # noqa: PLR0913 - one parameter an option
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC...", help="The topic.", autocompletion=complete_topic),
    ],
    *,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="POSITION", help="Start position; default: beginning."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="POSITION", help="Stop before this position.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this many records.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue until Ctrl-C; the default without --until.")
    ] = False,
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated."),
    ] = None,
    template: Annotated[str, typer.Option("--format", help="Output format.")] = DEFAULT_FORMAT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="Join this group and commit offsets.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Print records."""
    render = render_json if as_json else compile_format(template)
    first = None if start is None else parse_position(start)
    last = None if until is None else parse_until(until)
    if follow and last is not None:
        raise CommandError("--follow never stops; omit it, or omit --until")
    if group is None:
        consumer = open_consumer(bootstrap, properties, _lone_settings())
        places = _places(consumer, bootstrap, topics, partitions)
        _read_alone(consumer, places, first or Beginning(), last, Printer(render, count))
    else:
        own = _group_settings(group, first, last, partitions)
        consumer = open_consumer(bootstrap, properties, own)
        for topic in topics:
            existing_topic(consumer, bootstrap, topic)
        _read_in_group(consumer, topics, Printer(render, count), to_end=last is not None)


class Printer:
    """Writes records to stdout, up to a maximum."""

    def __init__(self, render: Render, count: int | None) -> None:
        self._render = render
        self._left = count
        self._out = sys.stdout.buffer

    @property
    def is_done(self) -> bool:
        """Whether the maximum number of records is written."""
        return self._left == 0

    def show(self, batch: "list[Message]") -> "list[Message]":
        """Write records, and return those within the maximum."""
        shown = batch if self._left is None else batch[: self._left]
        if not shown:
            self._require_reader()
        else:
            self._out.write(b"".join([self._render(message) for message in shown]))
            self._out.flush()
        if self._left is not None:
            self._left -= len(shown)
        return shown

    def _require_reader(self) -> None:
        # `| head` may exit while nothing is written; check the pipe explicitly.
        poller = select.poll()
        poller.register(self._out.fileno(), 0)
        if any(event & select.POLLERR for _, event in poller.poll(0)):
            raise BrokenPipeError


def _read_alone(
    consumer: "Consumer",
    places: "list[Place]",
    first: Position,
    last: End | At | Since | None,
    printer: Printer,
) -> None:
    from barnabas.admin.partition_reading import Reading, span

    spans = {place: span(consumer, place, first, last) for place in places}
    with _ending(consumer):
        for batch in Reading(consumer, spans, to_end=isinstance(last, End)):
            printer.show(batch)
            if printer.is_done:
                return


def _read_in_group(
    consumer: "Consumer", topics: list[str], printer: Printer, *, to_end: bool
) -> None:
    from barnabas.admin.partition_reading import GroupReading

    reading = GroupReading(consumer, topics, to_end=to_end, on_warning=warn)
    with _ending(consumer):
        for batch in reading:
            reading.store(printer.show(batch))
            if printer.is_done:
                return


@contextmanager
def _ending(consumer: "Consumer") -> Iterator[None]:
    """Close the consumer in every case; Ctrl-C and a closed pipe are not errors."""
    try:
        with closing(consumer):
            yield
    except BrokenPipeError:
        quiet_exit()
    except KeyboardInterrupt:
        return


def _places(
    consumer: "Consumer", bootstrap: str, topics: list[str], wanted: list[int] | None
) -> "list[Place]":
    places = []
    for topic in topics:
        there = sorted(existing_topic(consumer, bootstrap, topic).partitions)
        missing = sorted(set(wanted or ()) - set(there))
        if missing:
            raise CommandError(
                f"Topic {topic} has no partition {missing[0]}; it has 0 to {len(there) - 1}"
            )
        places += [(topic, number) for number in there if not wanted or number in wanted]
    return places


def _lone_settings() -> dict[str, object]:
    return {
        "group.id": NO_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }


def _group_settings(
    group: str,
    first: Position | None,
    last: End | At | Since | None,
    partitions: list[int] | None,
) -> dict[str, object]:
    if not isinstance(first, Beginning | End | None) or not isinstance(last, End | None):
        raise CommandError(
            "With --group the group's commits decide: --from can be beginning or end "
            "(for a group without commits), --until can be end"
        )
    if partitions:
        raise CommandError("With --group the group assigns partitions; omit --partition")
    return {
        "group.id": group,
        "enable.auto.commit": True,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "latest" if isinstance(first, End) else "earliest",
    }
