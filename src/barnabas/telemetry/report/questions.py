"""The DuckDB views that the report's queries share, and helpers for their results.

Every query reads `gold` (a GPU's rollups), `found` (findings) or `episodes`, all restricted to the
time and the GPU of the report. For long times `gold` is the table of minutes: it has six times
fewer rows, and the page does not show shorter times. Time is `covered_seconds` of `gold`, never a
number of windows; rows of version 0.1, which lack it, cover their whole window.
"""

from typing import TYPE_CHECKING, Any

from barnabas.telemetry.report.report_model import HARDWARE, STATE_OF, STATES, Wish

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CELLS = 288
TOP_ROWS = 25
STEPS_S = (
    1,
    2,
    5,
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    21600,
    43200,
    86400,
)

Rows = list[tuple[Any, ...]]


class Questions:
    """A connection with the views of the report."""

    def __init__(self, connection: "DuckDBPyConnection", wish: Wish) -> None:
        self._connection = connection
        self.gpu_id = wish.gpu_id
        self._filters(wish)
        self.start_s, self.end_s = self._span(wish)
        # Not shorter than the windows of findings.
        self.step_s = max(10.0, step_for(self.end_s - self.start_s, CELLS))
        self.is_by_minute = self._has_minutes() and self.step_s >= 60
        table = "gold_1m" if self.is_by_minute else "gold_10s"
        self._view(
            "gold",
            "SELECT * REPLACE (coalesce(covered_seconds, "
            "epoch(window_end) - epoch(window_start)) AS covered_seconds) "
            f"FROM {table} WHERE level = 'gpu' AND {self._where}",
        )
        self._view("split", f"SELECT * FROM {table} WHERE level = 'instance' AND {self._where}")
        self._view("found", f"SELECT * FROM findings WHERE {self._where}")
        self._view("states", STATES_SQL)
        self.execute(f"CREATE TEMP TABLE episodes AS {EPISODES_SQL}")

    def rows(self, sql: str, **values: object) -> Rows:
        """Return all rows of a query; `$name` is replaced by a value."""
        found: Rows = self._connection.execute(sql, values or None).fetchall()
        return found

    def row(self, sql: str, **values: object) -> tuple[Any, ...]:
        """Return the first row."""
        return self.rows(sql, **values)[0]

    def execute(self, sql: str) -> None:
        """Run a statement."""
        self._connection.execute(sql)

    def cell(self, column: str = "window_start") -> str:
        """Return SQL for the number of the cell that a time falls into."""
        last = max(0, self.cells - 1)
        position = f"CAST(floor((epoch({column}) - {self.start_s}) / {self.step_s}) AS INTEGER)"
        return f"greatest(0, least({last}, {position}))"

    @property
    def cells(self) -> int:
        """The number of cells of the time."""
        return max(1, int(-(-(self.end_s - self.start_s) // self.step_s)))

    def _filters(self, wish: Wish) -> None:
        terms = ["true"]
        if wish.gpu_id is not None:
            terms.append("gpu_id = " + "'" + wish.gpu_id.replace("'", "''") + "'")
        if wish.start_s is not None:
            terms.append(f"window_end > make_timestamp({int(wish.start_s * 1e6)})")
        if wish.end_s is not None:
            terms.append(f"window_start < make_timestamp({int(wish.end_s * 1e6)})")
        self._where = " AND ".join(terms)

    def _span(self, wish: Wish) -> tuple[float, float]:
        """Return the part of the requested time that has data."""
        tables = " UNION ALL ".join(
            f"SELECT min(epoch(window_start)), max(epoch(window_end)) FROM {table} "
            f"WHERE {self._where}"
            for table in ("gold_10s", "findings")
        )
        low, high = self.row(f"SELECT min(a), max(b) FROM ({tables}) AS t(a, b)")
        if low is None:
            low = high = wish.start_s or wish.end_s or 0.0
        return float(low), max(float(high), float(low) + 10)

    def _has_minutes(self) -> bool:
        return bool(self.row(f"SELECT count(*) > 0 FROM gold_1m WHERE {self._where}")[0])

    def _view(self, name: str, sql: str) -> None:
        self.execute(f"CREATE TEMP VIEW {name} AS {sql}")


def step_for(seconds: float, cells: int) -> float:
    """Return the smallest round step that divides a time into at most this many cells."""
    return float(next((step for step in STEPS_S if seconds / step <= cells), STEPS_S[-1]))


def names(words: tuple[str, ...]) -> str:
    """Return words as an SQL list."""
    return ", ".join(f"'{word}'" for word in words)


_RANKS = " ".join(
    f"WHEN '{finding}' THEN {STATES.index(state)}" for finding, state in STATE_OF.items()
)

STATES_SQL = f"""
SELECT gpu_id, window_start, min(CASE finding {_RANKS} END) AS state,
    max(coalesce(seconds, 10)) AS seconds
FROM found WHERE finding IN ({names(tuple(STATE_OF))}) GROUP BY gpu_id, window_start
"""
"""The state of each GPU in each window with a finding, as the number of a state."""

EPISODES_SQL = """
WITH stepped AS (
    SELECT *, window_start > lag(window_end) OVER lane AS is_new
    FROM found
    -- Two XIDs are two things, however close.
    WINDOW lane AS (
        PARTITION BY gpu_id, finding, CASE WHEN finding = 'xid' THEN value END
        ORDER BY window_start
    )
), numbered AS (
    SELECT *, sum(CASE WHEN is_new IS NOT false THEN 1 ELSE 0 END) OVER (
        PARTITION BY gpu_id, finding, CASE WHEN finding = 'xid' THEN value END
        ORDER BY window_start ROWS UNBOUNDED PRECEDING
    ) AS episode
    FROM stepped
)
SELECT
    gpu_id, any_value(hostname) AS hostname, any_value(namespace) AS namespace, finding,
    arg_max(severity, list_position(['info', 'warning', 'critical'], severity)) AS severity,
    min(epoch(window_start)) AS start_s, max(epoch(window_end)) AS end_s,
    count(*) AS windows, sum(coalesce(seconds, 0)) AS seconds, sum(coalesce(joules, 0)) AS joules,
    arg_max(value, abs(value)) AS value, coalesce(any_value(unit), '') AS unit,
    coalesce(arg_max(detail, window_start), '') AS detail
FROM numbered
GROUP BY gpu_id, finding, CASE WHEN finding = 'xid' THEN value END, episode
"""
"""Findings of adjacent windows, merged."""

HARDWARE_SQL = names(HARDWARE)
