"""Tracks the progress of each job, from Spark's reports, the lake's notes and the broker's offsets.

Counts are those of this run. A batch of Spark counts once it was added to its table: idle triggers
also report, under the number of the next batch.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from barnabas.telemetry.lake.lake import CHECKPOINTS, NOTES, Lake, Note

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

UPSTREAM = {"gold_10s": "silver", "gold_1m": "silver", "findings": "gold_10s"}
"""Jobs that follow the notes of a table instead of a topic."""

HELD_FOLDERS = {"silver": "_work/silver-numbers", "findings": "_work/findings-gpus"}
_NUMBER = re.compile(r"batch-(\d{10})")
Document = dict[str, Any]


@dataclass
class JobProgress:
    """One job, for display."""

    name: str
    state: str = "starting"
    batches: int = 0
    """The batches that were completed in this run."""
    rows: int = 0
    rows_per_s: float = 0.0
    lag: int | None = None
    lag_unit: str = "messages"
    batch_ms: int | None = None
    state_rows: int | None = None
    watermark_us: int | None = None
    restarts: int = 0
    error: str = ""


@dataclass
class Totals:
    """The counts of this run for the tables."""

    messages: int = 0
    samples: int = 0
    late: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    findings: int = 0
    alerts: int = 0

    @property
    def refused_count(self) -> int:
        """The number of refusals, including late samples."""
        return sum(self.refused.values())

    def take(self, table: str, note: Note) -> None:
        """Count the content of a completed batch."""
        if table == "silver":
            self.messages += note["messages"]
            self.samples += note["samples"]
            self.refused.update(note["refused"])
            self.late += note["refused"].get("late", 0)
        elif table == "findings":
            self.findings += note["rows"]
        elif table == "alerts":
            self.alerts += note["rows"]


class Followed:
    """The notes of a table, each returned once when it appears."""

    def __init__(self, lake: Lake, table: str) -> None:
        """Begin after the existing notes, which are those of earlier runs."""
        self._lake = lake
        self.table = table
        names = lake.names(f"{NOTES}/{table}")
        self._next = max((number(name) for name in names), default=-1) + 1
        self.latest: Note | None = lake.note(table, self._next - 1)

    @property
    def count(self) -> int:
        """The number of batches of the table."""
        return self._next

    def new(self) -> list[Note]:
        """Return the notes that appeared since the last call."""
        found = []
        while (note := self._lake.note(self.table, self._next)) is not None:
            found.append(note)
            self.latest = note
            self._next += 1
        return found


def number(name: str) -> int:
    """Return the batch in the name of a file."""
    found = _NUMBER.search(name)
    assert found is not None, f"{name} is not the name of a batch"
    return int(found[1])


class Measured:
    """One job over its life in this run, restarts included."""

    def __init__(self, lake: Lake, name: str) -> None:
        self._lake = lake
        self._rows: dict[tuple[str, int], int] = {}
        self._pace: list[tuple[float, int]] = []
        self._footers: dict[str, int] = {}
        self.progress = JobProgress(name)
        if name in UPSTREAM:
            self.progress.lag_unit = "batches"

    def take(self, reports: Iterable[Document], now_s: float) -> bool:
        """Apply Spark's reports of batches; return whether one has completed since the last
        call."""
        before = len(self._rows)
        for report in reports:
            if "addBatch" in report.get("durationMs", {}):
                key = (report["runId"], int(report["batchId"]))
                self._rows[key] = int(report["numInputRows"])
                self.progress.batch_ms = int(report["durationMs"]["triggerExecution"])
            self._take_state(report)
        self.progress.batches = len(self._rows)
        self.progress.rows = sum(self._rows.values())
        self._pace = [*self._pace[-30:], (now_s, self.progress.rows)]
        then_s, rows = self._pace[0]
        elapsed_s = now_s - then_s
        self.progress.rows_per_s = (self.progress.rows - rows) / elapsed_s if elapsed_s > 0 else 0.0
        return len(self._rows) > before

    def _take_state(self, report: Document) -> None:
        """Store the size of Spark's state between batches, and its watermark."""
        operators = report.get("stateOperators") or []
        if operators:
            self.progress.state_rows = sum(int(each["numRowsTotal"]) for each in operators)
        watermark = report.get("eventTime", {}).get("watermark")
        if watermark is not None:
            moment = datetime.fromisoformat(watermark)
            self.progress.watermark_us = int(moment.timestamp() * 1e6) or None

    def compare(
        self, report: Document | None, ends: Mapping[str, Mapping[str, int]], upstream: int | None
    ) -> None:
        """Compute the lag: the ends of the topic, or of the previous table, less its position."""
        position = _position(report)
        if position is None:
            return
        if upstream is None:
            self.progress.lag = lag(position, ends)
            return
        taken = position.get("batch")
        if "logOffset" in position:
            taken = self._taken(int(position["logOffset"]))
        self.progress.lag = None if taken is None else max(0, upstream - 1 - int(taken))

    def read_note(self, note: Note | None) -> None:
        """Apply the note of the last batch."""
        if note is None:
            return
        self.progress.watermark_us = note.get("watermark_us", self.progress.watermark_us)
        held = self._held_rows(note)
        self.progress.state_rows = self.progress.state_rows if held is None else held

    def _taken(self, log: int) -> int | None:
        """Return the newest note that a batch had read, from the file source's own log."""
        folder = f"{CHECKPOINTS}/{self.progress.name}/sources/0"
        for name in (f"{log}", f"{log}.compact"):
            text = _text(self._lake, f"{folder}/{name}")
            found = [int(n) for n in _NUMBER.findall(text or "")]
            if found:
                return max(found)
        return None

    def _held_rows(self, note: Note) -> int | None:
        folder = HELD_FOLDERS.get(self.progress.name)
        if folder is None:
            return None
        files = [n["file"] for n in note["numbers"]] if "numbers" in note else []
        if self.progress.name == "findings":
            files = [f"batch-{note['batch']:010d}.parquet"]
        self._footers = {name: self._file_rows(folder, name) for name in files}
        return sum(self._footers.values())

    def _file_rows(self, folder: str, name: str) -> int:
        import pyarrow.parquet as pq

        if name in self._footers:
            return self._footers[name]
        try:
            file = pq.ParquetFile(f"{folder}/{name}", filesystem=self._lake.files())
        except FileNotFoundError:  # removed meanwhile, after the watermark passed it
            return 0
        with file:
            return int(file.metadata.num_rows)


def _text(lake: Lake, path: str) -> str | None:
    try:
        with lake.files().open_input_stream(path) as stream:
            return str(stream.read(), "utf-8")
    except FileNotFoundError:
        return None


def _position(report: Document | None) -> Document | None:
    """Return the position of the job's source after a batch."""
    sources = (report or {}).get("sources") or [{}]
    found = sources[0].get("endOffset")
    if isinstance(found, str):
        found = json.loads(found)
    return found if isinstance(found, dict) else None


def lag(position: Mapping[str, Any], ends: Mapping[str, Mapping[str, int]]) -> int | None:
    """Return the number of messages between a position and the ends of its topics."""
    if not ends:
        return None
    behind = 0
    for topic, partitions in ends.items():
        at = position.get(topic, {})
        behind += sum(max(0, end - int(at.get(p, 0))) for p, end in partitions.items())
    return behind


def reports_of(query: "StreamingQuery") -> list[Document]:
    """Return Spark's reports of the last batches of a query, oldest first."""
    return [json.loads(each.json) for each in query.recentProgress]
