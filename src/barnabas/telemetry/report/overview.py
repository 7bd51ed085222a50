"""Queries about the whole fleet: its size and its states."""

from barnabas.telemetry.report.drawing import round_top
from barnabas.telemetry.report.questions import Questions, names
from barnabas.telemetry.report.report_model import (
    HARDWARE,
    STATES,
    Fleet,
    Histogram,
    Instance,
    Mark,
    Shares,
    StateMap,
)

MAP_ROWS = 128
BINS = 25
INSTANCE_ROWS = 700
"""Enough for a hundred cards that are split as finely as possible."""
WORKING = STATES.index("working")

METRICS = (
    ("gpu_util_mean", "Utilisation", "%", 100.0),
    ("power_usage_mean", "Power", "W", None),
    ("gpu_temp_mean", "Temperature", "°C", None),
    ("fb_used_mean / 1024", "Memory used", "GiB", None),
)


def fleet(questions: Questions) -> Fleet:
    """Count hosts, cards and jobs, including cards that were always missing."""
    gpus, hosts, namespaces = questions.row(
        "SELECT count(DISTINCT gpu_id), count(DISTINCT hostname), count(DISTINCT namespace) FROM "
        "(SELECT DISTINCT gpu_id, hostname, namespace FROM gold UNION "
        "SELECT DISTINCT gpu_id, hostname, namespace FROM found)"
    )
    models = questions.rows(
        "SELECT coalesce(model, 'unknown model') AS model, count(DISTINCT gpu_id) AS gpus "
        "FROM (SELECT DISTINCT gpu_id, model FROM gold UNION "
        "SELECT DISTINCT gpu_id, model FROM found) "
        "GROUP BY model ORDER BY gpus DESC, model"
    )
    seconds, joules, util = questions.row(
        "SELECT coalesce(sum(covered_seconds), 0), "
        "sum(coalesce(energy_joules, power_usage_mean * covered_seconds)), "
        "sum(gpu_util_mean * covered_seconds) / "
        "nullif(sum(CASE WHEN gpu_util_mean IS NOT NULL THEN covered_seconds END), 0) FROM gold"
    )
    return Fleet(
        start_s=questions.start_s,
        end_s=questions.end_s,
        gpus=gpus,
        hosts=hosts,
        models=tuple((name, count) for name, count in models),
        namespaces=namespaces,
        gpu_hours=seconds / 3600,
        energy_kwh=(joules or 0.0) / 3.6e6,
        util_mean=util,
    )


def instances(questions: Questions) -> list[Instance]:
    """Return the MIG instances, card by card."""
    rows = questions.rows(
        "SELECT gpu_id, coalesce(any_value(hostname), ''), instance, "
        "coalesce(any_value(profile), ''), coalesce(arg_max(namespace, window_start), ''), "
        "coalesce(arg_max(pod, window_start), ''), avg(gpu_util_mean), avg(fb_used_mean) / 1024, "
        "avg(util_idle_share) FROM split GROUP BY gpu_id, instance "
        f"ORDER BY 2, gpu_id, TRY_CAST(instance AS INTEGER), instance LIMIT {INSTANCE_ROWS}"
    )
    return [Instance(*row) for row in rows]


def histograms(questions: Questions) -> list[Histogram]:
    """Return the distributions of the main metrics."""
    found = (_histogram(questions, *metric) for metric in METRICS)
    return [each for each in found if each is not None]


def _histogram(
    questions: Questions, value: str, title: str, unit: str, top: float | None
) -> Histogram | None:
    low, high, p50, p95 = questions.row(
        f"SELECT min(v), max(v), approx_quantile(v, 0.5), approx_quantile(v, 0.95) "
        f"FROM (SELECT {value} AS v FROM gold) WHERE v IS NOT NULL"
    )
    if low is None:
        return None
    low = 0.0
    step = ((top if top is not None else round_top(max(high, low + 10))) - low) / BINS
    counted = questions.rows(
        f"SELECT least({BINS - 1}, CAST(floor((v - {low}) / {step}) AS INTEGER)) AS bin, count(*) "
        f"FROM (SELECT {value} AS v FROM gold) WHERE v IS NOT NULL GROUP BY bin"
    )
    counts = [0] * BINS
    for number, count in counted:
        counts[max(0, number)] += count
    return Histogram(title, unit, low, step, tuple(counts), p50, p95, high)


def shares(questions: Questions) -> Shares:
    """Return how many GPUs were in each state, cell by cell.

    States from findings have their seconds, presence the time that samples of `gold` cover. Cards
    that are present and have no such finding are working.
    """
    counts = {state: [0.0] * questions.cells for state in STATES}
    for cell, state, seconds in questions.rows(
        f"SELECT {questions.cell()} AS cell, state, sum(seconds) FROM states GROUP BY cell, state"
    ):
        counts[STATES[state]][cell] = float(seconds)
    for cell, seconds in questions.rows(
        f"SELECT {questions.cell()} AS cell, sum(covered_seconds) FROM gold GROUP BY cell"
    ):
        found = sum(counts[state][cell] for state in STATES if state not in ("missing", "working"))
        counts["working"][cell] = max(0.0, seconds - found)
    return Shares(questions.step_s, counts)


def state_map(questions: Questions, gpus: int) -> StateMap:
    """Return the states of each GPU; in a large fleet, of those with the most findings."""
    rows = questions.rows(
        "WITH everyone AS (SELECT gpu_id, any_value(hostname) AS hostname FROM "
        "(SELECT DISTINCT gpu_id, hostname FROM gold UNION SELECT DISTINCT gpu_id, hostname "
        "FROM found) GROUP BY gpu_id), "
        f"trouble AS (SELECT gpu_id, count_if(finding IN ({names(HARDWARE)})) AS hardware, "
        "sum(CASE WHEN finding <> 'idle' THEN seconds END) AS seconds "
        "FROM episodes GROUP BY gpu_id) "
        "SELECT hostname, gpu_id FROM everyone LEFT JOIN trouble USING (gpu_id) "
        "ORDER BY coalesce(hardware, 0) > 0 DESC, coalesce(seconds, 0) DESC, hostname, gpu_id "
        f"LIMIT {MAP_ROWS}"
    )
    chosen = sorted((hostname or "", gpu_id) for hostname, gpu_id in rows)
    number = {gpu_id: row for row, (_, gpu_id) in enumerate(chosen)}
    cells = _cells(questions, number)
    return StateMap(questions.step_s, chosen, cells, _marks(questions, number), gpus - len(chosen))


def _cells(questions: Questions, rows: dict[str, int]) -> list[list[int]]:
    """Give each cell the state that the GPU was in for most of it."""
    weights: dict[tuple[int, int], dict[int, float]] = {}
    wanted = list(rows)
    for gpu_id, cell, state, seconds in questions.rows(
        f"SELECT gpu_id, {questions.cell()} AS cell, state, sum(seconds) FROM states "
        "WHERE list_contains($wanted, gpu_id) GROUP BY gpu_id, cell, state",
        wanted=wanted,
    ):
        weights.setdefault((rows[gpu_id], cell), {})[state] = seconds
    for gpu_id, cell, covered in questions.rows(
        f"SELECT gpu_id, {questions.cell()} AS cell, sum(covered_seconds) FROM gold "
        "WHERE list_contains($wanted, gpu_id) GROUP BY gpu_id, cell",
        wanted=wanted,
    ):
        known = weights.setdefault((rows[gpu_id], cell), {})
        found = sum(seconds for state, seconds in known.items() if STATES[state] != "missing")
        known[WORKING] = max(0.0, covered - found)
    cells = [[-1] * questions.cells for _ in rows]
    for (row, cell), known in weights.items():
        cells[row][cell] = max(known, key=lambda state: (known[state], -state))
    return cells


def _marks(questions: Questions, rows: dict[str, int]) -> list[Mark]:
    found = questions.rows(
        "SELECT gpu_id, start_s, 'XID ' || CAST(value AS INTEGER) FROM episodes "
        "WHERE finding = 'xid' AND list_contains($wanted, gpu_id) ORDER BY start_s LIMIT 500",
        wanted=list(rows),
    )
    return [Mark(rows[gpu_id], at_s, text) for gpu_id, at_s, text in found]
