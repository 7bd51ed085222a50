"""Reads a topic for a page: a search with an end, or a tail without one. Runs on a thread.

    search: record ... progress ... record ... done        waits while the page is behind
    tail:   record ... skipped ... paused ... resumed      never waits: it says what it left out

A `TopicReader` brings records, `Filters` choose by bytes, a `CelFilter` by expression.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from barnabas.console.records.cel_filter import BATCH, CelFilter
from barnabas.console.records.found_records import FoundRecord
from barnabas.console.records.record_filters import Filters
from barnabas.console.records.record_views import Shown, record_json
from barnabas.console.records.search_plan import ReadPlan, positions_text
from barnabas.console.records.topic_reader import AwayError, TopicReader
from barnabas.console.web.event_streams import EventChannel

SEARCH_WAIT_MS = 200
TAIL_WAIT_MS = 500
PROGRESS_S = 0.5
TIME_MAX_S = 120.0
"""How long one search reads; `next` says where to go on."""
AWAY_PATIENCE_S = 20.0
AWAY_PAUSE_S = 0.5
EMPTY_MAX = 15
"""So many empty answers before the end mean that compaction removed the rest."""
IDENTITY_PARTITIONS_MAX = 32
"""Up to so many partitions the id of each record says where all of them are."""


@dataclass(slots=True, kw_only=True)
class Request:
    """What a page wants to see."""

    plan: ReadPlan
    filters: Filters
    shown: Shown
    limit: int
    """The most records of a search; a tail has no limit."""
    matched: int = 0
    errors: int = 0
    sent: dict[int, int] = field(default_factory=dict)
    """The last offset of each partition that the page has got, or that was left out; -1 before
    the first."""

    def identity(self, found: FoundRecord) -> str | None:
        """Return the id of a record's event: its own place first, then those of the others."""
        self.sent[found.partition] = found.record.offset
        if len(self.sent) > IDENTITY_PARTITIONS_MAX:
            return None
        own = f"{found.partition}:{found.record.offset}"
        others = {each: at for each, at in self.sent.items() if each != found.partition}
        return ",".join(filter(None, (own, positions_text(others))))

    def all_sent(self) -> str | None:
        """Return the id of an event that is no record."""
        return positions_text(self.sent) or None


class Chooser:
    """Applies all filters to records as they come."""

    def __init__(self, filters: Filters, cel: CelFilter | None) -> None:
        self._filters = filters
        self._cel = cel
        self._batch: list[FoundRecord] = []

    @property
    def errors(self) -> int:
        """How many records the expression could not be applied to."""
        return 0 if self._cel is None else self._cel.errors

    def chosen(self, found: Iterable[FoundRecord]) -> Iterator[FoundRecord]:
        """Yield the records that match, in their order."""
        passing = (each for each in found if self._filters.matches(each.record))
        if self._cel is None:
            yield from passing
            return
        while batch := list(islice(passing, BATCH)):
            self._batch = batch
            yield from self._cel.matching(batch)

    def rewind(self, last: FoundRecord, positions: dict[int, int]) -> None:
        """Set positions so that reading goes on after a record: an expression gets more at once."""
        positions[last.partition] = last.record.offset + 1
        if last in self._batch:
            for each in self._batch[self._batch.index(last) + 1 :]:
                at = positions[each.partition]
                positions[each.partition] = min(at, each.record.offset)


def run_search(reader: TopicReader, request: Request, channel: EventChannel) -> None:
    """Read until the limit, the end, or too much time; then say how it ended."""
    with closing(reader), opened_cel(request.filters) as cel:
        reason = _Search(reader, request, channel, Chooser(request.filters, cel)).run()
        channel.put("progress", progress(reader, request))
        channel.put("done", {"reason": reason, "next": positions_text(reader.positions)})


class _Search:
    def __init__(
        self, reader: TopicReader, request: Request, channel: EventChannel, chooser: Chooser
    ) -> None:
        self._reader = reader
        self._request = request
        self._channel = channel
        self._chooser = chooser
        self._ends_s = time.monotonic() + TIME_MAX_S
        self._said_s = 0.0

    def run(self) -> str:
        """Read; return why it ended."""
        empty, away_since_s = 0, None
        while unread := self._unread():
            if self._channel.is_closed:
                return "stopped"
            if time.monotonic() > self._ends_s or empty > EMPTY_MAX:
                return "time" if empty <= EMPTY_MAX else "end"
            before = dict(self._reader.positions)
            try:
                if not self._pass(unread):
                    return "limit" if not self._channel.is_closed else "stopped"
                away_since_s = None
            except AwayError:
                away_since_s = away_since_s or time.monotonic()
                if time.monotonic() - away_since_s > AWAY_PATIENCE_S:
                    raise
                self._channel.wait_closed(AWAY_PAUSE_S)
                continue
            empty = empty + 1 if self._reader.positions == before else 0
            self._say_progress()
        return "end"

    def _unread(self) -> list[int]:
        stops, positions = self._request.plan.stops, self._reader.positions
        return [each for each, at in positions.items() if at < stops[each]]

    def _pass(self, unread: list[int]) -> bool:
        """Send the matching records of one fetch; return False at the limit or without a page."""
        stops = self._request.plan.stops
        fetched = (
            each
            for each in self._reader.fetch(unread, SEARCH_WAIT_MS)
            if each.record.offset < stops[each.partition]
        )
        for found in self._chooser.chosen(fetched):
            identity = self._request.identity(found)
            if not self._channel.put("record", record_json(found, self._request.shown), identity):
                return False
            self._request.matched += 1
            if self._request.matched >= self._request.limit:
                self._chooser.rewind(found, self._reader.positions)
                return False
            self._say_progress()
        self._request.errors = self._chooser.errors
        return True

    def _say_progress(self) -> None:
        if time.monotonic() - self._said_s >= PROGRESS_S:
            self._said_s = time.monotonic()
            self._request.errors = self._chooser.errors
            self._channel.put("progress", progress(self._reader, self._request))


def run_tail(reader: TopicReader, request: Request, channel: EventChannel) -> None:
    """Read new records until the page goes away."""
    with closing(reader), opened_cel(request.filters) as cel:
        _Tail(reader, request, channel, Chooser(request.filters, cel)).run()


class _Tail:
    def __init__(
        self, reader: TopicReader, request: Request, channel: EventChannel, chooser: Chooser
    ) -> None:
        self._reader = reader
        self._request = request
        self._channel = channel
        self._chooser = chooser
        self._skipped = 0
        self._is_paused = False
        self._said_s = 0.0

    def run(self) -> None:
        """Read until the page goes away."""
        while not self._channel.is_closed:
            try:
                for found in self._chooser.chosen(
                    self._reader.fetch(self._reader.positions, TAIL_WAIT_MS)
                ):
                    self._send(found)
            except AwayError as error:
                self._pause(str(error))
                continue
            if self._is_paused:
                self._is_paused = not self._channel.offer("resumed", {})
            self._say()

    def _send(self, found: FoundRecord) -> None:
        identity = self._request.identity(found)
        self._request.matched += 1
        shown = self._skipped or record_json(found, self._request.shown)
        if self._skipped or not self._channel.offer("record", shown, identity):
            self._skipped += 1
            self._say_skipped()

    def _say_skipped(self) -> None:
        """Say how many records were left out as soon as there is room."""
        said = {"records": self._skipped}
        if self._channel.offer("skipped", said, self._request.all_sent()):
            self._skipped = 0

    def _pause(self, why: str) -> None:
        if not self._is_paused:
            self._is_paused = self._channel.offer("paused", {"reason": why})
        self._channel.wait_closed(AWAY_PAUSE_S)

    def _say(self) -> None:
        self._request.errors = self._chooser.errors
        if self._skipped:
            self._say_skipped()
        if time.monotonic() - self._said_s >= 2 * PROGRESS_S:
            self._said_s = time.monotonic()
            said = progress(self._reader, self._request)
            self._channel.offer("progress", said, self._request.all_sent())


def progress(reader: TopicReader, request: Request) -> dict[str, Any]:
    """Return how far a search or a tail is."""
    return {
        "scanned": reader.counts.scanned,
        "matched": request.matched,
        "errors": request.errors + reader.counts.unreadable,
        "deleted": reader.counts.deleted,
        "positions": {str(each): at for each, at in reader.positions.items()},
    }


class opened_cel:  # noqa: N801 - reads as a phrase: with opened_cel(filters)
    """Starts the worker of an expression, if there is one."""

    def __init__(self, filters: Filters) -> None:
        self._cel = None if filters.cel is None else CelFilter(filters.cel)

    def __enter__(self) -> CelFilter | None:
        return None if self._cel is None else self._cel.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._cel is not None:
            self._cel.stop()
