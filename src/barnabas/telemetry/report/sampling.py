"""Queries about sampling intervals, and the findings that long intervals exclude."""

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.report.questions import Questions
from barnabas.telemetry.report.report_model import FINDINGS, NotLookedFor
from barnabas.telemetry.report.report_wording import number, plural
from barnabas.telemetry.samples.catalogue import NEED_FINE_SAMPLES


def not_looked_for(questions: Questions, thresholds: Thresholds) -> list[NotLookedFor]:
    """Return the findings that need finer samples than some cards have, and those cards."""
    found = []
    for finding in sorted(NEED_FINE_SAMPLES):
        limit_s = thresholds.coarse_above_s(finding)
        gpus, interval_s = questions.row(
            "SELECT count(*), median(interval_s) FROM (SELECT median(interval_s) AS interval_s "
            f"FROM gold GROUP BY gpu_id) WHERE interval_s > {limit_s}"
        )
        if gpus:
            found.append(NotLookedFor(finding, thresholds.fine_interval_s, gpus, float(interval_s)))
    return found


def sentence(each: NotLookedFor, gpus: int) -> str:
    """Return the findings that were not computed, with the reason; `gpus` is their number."""
    verb = "was" if each.gpus == 1 else "were"
    whose = "this card was" if gpus == 1 else f"{plural(each.gpus, 'card')} {verb}"
    where = "" if each.gpus == gpus else " on every card"
    interval_s = float(f"{each.interval_s:.2g}")  # intervals of collectors are not exact
    return (
        f"{FINDINGS[each.finding]} was not looked for{where}: it needs samples every "
        f"{number(each.needs_s)} s; {whose} sampled every {number(interval_s)} s."
    )
