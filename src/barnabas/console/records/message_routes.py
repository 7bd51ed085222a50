"""`/api/messages`: search, live tail, single records, export, produce and replay."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial

import anyio
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from barnabas.admin.topic_requests import topic_metadata
from barnabas.console.cluster_access import open_wire, properties_of
from barnabas.console.console_endpoints import Asked, ConsoleParts, change, live, streaming
from barnabas.console.records.found_records import FoundRecord
from barnabas.console.records.record_export import RECORDS_MAX, run_export
from barnabas.console.records.record_filters import parse_filters
from barnabas.console.records.record_search import Request, run_search, run_tail
from barnabas.console.records.record_sending import NewRecord, parse_record, send
from barnabas.console.records.record_views import Shown, View, record_json
from barnabas.console.records.search_plan import (
    ReadPlan,
    make_plan,
    parse_from,
    parse_selection,
    parse_until,
    positions_after,
)
from barnabas.console.records.topic_reader import AwayError, TopicReader
from barnabas.console.web.event_streams import EventChannel, StreamPlaces, event_stream
from barnabas.console.web.list_queries import LIMIT_MAX, whole_number
from barnabas.console.web.problems import bad_input, not_found, problem_of
from barnabas.logs import get as get_logger

STREAMS_MAX = 40
STREAMS_A_SESSION_MAX = 12
LIMIT_DEFAULT = 50
ONE_WAIT_MS = 2_000
SCHEMA_MAX = 100_000

Work = Callable[[TopicReader, Request, EventChannel], None]

log = get_logger("barnabas.console")


class MessageRoutes:
    """The endpoints of records."""

    def __init__(self, parts: ConsoleParts) -> None:
        self._parts = parts
        self._places = StreamPlaces(STREAMS_MAX, STREAMS_A_SESSION_MAX)

    def routes(self) -> list[Route]:
        """Return the routes."""
        parts, base = self._parts, "/api/messages"
        return [
            streaming(parts, base, self._search),
            streaming(parts, f"{base}/tail", self._tail),
            streaming(parts, f"{base}/export", self._export),
            live(parts, f"{base}/one", self._one),
            change(parts, "POST", base, "message.produce", self._produce),
            change(parts, "POST", f"{base}/replay", "message.replay", self._replay),
        ]

    async def _search(self, asked: Asked) -> Response:
        request = await self._request(asked, "beginning", "end", LIMIT_DEFAULT, LIMIT_MAX)
        _go_on(request, asked)
        return event_stream(self._stream(asked, request, run_search).frames())

    async def _tail(self, asked: Asked) -> Response:
        request = await self._request(asked, "end", None, 1, 1)
        _go_on(request, asked)
        request.sent = {each: at - 1 for each, at in request.plan.starts.items()}
        return event_stream(self._stream(asked, request, run_tail).frames())

    async def _export(self, asked: Asked) -> Response:
        form = asked.query.get("format", "jsonl")
        if form not in ("jsonl", "csv"):
            raise bad_input(f"format {form[:20]!r} is neither jsonl nor csv")
        request = await self._request(asked, "beginning", "end", RECORDS_MAX, RECORDS_MAX)
        channel = self._stream(asked, request, partial(run_export, as_csv=form == "csv"))
        name = "".join(
            c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in request.plan.topic
        )
        headers = {
            "Content-Disposition": f'attachment; filename="{name[:100]}.{form}"',
            "Cache-Control": "no-store",
        }
        kind = "text/csv" if form == "csv" else "application/x-ndjson"
        return StreamingResponse(_whole(channel), headers=headers, media_type=kind)

    async def _request(
        self, asked: Asked, first: str, last: str | None, limit: int, most: int
    ) -> Request:
        """Read the parameters of a URL and ask leaders for offsets."""
        query = asked.query
        topic = query.get("topic", "")
        if not topic:
            raise bad_input("Name a topic: topic=orders")
        start = parse_from(query.get("from") or first)
        until = None if last is None else parse_until(query.get("until") or last)
        selected = parse_selection(query.get("partitions", ""))
        filters, shown = parse_filters(query), parse_shown(asked)
        wanted = whole_number(query, "limit", limit, most, least=1)

        def plan() -> ReadPlan:
            with open_wire(self._parts.settings, asked.session) as wire:
                return make_plan(wire, topic, selected, start, until)

        found = await anyio.to_thread.run_sync(plan, limiter=self._parts.live_places)
        return Request(plan=found, filters=filters, shown=shown, limit=wanted)

    def _stream(self, asked: Asked, request: Request, work: Work) -> EventChannel:
        """Start the thread that reads for a page."""
        session = asked.session.csrf
        self._places.take(session)
        channel = EventChannel(asyncio.get_running_loop())
        connect = partial(open_wire, self._parts.settings, asked.session)
        reader = TopicReader(connect, request.plan.topic, dict(request.plan.starts))

        def run() -> None:
            try:
                work(reader, request, channel)
            except Exception as error:  # noqa: BLE001 - the page is told
                channel.fail(_reason(error))
            finally:
                self._places.give_back(session)
                channel.end()

        threading.Thread(target=run, name="console-records", daemon=True).start()
        return channel

    def _one(self, asked: Asked) -> object:
        found = self._read_one(
            asked,
            asked.query.get("topic", ""),
            whole_number(asked.query, "partition", 0, 1 << 31),
            whole_number(asked.query, "offset", 0, 1 << 62),
        )
        return record_json(found, parse_shown(asked)._replace(full=True))

    def _read_one(self, asked: Asked, topic: str, partition: int, offset: int) -> FoundRecord:
        connect = partial(open_wire, self._parts.settings, asked.session)
        with connect() as wire:
            numbers = {each.partition_index for each in topic_metadata(wire, topic).partitions}
        if partition not in numbers:
            raise not_found(f"Topic {topic} has no partition {partition}; it has {len(numbers)}")
        reader = TopicReader(connect, topic, {partition: offset})
        try:
            for found in reader.fetch([partition], ONE_WAIT_MS):
                if found.record.offset == offset:
                    return found
                break
        finally:
            reader.close()
        raise not_found(
            f"{topic}-{partition} has no record at offset {offset}: it is not written yet, was "
            "deleted or compacted, or belongs to a transaction"
        )

    def _produce(self, asked: Asked) -> object:
        topic, partition = asked.body.text("topic"), asked.body.optional_count("partition")
        record = parse_record(asked.body)
        asked.target = topic
        return self._send(asked, topic, partition, record)

    def _replay(self, asked: Asked) -> object:
        source, target = asked.body.part("from"), asked.body.part("to")
        topic, partition = source.text("topic"), source.count("partition")
        offset = source.count("offset", most=1 << 62)
        to, to_partition = target.text("topic"), target.optional_count("partition")
        asked.target, asked.details = to, {"from": f"{topic}-{partition}@{offset}"}
        found = self._read_one(asked, topic, partition, offset).record
        record = NewRecord(found.key, found.value, found.headers)
        return self._send(asked, to, to_partition, record)

    def _send(
        self, asked: Asked, topic: str, partition: int | None, record: NewRecord
    ) -> dict[str, int]:
        settings = self._parts.settings
        with open_wire(settings, asked.session) as wire:
            count = len(topic_metadata(wire, topic).partitions)
        if partition is not None and partition >= count:
            raise bad_input(f"Topic {topic} has no partition {partition}; it has 0 to {count - 1}")
        properties = properties_of(settings, asked.session)
        stored = send(settings.bootstrap, properties, topic, partition, record)
        asked.details |= {**stored, "bytes": len(record.value or b"")}
        return stored


def parse_shown(asked: Asked) -> Shown:
    """Return how records are to be shown."""
    view = asked.query.get("view", View.AUTO)
    if view not in set(View):
        raise bad_input(f"view {view[:20]!r} is none of {', '.join(View)}")
    schema = asked.query.get("schema") or None
    if schema is not None and len(schema) > SCHEMA_MAX:
        raise bad_input(f"schema is longer than {SCHEMA_MAX:,} characters")
    return Shown(View(view), asked.query.get("full") == "1", schema)


def _go_on(request: Request, asked: Asked) -> None:
    """Begin after the last event that the page has seen, where it lost the connection."""
    seen = asked.request.headers.get("last-event-id") or asked.query.get("last_event_id", "")
    starts = request.plan.starts
    starts |= {each: at for each, at in positions_after(seen).items() if each in starts}


def _reason(error: Exception) -> str:
    problem = problem_of(error)
    if problem is not None:
        return problem.message
    if isinstance(error, AwayError):
        return f"{error}; try again when its leader is back"
    log.exception("console_reading_failed")
    return "The console failed to read; its log has the reason"


async def _whole(channel: EventChannel) -> AsyncIterator[bytes]:
    """Yield the parts of a file; raise if it is not whole, so that the download fails."""
    async with aclosing(channel.contents()) as contents:
        async for content in contents:
            if content:
                yield content
    if channel.failure is not None:
        raise ConnectionAbortedError(channel.failure)
