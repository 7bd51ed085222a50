"""Writes records as a file: JSONL that `barnabas produce --format json` reads back, or CSV.

CSV is for spreadsheets: text that they would run as a formula gets an apostrophe in front. Bytes
that are not text are in base64, and the columns of encodings say so. JSONL is exact.
"""

import base64
import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

from barnabas.admin.record_lines import record_line
from barnabas.console.records.found_records import FoundRecord
from barnabas.console.records.record_search import (
    AWAY_PATIENCE_S,
    AWAY_PAUSE_S,
    EMPTY_MAX,
    SEARCH_WAIT_MS,
    Chooser,
    Request,
    opened_cel,
)
from barnabas.console.records.topic_reader import AwayError, TopicReader
from barnabas.console.web.event_streams import EventChannel

RECORDS_MAX = 1_000_000
BYTES_MAX = 1 << 30
CHUNK_BYTES = 64 << 10
COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key_encoding",
    "key",
    "value_encoding",
    "value",
    "headers",
)
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def run_export(
    reader: TopicReader, request: Request, channel: EventChannel, *, as_csv: bool
) -> None:
    """Send all matching records; the file ends at the limit of records or bytes."""
    make = csv_line if as_csv else json_line
    parts = [csv_row(COLUMNS)] if as_csv else []
    waiting, total = sum(map(len, parts)), 0
    with closing(reader), opened_cel(request.filters) as cel:
        for found in _records(reader, request, Chooser(request.filters, cel), channel):
            line = make(found)
            parts.append(line)
            waiting += len(line)
            total += len(line)
            request.matched += 1
            if waiting >= CHUNK_BYTES:
                if not channel.put_bytes(b"".join(parts)):
                    return
                parts, waiting = [], 0
            if request.matched >= request.limit or total >= BYTES_MAX:
                break
    channel.put_bytes(b"".join(parts))


def _records(
    reader: TopicReader, request: Request, chooser: Chooser, channel: EventChannel
) -> Iterator[FoundRecord]:
    """Yield the matching records up to the plan's stops."""
    stops, empty, away_s = request.plan.stops, 0, 0.0
    while empty <= EMPTY_MAX and not channel.is_closed:
        unread = [each for each, at in reader.positions.items() if at < stops[each]]
        if not unread:
            return
        before = dict(reader.positions)
        fetched = (
            each
            for each in reader.fetch(unread, SEARCH_WAIT_MS)
            if each.record.offset < stops[each.partition]
        )
        try:
            yield from chooser.chosen(fetched)
            away_s = 0.0
        except AwayError:
            away_s += AWAY_PAUSE_S
            if away_s > AWAY_PATIENCE_S:
                raise
            channel.wait_closed(AWAY_PAUSE_S)
            continue
        empty = empty + 1 if reader.positions == before else 0


def json_line(found: FoundRecord) -> bytes:
    """Return a record as one line of JSON."""
    record = found.record
    return record_line(
        topic=found.topic,
        partition=found.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def csv_line(found: FoundRecord) -> bytes:
    """Return a record as one line of CSV."""
    record = found.record
    moment = "" if record.timestamp < 0 else _iso(record.timestamp)
    headers = [[name, _text(value)[1]] for name, value in record.headers]
    cells = (
        found.topic,
        str(found.partition),
        str(record.offset),
        moment,
        *_text(record.key),
        *_text(record.value),
        json.dumps(headers, ensure_ascii=False) if headers else "",
    )
    return csv_row(cells)


def csv_row(cells: tuple[str, ...]) -> bytes:
    """Return cells as one line of CSV."""
    target = io.StringIO()
    csv.writer(target).writerow(map(harmless, cells))
    return target.getvalue().encode("utf-8", "replace")


def harmless(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def _text(content: bytes | None) -> tuple[str, str]:
    """Return encoding and text."""
    if content is None:
        return "null", ""
    try:
        return "text", content.decode()
    except UnicodeDecodeError:
        return "base64", base64.b64encode(content).decode()


def _iso(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a producer may write any number
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
