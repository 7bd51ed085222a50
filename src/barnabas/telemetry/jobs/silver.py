"""The silver job: validates each message and stores the valid ones with a column for each metric.

A batch has two steps. Tasks validate their part of the messages, in one pass over Arrow batches,
and write three files: rows, the numbers of their samples, and an outbox of dead letters and latest
states. Then the driver sends the outbox through the exactly-once sink and completes the batch with
a note. The note has the state for the next batch: event time so far, and the files of sample
numbers that the watermark has not passed. So the state of silver is in its table, and does not grow
with the stream.

The watermark of a batch is the newest event time of the previous batches less `late_after_s`;
within a batch the same applies along each partition. Spark's operator is not used, because a sample
must not advance the watermark beyond the broker's clock: otherwise one fast clock would make a
fleet late.

gpu-latest: each batch sends its newest row of each GPU and MIG instance. The log keeps the order of
batches, so that the last one counts; if a late sample is in a later batch than a newer one, it is
shown until the next sample.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.telemetry.findings.skew import merged
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.jobs import batches
from barnabas.telemetry.jobs.batches import Report
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import WORK, Lake, Note, arrow_schema, batch_name
from barnabas.telemetry.samples import telemetry_topics as topics
from barnabas.telemetry.samples.duplicates import Numbers, Seen
from barnabas.telemetry.samples.metrics import COLUMNS
from barnabas.telemetry.samples.other_metrics import entries
from barnabas.telemetry.samples.sample_refusals import Coordinates, dead_letter_headers
from barnabas.telemetry.samples.sample_validation import (
    Newest,
    Rules,
    Validated,
    Verdicts,
    validate,
)
from barnabas.telemetry.windows import instants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "silver"
NUMBERS = f"{WORK}/silver-numbers"
OUTBOX = f"{WORK}/silver-outbox"
SLICE_S = 10
"""Files list the slices of event time that they cover, of the width of the narrowest window."""
INPUT = [column.name for column in lake_tables.BRONZE]
OUTBOX_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        arrow_schema(lake_tables.BRONZE).field("headers"),
    ]
)
Send = Callable[["DataFrame", str, int], None]
"""Sends rows with key, value, topic and headers, once for each query and batch."""


@dataclass(frozen=True, kw_only=True)
class SilverSettings:
    """The settings of the silver job."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    value_bytes_max: int = 65_536
    """A snapshot takes 1 KB; a far larger message is not a reading, and expensive to parse."""
    latest: bool = True
    """Whether to keep gpu-latest."""


def write_batch(
    lake: Lake, settings: SilverSettings, send: Send
) -> Callable[["DataFrame", int], None]:
    """Return the function for foreachBatch."""
    clean = False

    def write(messages: "DataFrame", batch_id: int) -> None:
        nonlocal clean
        query_id = lake.query_id(TABLE)
        if batches.done_before(lake, TABLE, batch_id, query_id):
            return
        before = batches.note_before(lake, TABLE, batch_id)
        if not clean:
            _remove_leftovers(lake, batch_id, before)
            clean = True
        parts = _validated_parts(lake, messages.select(*INPUT), batch_id, settings, before)
        outbox = [lake.path(OUTBOX, part["outbox"]) for part in parts if part["outbox"]]
        if outbox:
            send(messages.sparkSession.read.parquet(*outbox), query_id, batch_id)
        note = _note(before, parts, settings.thresholds.late_after_s)
        files = [file["name"] for file in note["files"]]
        lake.complete(TABLE, {"query": query_id, "batch": batch_id, **note}, files)
        lake.remove(OUTBOX, (part["outbox"] for part in parts if part["outbox"]))
        lake.remove(NUMBERS, _passed(before, note))

    return write


def _remove_leftovers(lake: Lake, batch_id: int, before: Note) -> None:
    """Remove files of a killed run, of this batch or of the previous one."""
    known = {entry["file"] for entry in before.get("numbers", [])}
    lake.remove_batch(TABLE, batch_id)
    lake.remove(OUTBOX, lake.names(OUTBOX))
    lake.remove(NUMBERS, set(lake.names(NUMBERS)) - known)


def _validated_parts(
    lake: Lake, messages: "DataFrame", batch_id: int, settings: SilverSettings, before: Note
) -> list[Report]:
    """Validate in parallel; in a single task if parts have the same samples.

    Samples of a GPU have one key, so one partition has them all and parts do not overlap. They do
    if the topic got more partitions meanwhile or a producer sets other keys.
    """
    task = _task(lake, batch_id, settings, before)
    parts = batches.reports(messages, task)
    seen = Seen()
    for each in _numbers(lake, (part["numbers"] for part in parts if part["numbers"])):
        times = np.array([each.low_us, each.high_us])
        if seen.add(times, each.sorted).any():
            _remove_leftovers(lake, batch_id, before)
            return batches.reports(messages.coalesce(1), task)
    return parts


def _numbers(lake: Lake, entries: Iterable[Note]) -> list[Numbers]:
    return [
        Numbers(
            entry["low_us"],
            entry["high_us"],
            lake.read_table(NUMBERS, [entry["file"]], ["number"])["number"].to_numpy(),
        )
        for entry in entries
    ]


def _note(before: Note, parts: list[Report], late_after_s: float) -> Note:
    """Return the content of the batch and the state for the next one."""
    known = [part["event_us"] for part in parts if part["event_us"] is not None]
    if before.get("event_us") is not None:
        known.append(before["event_us"])
    event_us = max(known, default=None)
    watermark_us = None if event_us is None else event_us - int(late_after_s * 1e6)
    numbers = before.get("numbers", []) + [part["numbers"] for part in parts if part["numbers"]]
    refused: Counter[str] = Counter()
    for part in parts:
        refused.update(part["refused"])
    return {
        "messages": sum(part["messages"] for part in parts),
        "rows": sum(part["rows"] for part in parts),
        "samples": sum(part["samples"] for part in parts),
        "refused": dict(refused),
        "event_us": event_us,
        "watermark_us": watermark_us,
        "skews": merged((part["skews"] for part in parts), event_us),
        "files": [part["file"] for part in parts if part["file"]],
        "numbers": [n for n in numbers if watermark_us is None or n["high_us"] >= watermark_us],
    }


def _passed(before: Note, note: Note) -> list[str]:
    kept = {entry["file"] for entry in note["numbers"]}
    return [e["file"] for e in before.get("numbers", []) if e["file"] not in kept]


def _task(lake: Lake, batch_id: int, settings: SilverSettings, before: Note) -> batches.Task:
    thresholds = settings.thresholds
    rules = Rules(
        late_before_us=before.get("watermark_us"),
        late_us=int(thresholds.late_after_s * 1e6),
        ahead_us=int(thresholds.ahead_s * 1e6),
        tick_ahead_us=int(thresholds.tick_ahead_s * 1e6),
        value_bytes_max=settings.value_bytes_max,
        skew_us=int(thresholds.clock_skew_s * 1e6),
    )
    earlier = before.get("numbers", [])

    def validate_part(part: int, records: Iterator[pa.RecordBatch]) -> Report:
        writing = _PartWriting(lake, batch_name(batch_id, part), rules, settings.latest)
        return {"part": part, **writing.report(records, Seen(_numbers(lake, earlier)))}

    return validate_part


class _PartWriting:
    """Writes one part of a batch to files."""

    def __init__(self, lake: Lake, name: str, rules: Rules, latest: bool) -> None:
        self._lake = lake
        self._name = name
        self._rules = rules
        self._latest = latest
        self._letters: list[pa.Table] = []
        self._refused: Counter[str] = Counter()
        self._now = _iso(datetime.fromtimestamp(time.time(), UTC))

    def report(self, records: Iterator[pa.RecordBatch], seen: Seen) -> Report:
        """Validate and write everything; return a report for the driver."""
        verdicts = Verdicts()
        newest: Newest = {}
        messages = 0
        for batch in records:
            validated = validate(batch, self._rules, seen, newest)
            self._refuse(batch, validated)
            verdicts.parts.append(validated)
            messages += batch.num_rows
        rows, samples, entries = self._rows(verdicts)
        return {
            "messages": messages,
            "rows": rows.num_rows,
            "samples": samples,
            "refused": self._refused,
            "event_us": verdicts.event_us(),
            "skews": verdicts.skews(),
            "file": self._written(rows),
            "numbers": entries,
            "outbox": self._outbox(rows),
        }

    def _refuse(self, batch: pa.RecordBatch, validated: Validated) -> None:
        if not validated.faults:
            return
        places = sorted(validated.faults)
        self._refused.update(
            r for p in places for r in {f.reason.value for f in validated.faults[p]}
        )
        refused = batch.take(pa.array(places)).to_pylist()
        letters = [self._letter(row, validated, p) for row, p in zip(refused, places, strict=True)]
        self._letters.append(pa.Table.from_pylist(letters, schema=OUTBOX_SCHEMA))

    def _letter(self, row: dict[str, Any], validated: Validated, place: int) -> dict[str, Any]:
        where = Coordinates(row["topic"], row["partition"], row["offset"])
        original = [(header["key"], header["value"]) for header in row["headers"] or ()]
        headers = dead_letter_headers(original, where, validated.faults[place], self._now)
        return {
            "key": row["key"],
            "value": row["value"],
            "topic": topics.REFUSED,
            "headers": [{"key": name, "value": value} for name, value in headers],
        }

    def _rows(self, verdicts: Verdicts) -> tuple[pa.Table, int, Note | None]:
        rows = verdicts.rows()
        if rows.num_rows == 0:
            return rows, 0, None
        sources = np.concatenate([each.sources for each in verdicts.parts])
        numbers = np.concatenate([each.numbers for each in verdicts.parts])
        time_us = rows["timestamp"].cast(pa.int64()).to_numpy()
        table = pa.table({"number": np.sort(numbers)})
        file = self._lake.write_table(NUMBERS, self._name, table)
        entries = {"file": file, "low_us": int(time_us.min()), "high_us": int(time_us.max())}
        samples = _count(rows)
        whole, firsts = instants.joined(rows, sources, time_us)
        self._newest = _newest(sources[firsts], time_us[firsts])
        return whole, samples, entries

    def _written(self, rows: pa.Table) -> Note | None:
        if rows.num_rows == 0:
            return None
        seconds = rows["timestamp"].cast(pa.int64()).to_numpy() // 1_000_000
        slices = np.unique(seconds // SLICE_S * SLICE_S).tolist()
        name = self._lake.write_table(TABLE, self._name, rows)
        return {"name": name, "slices": slices}

    def _outbox(self, rows: pa.Table) -> str | None:
        letters = self._letters
        if self._latest and rows.num_rows:
            letters = [*letters, latest_messages(rows.take(pa.array(self._newest)))]
        if not letters:
            return None
        return self._lake.write_table(OUTBOX, self._name, pa.concat_tables(letters))


def _count(rows: pa.Table) -> int:
    """Return the number of values in rows."""
    nulls = sum(rows.column(name).null_count for name in COLUMNS)
    others = len(entries(rows.column("other"))[0])
    return int(rows.num_rows * len(COLUMNS) - nulls + others)


def _newest(sources: np.ndarray, time_us: np.ndarray) -> np.ndarray:
    order = np.lexsort((time_us, sources))
    last = np.ones(len(order), dtype=bool)
    last[:-1] = sources[order][1:] != sources[order][:-1]
    return np.sort(order[last])


def latest_messages(rows: pa.Table) -> pa.Table:
    """Return rows as messages for gpu-latest: JSON with the known values, keyed by GPU.

    The key of a MIG instance is GPU/INSTANCE.
    """
    shown = rows.drop_columns(["partition", "offset", "timestamp"]).to_pylist()
    times = rows["timestamp"].to_pylist()
    values = [_latest_json(row, at) for row, at in zip(shown, times, strict=True)]
    keys = _keys(rows).cast(pa.binary())
    empty = pa.nulls(len(keys), OUTBOX_SCHEMA.field("headers").type)
    topic = pa.array([topics.LATEST] * len(keys), pa.string())
    return pa.table([keys, pa.array(values, pa.binary()), topic, empty], schema=OUTBOX_SCHEMA)


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    instance = pc.fill_null(pc.binary_join_element_wise("", rows["instance"], "/"), "")
    return pc.binary_join_element_wise(rows["gpu_id"], instance, "")


def _latest_json(row: dict[str, Any], moment: datetime) -> bytes:
    known = {name: value for name, value in row.items() if value is not None}
    if "other" in known:
        known["other"] = dict(known["other"])
    return orjson.dumps({"timestamp": _iso(moment), **known})


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
