"""The progress of Spark's streaming queries as series. A value that is unknown is left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from barnabas.exporter.series_text import COUNTER, GAUGE, Family, page
from barnabas.exporter.topic_following import TopicFollower
from barnabas.monitor.stream_progress import STATES, StreamProgress, StreamTable
from barnabas.monitor.watcher import Watcher

STREAM = ("stream",)
Value = Callable[[StreamProgress], float | None]


class StreamSeries:
    """Follows the topic of reports, from `start` to `stop`."""

    def __init__(self, properties: Mapping[str, object], topic: str, watcher: Watcher) -> None:
        self._table = StreamTable()
        self._follower = TopicFollower(properties, topic, watcher, self._table.apply)
        self.start, self.stop = self._follower.start, self._follower.stop

    def text(self) -> str:
        """Return the series of all queries."""
        with self._follower.lock:
            rows = self._table.rows
        return page(stream_families(rows))


def stream_families(rows: Sequence[StreamProgress]) -> Iterator[Family]:
    """Return the families of all queries."""
    yield Family(
        "barnabas_stream_state",
        GAUGE,
        "1 for the state of a streaming query.",
        ("stream", "state"),
        [((row.name, state), int(row.state == state)) for row in rows for state in STATES],
    )
    for name, kind, text, value in _VALUES:
        found = [((row.name,), value(row)) for row in rows]
        lines = [(labels, number) for labels, number in found if number is not None]
        yield Family(f"barnabas_stream_{name}", kind, text, STREAM, lines)


_VALUES: tuple[tuple[str, str, str, Value], ...] = (
    ("rows_per_second", GAUGE, "How fast the last batch was.", lambda row: row.rows_per_s),
    ("input_per_second", GAUGE, "How fast rows arrived.", lambda row: row.input_per_s),
    (
        "lag",
        GAUGE,
        "Records between the last batch and the end of its topics.",
        lambda row: row.lag,
    ),
    (
        "batch_seconds",
        GAUGE,
        "How long the last batch took.",
        lambda row: None if row.batch_ms is None else row.batch_ms / 1000,
    ),
    ("state_rows", GAUGE, "Rows that stateful operators hold.", lambda row: row.state_rows),
    ("state_bytes", GAUGE, "Memory of stateful operators.", lambda row: row.state_bytes),
    ("restarts_total", COUNTER, "Starts after a failure.", lambda row: row.restarts),
    (
        "updated_timestamp_seconds",
        GAUGE,
        "When the query reported last.",
        lambda row: row.updated_ms / 1000,
    ),
)
