"""The progress of Spark's streaming queries, as records of a compacted topic.

`barnabas.spark.report_progress` writes a record for each query: its name is the key, a JSON object
with the fields of `StreamProgress` is the value. Exporter and console read the topic into a
`StreamTable`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

TOPIC = "__barnabas_streams"
"""The default topic."""
NAME_BYTES_MAX = 1_000
VALUE_BYTES_MAX = 100_000
STREAMS_MAX = 10_000
"""Of one table; further queries are left out."""

STATES = ("starting", "running", "stopped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamProgress:
    """One query as of its last report. None is unknown and not 0."""

    name: str
    query_id: str
    """It stays the same from start to start, as the checkpoint does."""
    run_id: str
    state: str
    """One of `STATES`: running from its first report on."""
    since_ms: int
    """When it entered the state."""
    restarts: int = 0
    """How often it was started again after a failure, by the program that reports."""
    rows_per_s: float | None = None
    """How fast the last batch was; 0 if there was nothing to read."""
    input_per_s: float | None = None
    lag: int | None = None
    """Records between the end of the last batch and the end of its topics."""
    batch_ms: int | None = None
    """The duration of the last batch that wrote."""
    state_bytes: int | None = None
    state_rows: int | None = None
    last_error: str | None = None
    sources: Sequence[str] = ()
    sink: str | None = None
    updated_ms: int

    def to_record(self) -> tuple[bytes, bytes]:
        """Return the key and the value of its record."""
        return self.name.encode(), json.dumps(asdict(self), ensure_ascii=False).encode()


_NUMBERS = ("rows_per_s", "input_per_s", "lag", "batch_ms", "state_bytes", "state_rows")
_TEXTS = ("query_id", "run_id", "state")
_FIELDS = frozenset(each.name for each in fields(StreamProgress))


def from_record(key: bytes | None, value: bytes | None) -> StreamProgress | None:
    """Return the query that a record is about; None if it is no report of progress.

    Any program may write to the topic, so that nothing in the record is taken for granted.
    """
    if key is None or value is None or len(value) > VALUE_BYTES_MAX or len(key) > NAME_BYTES_MAX:
        return None
    try:
        found = json.loads(value)
        name = key.decode()
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not _is_report(found):
        return None
    known = {field: found[field] for field in _FIELDS & found.keys()}
    return StreamProgress(**{**known, "name": name, "sources": tuple(found.get("sources", ()))})


def _is_report(found: Mapping[str, Any]) -> bool:
    sources = found.get("sources", [])
    return (
        all(isinstance(found.get(field), str) for field in _TEXTS)
        and all(_is_number(found.get(field)) for field in ("since_ms", "updated_ms"))
        and all(found.get(field) is None or _is_number(found[field]) for field in _NUMBERS)
        and _is_number(found.get("restarts", 0))
        and all(isinstance(found.get(field), str | None) for field in ("last_error", "sink"))
        and isinstance(sources, list)
        and all(isinstance(each, str) for each in sources)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class StreamTable:
    """The last report of each query, from the records of the topic in their order."""

    def __init__(self, streams_max: int = STREAMS_MAX) -> None:
        self._streams_max = streams_max
        self._rows: dict[str, StreamProgress] = {}
        self.ignored = 0
        """Records that are no report of progress."""

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Apply a record; one without a value removes its query."""
        if key is not None and value is None:
            self._rows.pop(key.decode(errors="replace"), None)
            return
        row = from_record(key, value)
        if row is None:
            self.ignored += 1
        elif row.name in self._rows or len(self._rows) < self._streams_max:
            self._rows[row.name] = row

    @property
    def rows(self) -> list[StreamProgress]:
        """All queries, by name."""
        return [self._rows[name] for name in sorted(self._rows)]
