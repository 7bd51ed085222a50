"""Runs all queries of a report and returns it as plain values."""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake.lake_reading import Lake, LakeError
from barnabas.telemetry.report import costs, overview, sampling, troubles
from barnabas.telemetry.report.advice import advice
from barnabas.telemetry.report.bottleneck_section import bottlenecks
from barnabas.telemetry.report.questions import Questions
from barnabas.telemetry.report.report_model import Fleet, Quality, Report, Wish
from barnabas.telemetry.report.timelines import timelines

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COUNTED = ("bronze", "silver", "gold_10s", "gold_1m", "findings", "alerts")


def gather(lake: Lake, wish: Wish, refused: dict[str, int] | None = None) -> Report:
    """Return the report on a lake; `refused` counts the DLQ's records by reason, if known."""
    lake.require()
    with lake.open(complete=True) as connection:
        if wish.gpu_id is not None:
            wish = replace(wish, gpu_id=_known_gpu(connection, wish.gpu_id))
        questions = Questions(connection, wish)
        fleet = overview.fleet(questions)
        if fleet.gpus == 0:
            raise _nothing(connection, lake)
        report = _report(questions, lake, wish, fleet, refused)
    return replace(report, advice=advice(report))


def _report(
    questions: Questions, lake: Lake, wish: Wish, fleet: Fleet, refused: dict[str, int] | None
) -> Report:
    throttling, throttled_total = costs.throttling(questions)
    alerts, alert_counts = troubles.alerts(questions)
    return Report(
        wish=wish,
        folder=str(lake.folder),
        missing_tables=lake.missing,
        lost_tables=lake.lost,
        fleet=fleet,
        histograms=overview.histograms(questions),
        shares=overview.shares(questions),
        map=overview.state_map(questions, fleet.gpus),
        timelines=timelines(questions),
        finding_totals=troubles.finding_totals(questions),
        waste=costs.waste(questions, wish),
        throttling=throttling,
        throttled_total=throttled_total,
        instances=overview.instances(questions),
        stragglers=troubles.stragglers(questions),
        bottlenecks=bottlenecks(questions),
        offenders=troubles.offenders(questions),
        xids=troubles.xids(questions),
        ecc=troubles.ecc(questions),
        absences=troubles.absences(questions),
        named=troubles.named(questions),
        alerts=alerts,
        alert_counts=alert_counts,
        quality=_quality(questions, lake, fleet, refused),
    )


def _quality(
    questions: Questions, lake: Lake, fleet: Fleet, refused: dict[str, int] | None
) -> Quality:
    rows = {
        name: questions.row(f"SELECT count(*) FROM {name}")[0]
        for name in COUNTED
        if name in lake.tables
    }
    samples, newest = questions.row(
        "SELECT coalesce(sum(samples), 0), max(epoch(window_end)) FROM gold"
    )
    expected = fleet.gpus * fleet.seconds / 3600
    # Windows of whole minutes extend beyond a span that begins or ends within a minute.
    coverage = min(100.0, 100 * fleet.gpu_hours / expected) if expected else None
    unseen = sampling.not_looked_for(questions, Thresholds())
    return Quality(int(samples), rows, coverage, newest, refused, unseen)


def _known_gpu(connection: "DuckDBPyConnection", wanted: str) -> str:
    """Return the GPU with an id, or with the end or the beginning of an id."""
    rows = connection.execute(
        "SELECT DISTINCT gpu_id FROM (SELECT gpu_id FROM gold_10s WHERE level = 'gpu' "
        "UNION SELECT gpu_id FROM findings) WHERE gpu_id = $1 OR starts_with(gpu_id, $1) "
        "OR ends_with(gpu_id, $1) ORDER BY gpu_id",
        [wanted],
    ).fetchall()
    known = [row[0] for row in rows]
    if wanted in known:
        return wanted
    if len(known) == 1:
        return str(known[0])
    if known:
        raise LakeError(f"--gpu {wanted} fits {len(known)} GPUs, such as {known[0]}; write more")
    raise LakeError(
        f"There is no GPU {wanted} in this lake; "
        '`barnabas telemetry query "SELECT DISTINCT gpu_id FROM gold_10s"` lists them'
    )


def _nothing(connection: "DuckDBPyConnection", lake: Lake) -> LakeError:
    low, high = connection.execute(
        "SELECT min(window_start), max(window_end) FROM gold_10s"
    ).fetchone()
    if low is not None:
        return LakeError(
            f"Nothing was measured in that time; the lake reaches from {low}Z to {high}Z: "
            "move --from and --to"
        )
    there = ", ".join(lake.tables)
    missing = " and ".join(name for name in ("gold_10s", "findings") if name not in lake.tables)
    return LakeError(
        f"{lake.folder} has {there}, but nothing in {missing or 'gold_10s and findings'} yet, "
        "which a report is made of; wait for the first windows to close, or "
        "start `barnabas telemetry run`"
    )
