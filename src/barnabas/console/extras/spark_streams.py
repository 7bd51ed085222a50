"""Progress of Spark's streaming queries: the newest record of each key of a compacted topic.

The topic is read when a page asks, from where it was read before, at most once in a few seconds.
Records are those that `barnabas.spark.report_progress` writes (`barnabas.monitor.stream_progress`).
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from starlette.routing import Route

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.topic_positions import Beginning, End
from barnabas.console.console_endpoints import Asked, ConsoleParts, live
from barnabas.console.records.found_records import FoundRecord
from barnabas.console.records.search_plan import make_plan
from barnabas.console.records.topic_reader import AwayError, TopicReader
from barnabas.console.web.json_answers import finite
from barnabas.console.web.list_queries import list_query, sort_rows
from barnabas.console.web.problems import not_found
from barnabas.monitor.stream_progress import StreamProgress, StreamTable, from_record
from barnabas.wire.cluster_wire import Wire

CHARTED = ("rows_per_s", "batch_ms", "lag", "state_bytes")
QUERIES_MAX = 1_000
"""Of so many queries charts are kept."""
POINTS_MAX = 360
FRESH_S = 3.0
READ_MAX_S = 5.0
WAIT_MS = 200

Connect = Callable[[], Wire]


class SparkStreams:
    """The queries that a topic tells of."""

    def __init__(
        self, connect: Connect, topic: str, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._connect = connect
        self._topic = topic
        self._now_s = now_s
        self._lock = threading.Lock()
        self._positions: dict[int, int] = {}
        self._read_s = -FRESH_S
        self._table = StreamTable()
        self._points: dict[str, deque[tuple[int, tuple[float | None, ...]]]] = {}

    def rows(self) -> list[dict[str, Any]]:
        """Return the newest row of each query, in the order of their names."""
        with self._lock:
            if self._now_s() - self._read_s >= FRESH_S:
                self._read()
                self._read_s = self._now_s()
            return [row_json(each) for each in self._table.rows]

    def history(self, name: str) -> dict[str, list[Any]]:
        """Return the charted values of a query over time."""
        with self._lock:
            points = list(self._points.get(name, ()))
        found: dict[str, list[Any]] = {"times_ms": [at for at, _ in points]}
        for index, field in enumerate(CHARTED):
            found[field] = [values[index] for _, values in points]
        return found

    def _read(self) -> None:
        """Read what was written since the last time; without the topic there are no queries."""
        try:
            with self._connect() as wire:
                plan = make_plan(wire, self._topic, None, Beginning(), End())
        except AdminError as error:
            if not str(error).startswith("There is no topic"):
                raise
            return
        if any(self._positions.get(each, 0) > stop for each, stop in plan.stops.items()):
            self._positions, self._table, self._points = {}, StreamTable(), {}  # a new topic
        starts = {each: max(at, self._positions.get(each, 0)) for each, at in plan.starts.items()}
        reader = TopicReader(self._connect, self._topic, starts)
        deadline_s = self._now_s() + READ_MAX_S
        stops = plan.stops
        try:
            while unread := [each for each in stops if reader.positions[each] < stops[each]]:
                for found in reader.fetch(unread, WAIT_MS):
                    self._take(found)
                if self._now_s() > deadline_s:
                    break
        except AwayError:
            pass  # the next request goes on
        finally:
            reader.close()
        self._positions = dict(reader.positions)

    def _take(self, found: FoundRecord) -> None:
        key, value = found.record.key, found.record.value
        self._table.apply(key, value)
        row = from_record(key, value)
        if row is None:
            if key is not None and value is None:
                self._points.pop(key.decode("utf-8", "replace"), None)
        elif row.name in self._points or len(self._points) < QUERIES_MAX:
            points = self._points.setdefault(row.name, deque(maxlen=POINTS_MAX))
            points.append((row.updated_ms, tuple(finite(getattr(row, each)) for each in CHARTED)))


def row_json(row: StreamProgress) -> dict[str, Any]:
    """Return the row of a query."""
    return {name: finite(value) for name, value in asdict(row).items()}


def stream_routes(parts: ConsoleParts, streams: SparkStreams) -> list[Route]:
    """Return the routes of streaming queries."""

    def listed(asked: Asked) -> object:
        query = list_query(asked.query)
        wanted = [
            row for row in streams.rows() if query.search.casefold() in row["name"].casefold()
        ]
        items = sort_rows(wanted, query.sort)[query.offset : query.offset + query.limit]
        return {"total": len(wanted), "items": items, "taken_ms": time.time_ns() // 1_000_000}

    def one(asked: Asked) -> object:
        rows = {row["name"]: row for row in streams.rows()}
        name = asked.name(rows)
        if name not in rows:
            raise not_found(f"There is no streaming query {name}; it appears once it reports")
        return {**rows[name], "history": streams.history(name)}

    return [
        live(parts, "/api/streams", listed),
        live(parts, "/api/streams/{name:path}", one),
    ]
