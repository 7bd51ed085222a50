"""The status file of a run of statements, which `barnabas sql status` reads.

    status.json      the streams as of the last report, rewritten each time
    checkpoints/     a folder for each stream, by its name
    tables/          the files of tables

The file has no client properties, since these may contain passwords.
"""

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

STATUS = "status.json"
RUNNING = {"starting", "running", "waiting"}
Offsets = dict[str, dict[str, int]]


@dataclass(frozen=True, kw_only=True)
class StreamStatus:
    """The progress of one stream."""

    name: str
    into: str
    state: str = "starting"
    """starting, running, waiting (to start again), done, stopped, failed or killed."""
    batch: int | None = None
    """The number of the last batch; it continues from run to run."""
    rows: int = 0
    """The rows that were read in this run."""
    rows_per_s: float = 0.0
    batch_ms: int | None = None
    watermark: str | None = None
    offsets: Offsets = field(default_factory=dict)
    """The next offset to read, of each partition of the topics that the stream reads."""
    restarts: int = 0
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Status:
    """A run of statements."""

    file: str
    bootstrap: str
    started: str
    updated: str
    streams: tuple[StreamStatus, ...] = ()

    @property
    def after_kill(self) -> "Status":
        """The status of a run that was killed before it could write its end."""
        ended = (
            replace(each, state="killed") if each.state in RUNNING else each
            for each in self.streams
        )
        return replace(self, streams=tuple(ended))


class StatusError(Exception):
    """There is no status to show; the text says what to type."""


def write_status(folder: Path, status: Status) -> None:
    """Replace the status; a reader sees the old one or the new one."""
    draft = folder / f".{STATUS}.draft"
    draft.write_text(json.dumps(asdict(status), indent=1))
    draft.replace(folder / STATUS)


def read_status(folder: Path) -> Status:
    """Return the last status of a folder."""
    try:
        found = json.loads((folder / STATUS).read_text())
        streams = tuple(StreamStatus(**each) for each in found.pop("streams"))
        return Status(**found, streams=streams)
    except FileNotFoundError as error:
        raise StatusError(
            f"{folder} has no {STATUS}; pass --state with the folder of a run, or type: "
            "barnabas sql run FILE"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise StatusError(
            f"{folder / STATUS} cannot be read; another release may have written it. The next "
            "barnabas sql run rewrites it"
        ) from error


def moment() -> str:
    """Return the current time as ISO 8601."""
    return (
        datetime.fromtimestamp(time.time(), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def is_complete(report: Mapping[str, Any]) -> bool:
    """Return whether a batch was written; idle triggers report the number of the next batch."""
    return "addBatch" in report.get("durationMs", {})


def measured(status: StreamStatus, report: Mapping[str, Any]) -> StreamStatus:
    """Apply Spark's report of a complete batch."""
    return replace(
        status,
        batch=int(report["batchId"]),
        rows=status.rows + int(report["numInputRows"]),
        rows_per_s=round(float(report.get("processedRowsPerSecond") or 0.0), 1),
        batch_ms=int(report["durationMs"]["triggerExecution"]),
        watermark=report.get("eventTime", {}).get("watermark"),
        offsets=merged(offsets_of(each.get("endOffset")) for each in report["sources"]),
    )


def offsets_of(position: object) -> Offsets:
    """Return the offsets of a source's position; none if it does not read a topic."""
    if isinstance(position, str):
        try:
            position = json.loads(position)
        except ValueError:
            return {}
    if not isinstance(position, dict):
        return {}
    found = {
        topic: {number: offset for number, offset in places.items() if _is_offset(number, offset)}
        for topic, places in position.items()
        if isinstance(places, dict) and re.fullmatch(r"[\w.-]+", topic)
    }
    return {topic: places for topic, places in found.items() if places}


def merged(positions: Iterable[Offsets]) -> Offsets:
    """Return the lowest position of several sources of the same topic, as in a self-join."""
    found: Offsets = {}
    for each in positions:
        for topic, places in each.items():
            known = found.setdefault(topic, {})
            for number, offset in places.items():
                known[number] = min(offset, known.get(number, offset))
    return found


def _is_offset(number: object, offset: object) -> bool:
    return isinstance(number, str) and number.isdecimal() and isinstance(offset, int)
