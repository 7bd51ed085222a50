"""The summary of a report: rows for a terminal, and a JSON document for scripts."""

from typing import Any

from barnabas.telemetry.report.report_model import FINDINGS, Report
from barnabas.telemetry.report.report_wording import duration, energy, moment, money, number, plural
from barnabas.telemetry.report.sampling import sentence


def headline(report: Report) -> str:
    """Return the extent of the report, in one line."""
    fleet = report.fleet
    return (
        f"{plural(fleet.gpus, 'GPU')} on {plural(fleet.hosts, 'host')}, "
        f"{moment(fleet.start_s)} to {moment(fleet.end_s)} UTC ({duration(fleet.seconds)})"
    )


def finding_rows(report: Report) -> list[tuple[str, int, int, str]]:
    """Return finding, GPUs, episodes and card time, the most severe first."""
    return [
        (label, gpus, episodes, duration(seconds))
        for finding, label in FINDINGS.items()
        if finding in report.finding_totals
        for gpus, episodes, seconds in (report.finding_totals[finding],)
    ]


def cost_line(report: Report) -> str | None:
    """Return the cost of idle cards, in one line."""
    if not report.waste["all"]:
        return None
    whole = report.waste["all"][0]
    cost = money(whole.energy_cost + whole.card_cost, report.wish.currency)
    text = f"Idle: {duration(3600 * whole.idle_hours)} of card time, {energy(whole.kwh)}, {cost}"
    if whole.parked_hours:
        held = f"{number(whole.parked_gib)} GiB on average"
        text += f"; memory parked for {duration(3600 * whole.parked_hours)} of it, {held}"
    return text


def sampling_lines(report: Report) -> list[str]:
    """Return the findings that could not be computed, a line for each."""
    return [sentence(each, report.fleet.gpus) for each in report.quality.not_looked_for]


def document(report: Report) -> dict[str, Any]:
    """Return the document for --json: the figures of the page, without its plots."""
    fleet = report.fleet
    return {
        "lake": report.folder,
        "missing_tables": report.missing_tables,
        "lost_tables": report.lost_tables,
        "from": _iso(fleet.start_s),
        "to": _iso(fleet.end_s),
        "fleet": {
            "gpus": fleet.gpus,
            "hosts": fleet.hosts,
            "models": dict(fleet.models),
            "gpu_hours": round(fleet.gpu_hours, 3),
            "energy_kwh": round(fleet.energy_kwh, 6),
            "util_mean_pct": None if fleet.util_mean is None else round(fleet.util_mean, 2),
        },
        "do_first": [{"severity": each.severity, "text": each.text} for each in report.advice],
        "findings": {
            finding: {"gpus": gpus, "episodes": episodes, "seconds": seconds}
            for finding, (gpus, episodes, seconds) in report.finding_totals.items()
        },
        "waste": {key: [each._asdict() for each in rows] for key, rows in report.waste.items()},
        "throttling": [each._asdict() for each in report.throttling],
        "instances": [each._asdict() for each in report.instances],
        "stragglers": [each._asdict() for each in report.stragglers],
        "bottlenecks": [each._asdict() for each in report.bottlenecks],
        "offenders": [each._asdict() for each in report.offenders],
        "xids": [_timed(each._asdict()) for each in report.xids],
        "ecc": [
            {name: value for name, value in each._asdict().items() if name != "corrected"}
            for each in report.ecc
        ],
        "missing": [_timed(each._asdict()) for each in report.absences],
        "alerts": {
            "counts": report.alert_counts,
            "latest": [_timed(each._asdict()) for each in report.alerts],
        },
        "quality": {
            "samples": report.quality.samples,
            "rows": report.quality.rows,
            "coverage_pct": report.quality.coverage_pct,
            "not_looked_for": [each._asdict() for each in report.quality.not_looked_for],
            "refused": report.quality.refused,
        },
    }


def _timed(values: dict[str, Any]) -> dict[str, Any]:
    """Write times as text: start_s becomes start, and so on."""
    words = {"start_s": "start", "end_s": "end", "first_s": "first", "last_s": "last"}
    return {
        words.get(name, name): _iso(value) if name in words else value
        for name, value in values.items()
    }


def _iso(seconds: float) -> str:
    return moment(seconds).replace(" ", "T") + "Z"
