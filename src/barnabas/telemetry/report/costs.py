"""Queries for costs: energy and money lost to idle cards, clock speed lost to throttling."""

from barnabas.telemetry.report.questions import TOP_ROWS, Questions
from barnabas.telemetry.report.report_model import Throttling, Waste, Wish

IDLE_SQL = """
CREATE TEMP TABLE idled AS
SELECT gpu_id, any_value(hostname) AS hostname,
    coalesce(any_value(namespace), '') AS namespace,
    sum(seconds) AS seconds, sum(joules) AS joules, sum(parked_seconds) AS parked_seconds,
    sum(parked_mib * parked_seconds) AS parked_mib_seconds
FROM (
    -- A parked card is an idle one too: its window counts once.
    SELECT gpu_id, window_start, any_value(hostname) AS hostname,
        any_value(namespace) AS namespace, max(seconds) AS seconds, max(joules) AS joules,
        coalesce(max(CASE WHEN finding = 'parked_memory' THEN seconds END), 0) AS parked_seconds,
        coalesce(max(CASE WHEN finding = 'parked_memory' THEN value *
            CASE unit WHEN 'GiB' THEN 1024 WHEN 'MiB' THEN 1 ELSE 0 END END), 0) AS parked_mib
    FROM found WHERE finding IN ('idle', 'parked_memory') GROUP BY gpu_id, window_start
)
GROUP BY gpu_id, namespace
"""

THROTTLED_SQL = """
CREATE TEMP TABLE throttled AS
WITH windows AS (
    SELECT gpu_id, any_value(hostname) AS hostname, window_start,
        max(CASE WHEN finding = 'power_capped' THEN seconds ELSE 0 END) AS power_s,
        max(CASE WHEN finding = 'thermal_throttled' THEN seconds ELSE 0 END) AS thermal_s
    FROM found WHERE finding IN ('power_capped', 'thermal_throttled')
    GROUP BY gpu_id, window_start
)
SELECT gpu_id, any_value(windows.hostname) AS hostname, sum(power_s) AS power_s,
    sum(thermal_s) AS thermal_s,
    sum(greatest(power_s, thermal_s) * (1 - sm_clock_mean / nullif(sm_clock_top, 0))) AS lost_s,
    sum(CASE WHEN sm_clock_top > 0 THEN greatest(power_s, thermal_s) END) AS known_s,
    max(gpu_temp_max) AS hottest
FROM windows LEFT JOIN (
    SELECT gpu_id, window_start, sm_clock_mean, sm_clock_top, gpu_temp_max
    FROM gold_10s WHERE level = 'gpu'
) USING (gpu_id, window_start)
GROUP BY gpu_id
"""


def waste(questions: Questions, wish: Wish) -> dict[str, list[Waste]]:
    """Return the cost of idle cards, by host, namespace and GPU, the most expensive first."""
    questions.execute(IDLE_SQL)
    return {
        "all": _waste(questions, wish, "'all GPUs'"),
        "host": _waste(questions, wish, "hostname"),
        "namespace": _waste(questions, wish, "namespace"),
        "gpu": _waste(questions, wish, "gpu_id"),
    }


def _waste(questions: Questions, wish: Wish, by: str) -> list[Waste]:
    host = "any_value(hostname)" if by == "gpu_id" else "''"
    rows = questions.rows(
        f"SELECT {by} AS name, {host}, count(DISTINCT gpu_id), sum(seconds) / 3600 AS hours, "
        "sum(parked_seconds) / 3600, "
        "coalesce(sum(parked_mib_seconds) / nullif(sum(parked_seconds), 0) / 1024, 0), "
        f"sum(joules) / 3.6e6 FROM idled GROUP BY name ORDER BY hours DESC, name LIMIT {TOP_ROWS}"
    )
    return [
        Waste(
            name or "(none)",
            hostname or "",
            gpus,
            hours,
            parked_hours,
            parked_gib,
            kwh or 0.0,
            (kwh or 0.0) * wish.price_per_kwh,
            hours * wish.price_per_gpu_hour,
        )
        for name, hostname, gpus, hours, parked_hours, parked_gib, kwh in rows
    ]


def throttling(questions: Questions) -> tuple[list[Throttling], Throttling]:
    """Return the GPUs that lost the most to throttling, and the total."""
    questions.execute(THROTTLED_SQL)
    columns = (
        "sum(power_s), sum(thermal_s), 100 * sum(lost_s) / nullif(sum(known_s), 0), "
        "sum(lost_s) AS lost, max(hottest) FROM throttled"
    )
    rows = questions.rows(
        f"SELECT gpu_id, any_value(hostname), {columns} GROUP BY gpu_id "
        f"ORDER BY sum(thermal_s) > 0 DESC, lost DESC NULLS LAST, gpu_id LIMIT {TOP_ROWS}"
    )
    total = questions.row(f"SELECT CAST(count(*) AS VARCHAR), '', {columns}")
    power_s, thermal_s, *rest = total[2:]
    whole = Throttling(total[0], "", power_s or 0.0, thermal_s or 0.0, *rest)
    return [Throttling(*row) for row in rows], whole
