"""Queries about single cards: stragglers, broken and missing cards, and open alerts."""

from barnabas.telemetry.report.questions import HARDWARE_SQL, TOP_ROWS, Questions, names
from barnabas.telemetry.report.report_model import (
    STILL_S,
    Alert,
    EccTrend,
    Episode,
    Named,
    Offender,
    Straggler,
    Xid,
)

SPARK_CELLS = 60
ALERTS_SHOWN = 50
NAMED = 3
ECC_ROWS = 12
OFFENDER_ROWS = 15
HABITS = (
    *("idle", "parked_memory", "power_capped"),
    *("launch_bound", "memory_bound", "pcie_bound", "nvlink_bound"),
)
"""Findings about jobs and owners, which are not problems of cards."""


def finding_totals(questions: Questions) -> dict[str, tuple[int, int, float]]:
    """Return GPUs, episodes and seconds by finding."""
    rows = questions.rows(
        "SELECT finding, count(DISTINCT gpu_id), count(*), sum(seconds) FROM episodes "
        "GROUP BY finding"
    )
    return {finding: (gpus, count, seconds) for finding, gpus, count, seconds in rows}


def stragglers(questions: Questions) -> list[Straggler]:
    """Return the GPUs that slowed their peers the longest."""
    rows = questions.rows(
        "SELECT gpu_id, any_value(hostname), any_value(namespace), "
        "sum(seconds) AS total, count(*), arg_max(value, seconds), any_value(unit), "
        "arg_max(detail, seconds) FROM episodes "
        f"WHERE finding = 'straggler' GROUP BY gpu_id ORDER BY total DESC, gpu_id LIMIT {TOP_ROWS}"
    )
    return [Straggler(*row) for row in rows]


def offenders(questions: Questions) -> list[Offender]:
    """Return GPUs by hardware findings first, then by the time with findings."""
    rows = questions.rows(
        "SELECT gpu_id, any_value(hostname), any_value(namespace), "
        "histogram(finding) AS kinds, sum(seconds) AS total, "
        f"count(DISTINCT CASE WHEN finding IN ({HARDWARE_SQL}) THEN finding END) AS hardware, "
        "FROM episodes "
        f"WHERE finding NOT IN ({names(HABITS)}) "
        "GROUP BY gpu_id "
        "ORDER BY hardware DESC, total DESC, gpu_id "
        f"LIMIT {OFFENDER_ROWS}"
    )
    return [
        Offender(gpu_id, hostname, namespace, dict(kinds), seconds)
        for gpu_id, hostname, namespace, kinds, seconds, _ in rows
    ]


def xids(questions: Questions) -> list[Xid]:
    """Return XIDs by card and code, those that ask for a drain first."""
    rows = questions.rows(
        "SELECT CAST(value AS INTEGER) AS code, max(severity = 'critical') AS is_critical, "
        "any_value(severity), count(*) AS times, gpu_id, any_value(hostname), "
        "min(start_s) AS first, max(end_s), any_value(detail) FROM episodes WHERE finding = 'xid' "
        f"GROUP BY code, gpu_id ORDER BY is_critical DESC, times DESC, first LIMIT {TOP_ROWS}"
    )
    return [Xid(code, severity, *rest) for code, _, severity, *rest in rows]


def ecc(questions: Questions) -> list[EccTrend]:
    """Return the cards with an ECC finding, and their counters over time."""
    rows = questions.rows(
        "SELECT gpu_id, any_value(hostname), max(value) AS most, arg_max(detail, end_s) "
        "FROM episodes WHERE finding = 'ecc_trend' GROUP BY gpu_id "
        "ORDER BY most DESC, gpu_id "
        f"LIMIT {ECC_ROWS}"
    )
    return [_trend(questions, gpu_id, hostname, detail) for gpu_id, hostname, _, detail in rows]


def _trend(questions: Questions, gpu_id: str, hostname: str, detail: str) -> EccTrend:
    seconds = (questions.end_s - questions.start_s) / SPARK_CELLS
    cells: list[float | None] = [None] * SPARK_CELLS
    uncorrected = remapped = 0.0
    for cell, corrected, double, rows in questions.rows(
        f"SELECT least({SPARK_CELLS - 1}, CAST(floor((epoch(window_start) - {questions.start_s}) "
        f"/ {seconds}) AS INTEGER)) AS cell, max(ecc_sbe_last), max(ecc_dbe_last), "
        "max(remapped_rows_last) FROM gold WHERE gpu_id = $gpu GROUP BY cell",
        gpu=gpu_id,
    ):
        cells[max(0, cell)] = corrected
        uncorrected, remapped = max(uncorrected, double or 0), max(remapped, rows or 0)
    known = [value for value in cells if value is not None]
    grown = max(known) - min(known) if known else 0.0
    return EccTrend(gpu_id, hostname, grown, cells, uncorrected, remapped, detail)


def absences(questions: Questions) -> list[Episode]:
    """Return the times in which cards were missing, those that still are first."""
    rows = questions.rows(
        f"SELECT {', '.join(Episode._fields)} FROM episodes WHERE finding = 'missing' "
        f"ORDER BY end_s >= {questions.end_s - STILL_S} DESC, seconds DESC, gpu_id LIMIT {TOP_ROWS}"
    )
    return [Episode(*row) for row in rows]


def named(questions: Questions) -> dict[str, Named]:
    """Return the number of cards that need an action, and a few of them."""
    still = f"finding = 'missing' AND end_s >= {questions.end_s - STILL_S}"
    conditions = {
        "drain": "finding = 'xid' AND severity = 'critical'",
        "gone": still,
        "worn": "finding = 'ecc_trend'",
        "repeating": "finding = 'repeat_offender'",
        "hot": "finding = 'thermal_throttled'",
        "slow": "finding = 'straggler'",
        "clock": "finding = 'clock_skew'",
    }
    return {word: _named(questions, condition) for word, condition in conditions.items()}


def _named(questions: Questions, condition: str) -> Named:
    (total,) = questions.row(f"SELECT count(DISTINCT gpu_id) FROM episodes WHERE {condition}")
    rows = questions.rows(
        "SELECT coalesce(any_value(hostname), ''), gpu_id, "
        "coalesce(string_agg(DISTINCT CAST(CAST(value AS BIGINT) AS VARCHAR), ', '), '') "
        f"FROM episodes WHERE {condition} GROUP BY gpu_id "
        f"ORDER BY count(*) DESC, sum(seconds) DESC, gpu_id LIMIT {NAMED}"
    )
    return Named(total, rows)


def alerts(questions: Questions) -> tuple[list[Alert], dict[str, int]]:
    """Return the last message about each alert, open ones first, and the number in each state."""
    last = (
        "(SELECT alert_id, arg_max(state, (last_seen, state = 'cleared')) AS state, "
        "any_value(finding) AS finding, any_value(severity) AS severity, "
        "any_value(gpu_id) AS gpu_id, any_value(hostname) AS hostname, "
        "flatten(list(gpus)) AS gpus, "
        "min(epoch(first_seen)) AS first_s, max(epoch(last_seen)) AS last_s, "
        "arg_max(message, last_seen) AS message, arg_max(action, last_seen) AS action "
        "FROM alerts GROUP BY alert_id "
        f"HAVING last_s >= {questions.start_s} AND first_s <= {questions.end_s} "
        + ("AND (gpu_id = $gpu OR list_contains(gpus, $gpu)))" if questions.gpu_id else ")")
    )
    values = {"gpu": questions.gpu_id} if questions.gpu_id else {}
    rows = questions.rows(
        f"SELECT {', '.join(Alert._fields)} FROM {last} ORDER BY state = 'cleared', "
        "coalesce(list_position(['critical', 'warning'], severity), 9), last_s DESC, gpu_id "
        f"LIMIT {ALERTS_SHOWN}",
        **values,
    )
    counts = questions.rows(f"SELECT state, count(*) FROM {last} GROUP BY state", **values)
    return [Alert(*row) for row in rows], dict(counts)
