"""Computes the cost of throttling: the clock speed that a card lost to it.

A card that is throttled for a whole window does not show its full speed in it. So its clock is
compared with the highest clock that the exporter reports or that was ever observed.
"""

from collections.abc import Iterable, Mapping

from barnabas.telemetry.findings.finding import Finding, Window
from barnabas.telemetry.findings.gpu_history import Memory
from barnabas.telemetry.samples.catalogue import Name

THROTTLED = frozenset({Name.POWER_CAPPED, Name.THERMAL_THROTTLED})


def with_lost_clock(
    found: Iterable[Finding], windows: Iterable[Window], gpus: Mapping[str, Memory]
) -> list[Finding]:
    """Add the lost clock speed to each finding of throttling, if it is known."""
    means = {window.gpu_id: window.sm_clock_mean for window in windows}
    return [
        _with_lost_clock(each, means.get(each.gpu_id), gpus.get(each.gpu_id))
        if each.finding in THROTTLED
        else each
        for each in found
    ]


def _with_lost_clock(finding: Finding, mean: float | None, memory: Memory | None) -> Finding:
    top = None if memory is None else memory.sm_clock_top
    if mean is None or not top:
        return finding
    lost_pct = max(0.0, 1 - mean / top) * 100
    detail = f"{finding.detail}, {lost_pct:.0f}% of the clock lost"
    return finding._replace(value=lost_pct, detail=detail)
