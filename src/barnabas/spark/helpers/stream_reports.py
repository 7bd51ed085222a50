"""Turns Spark's events about streaming queries into reports of progress, without Spark or I/O.

Spark reports a query after each batch, and every ten seconds while there is nothing to read
(`spark.sql.streaming.noDataProgressEventInterval`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from barnabas.monitor.stream_progress import StreamProgress
from barnabas.spark.source.source_progress import METRICS

ERROR_MAX = 1_000
"""Characters of an error that a report has."""
Document = Mapping[str, Any]
Explain = Callable[[str], str]


class StreamReports:
    """The last report of each query of a session."""

    def __init__(self, explain: Explain | None = None) -> None:
        """`explain` makes a sentence of an exception of Spark; without it the text is cut."""
        self._explain = explain
        self._rows: dict[str, StreamProgress] = {}
        self._names: dict[str, str] = {}
        """Of running queries, by run id: the event of an end has no name."""

    @property
    def running(self) -> set[str]:
        """The run ids of queries that have started and not ended."""
        return set(self._names)

    def started(self, name: str | None, query_id: str, run_id: str, now_ms: int) -> StreamProgress:
        """Report a start; after a failure it counts as a restart."""
        shown = name or query_id
        before = self._rows.get(shown)
        restarts = 0
        if before is not None:
            restarts = before.restarts + (before.state == "failed")
        self._names[run_id] = shown
        return self._keep(
            StreamProgress(
                name=shown,
                query_id=query_id,
                run_id=run_id,
                state="starting",
                since_ms=now_ms,
                restarts=restarts,
                last_error=None if before is None else before.last_error,
                updated_ms=now_ms,
            )
        )

    def progressed(self, progress: Document, now_ms: int) -> StreamProgress:
        """Report what Spark's JSON says after a batch, or after a trigger without a batch."""
        query_id, run_id = str(progress["id"]), str(progress["runId"])
        row = self._row(progress.get("name") or query_id, query_id, run_id, now_ms)
        return self._keep(
            replace(
                row,
                state="running",
                since_ms=row.since_ms if row.state == "running" else now_ms,
                updated_ms=now_ms,
                **_measured(progress),
            )
        )

    def idle(self, query_id: str, run_id: str, now_ms: int) -> StreamProgress | None:
        """Report that a query had nothing to read; None if it is unknown."""
        name = self._names.get(run_id)
        if name is None:
            return None
        row = self._row(name, query_id, run_id, now_ms)
        return self._keep(
            replace(
                row,
                state="running",
                since_ms=row.since_ms if row.state == "running" else now_ms,
                rows_per_s=0.0,
                input_per_s=0.0,
                updated_ms=now_ms,
            )
        )

    def ended(
        self, query_id: str, run_id: str, exception: str | None, now_ms: int
    ) -> StreamProgress | None:
        """Report an end, with an error or without; None if the query is unknown or runs again."""
        name = self._names.pop(run_id, None)
        if name is None or self._rows[name].run_id != run_id:
            return None
        row = self._row(name, query_id, run_id, now_ms)
        return self._keep(
            replace(
                row,
                state="stopped" if exception is None else "failed",
                since_ms=now_ms,
                rows_per_s=0.0,
                input_per_s=0.0,
                last_error=row.last_error if exception is None else self._sentence(exception),
                updated_ms=now_ms,
            )
        )

    def _row(self, name: str, query_id: str, run_id: str, now_ms: int) -> StreamProgress:
        """Return the last report of a run, which may have started before anything listened."""
        row = self._rows.get(name)
        if row is None or row.run_id != run_id:
            return self.started(name, query_id, run_id, now_ms)
        return row

    def _keep(self, row: StreamProgress) -> StreamProgress:
        self._rows[row.name] = row
        return row

    def _sentence(self, exception: str) -> str:
        text = exception if self._explain is None else self._explain(exception)
        return text.strip()[:ERROR_MAX]


def _measured(progress: Document) -> dict[str, Any]:
    """Return the fields of a report that a progress of Spark has."""
    operators = progress.get("stateOperators") or []
    sources = progress.get("sources") or []
    found: dict[str, Any] = {
        "rows_per_s": _rate(progress, "processedRowsPerSecond"),
        "input_per_s": _rate(progress, "inputRowsPerSecond"),
        "lag": _lag(sources),
        "state_bytes": sum(int(each.get("memoryUsedBytes", 0)) for each in operators),
        "state_rows": sum(int(each.get("numRowsTotal", 0)) for each in operators),
        "sources": tuple(map(_described, sources)),
        "sink": (progress.get("sink") or {}).get("description"),
    }
    durations = progress.get("durationMs") or {}
    if "addBatch" in durations:  # a trigger without it wrote nothing
        found["batch_ms"] = int(durations["triggerExecution"])
    return found


def _rate(progress: Document, name: str) -> float:
    """Return a rate; Spark leaves out what is not a number, as after a trigger without rows."""
    value = progress.get(name)
    return round(float(value), 1) if isinstance(value, int | float) else 0.0


def _lag(sources: Iterable[Document]) -> int | None:
    """Return how far a query is behind the sources of which that is known."""
    known = [lag for each in sources if (lag := _behind(each)) is not None]
    return sum(known) if known else None


def _behind(source: Document) -> int | None:
    latest, reached = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
    if not latest or not reached:
        return None
    return sum(max(0, end - reached.get(place, 0)) for place, end in latest.items())


def _offsets(position: object) -> dict[tuple[str, str], int]:
    """Return the offset of each partition; nothing where a source does not read topics."""
    found = {}
    for topic, partitions in _document(position).items():
        if not topic.startswith("@"):
            if not isinstance(partitions, dict):
                return {}
            for number, offset in partitions.items():
                if not number.isdecimal() or not isinstance(offset, int):
                    return {}
                found[topic, number] = offset
    return found


def _document(position: object) -> dict[str, Any]:
    """Return a position as JSON; Spark has it as an object or as text."""
    if isinstance(position, str):
        try:
            position = json.loads(position)
        except ValueError:
            return {}
    return position if isinstance(position, dict) else {}


def _described(source: Document) -> str:
    own = _document(source.get("latestOffset")).get(METRICS)
    described = own.get("source") if isinstance(own, dict) else source.get("description")
    return str(described or "unknown")
