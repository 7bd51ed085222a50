"""Queries for one GPU over time: its metrics and its findings."""

from barnabas.telemetry.report.questions import Questions, Rows, step_for
from barnabas.telemetry.report.report_model import Episode, Series, Timeline

POINTS = 420
GPUS_SHOWN = 8
EPISODES_SHOWN = 400

METRICS = (
    ("gpu_util", "Utilisation", "%", "100", 1.0),
    ("power_usage", "Power", "W", "power_limit", 1.0),
    ("sm_clock", "SM clock", "MHz", "top_clock", 1.0),
    ("fb_used", "Memory", "GiB", "fb_total", 1024.0),
    ("gpu_temp", "Temperature", "°C", "NULL", 1.0),
)


def timelines(questions: Questions) -> list[Timeline]:
    """Return the GPUs with the most kinds of findings, then the most episodes."""
    chosen = questions.rows(
        "SELECT gpu_id FROM episodes GROUP BY gpu_id ORDER BY count(DISTINCT finding) DESC, "
        f"count(*) DESC, sum(seconds) DESC, gpu_id LIMIT {GPUS_SHOWN}"
    )
    if not chosen:
        chosen = questions.rows("SELECT gpu_id FROM gold GROUP BY gpu_id ORDER BY gpu_id LIMIT 1")
    return [_timeline(questions, gpu_id) for (gpu_id,) in chosen]


def _timeline(questions: Questions, gpu_id: str) -> Timeline:
    hostname, model, namespace = questions.row(
        "SELECT any_value(hostname), any_value(model), any_value(namespace) FROM "
        "(SELECT hostname, model, namespace FROM gold WHERE gpu_id = $gpu UNION ALL "
        "SELECT hostname, model, namespace FROM found WHERE gpu_id = $gpu)",
        gpu=gpu_id,
    )
    step_s = step_for(questions.end_s - questions.start_s, POINTS)
    points: Rows = []
    source = ""
    if step_s < 10:
        points, source = _points(questions, gpu_id, step_s, "silver"), "samples"
    if not points:
        step_s = max(step_s, 10.0)
        points, source = _points(questions, gpu_id, step_s, "gold_10s"), "windows of 10 s"
    return Timeline(
        gpu_id=gpu_id,
        hostname=hostname or "",
        model=model or "",
        namespace=namespace or "",
        start_s=questions.start_s,
        end_s=questions.end_s,
        times_s=[row[0] for row in points],
        series=_series(points),
        episodes=_episodes(questions, gpu_id),
        source=source,
    )


def _points(questions: Questions, gpu_id: str, step_s: float, table: str) -> Rows:
    """Return mean and maximum of each metric for each step, with gaps without samples."""
    time, mean, peak = ("timestamp", "{}", "{}")
    ceilings = {"top_clock": "max_sm_clock"}
    if table != "silver":
        time, mean, peak = ("window_start", "{}_mean", "{}_max")
        ceilings = {"top_clock": "sm_clock_top"}
    columns = ", ".join(
        f"avg({mean.format(name)}) / {scale}, max({peak.format(name)}) / {scale}, "
        f"max({ceilings.get(ceiling, ceiling)}) / {scale}"
        for name, _, _, ceiling, scale in METRICS
    )
    level = "" if table == "silver" else "AND level = 'gpu'"
    return questions.rows(
        f"SELECT {questions.start_s} + {step_s} * "
        f"floor((epoch({time}) - {questions.start_s}) / {step_s}) AS at_s, {columns} FROM {table} "
        f"WHERE gpu_id = $gpu {level} AND {time} >= make_timestamp({int(questions.start_s * 1e6)}) "
        f"AND {time} < make_timestamp({int(questions.end_s * 1e6)}) GROUP BY at_s ORDER BY at_s",
        gpu=gpu_id,
    )


def _series(points: Rows) -> list[Series]:
    found = []
    for number, (_, title, unit, _, _) in enumerate(METRICS):
        means = [row[1 + 3 * number] for row in points]
        peaks = [row[2 + 3 * number] for row in points]
        limits = [row[3 + 3 * number] for row in points if row[3 + 3 * number] is not None]
        if any(value is not None for value in means):
            found.append(Series(title, unit, means, peaks, max(limits, default=None)))
    return found


def _episodes(questions: Questions, gpu_id: str) -> list[Episode]:
    rows = questions.rows(
        f"SELECT {', '.join(Episode._fields)} FROM episodes WHERE gpu_id = $gpu "
        f"ORDER BY seconds DESC, start_s LIMIT {EPISODES_SHOWN}",
        gpu=gpu_id,
    )
    return sorted((Episode(*row) for row in rows), key=lambda each: each.start_s)
