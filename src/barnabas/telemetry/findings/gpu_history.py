"""The history of a GPU from window to window, and the findings that need it.

    step(memory, window, thresholds) -> memory', findings

A pure function: a gauge of XIDs becomes events (the code differs from the last one), counters
become trends, falls of utilisation become a pattern. There is one row for each GPU and window,
which takes 15 to 30 microseconds.
"""

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.telemetry.findings.finding import Finding, Window, us
from barnabas.telemetry.findings.severity import Severity
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.findings.xids import xid
from barnabas.telemetry.samples.catalogue import CATALOGUE, Name

DAY_US = us(86_400)
HOUR_US = us(3_600)
MARK_EVERY_US = us(300)
"""The step of the sliding hour of an ECC trend."""

XIDS_REMEMBERED = 100
"""More changes in a day give no new information."""


class Activity(NamedTuple):
    """The work of a job in a recent window."""

    window_start: int
    idle_share: float
    busy_share: float
    falls: int
    is_mixed: bool
    """Partly idle, with a job on the card that does not wait for a link."""


class Mark(NamedTuple):
    """The value of the counter of corrected errors at a time."""

    at: int
    errors: float


@dataclass(frozen=True, slots=True)
class Memory:
    """One GPU, as of its last window."""

    seen: int
    """The end of the last window with a sample."""
    hostname: str | None = None
    model: str | None = None
    namespace: str | None = None
    xid: int = 0
    xid_times: tuple[int, ...] = ()
    recent: tuple[Activity, ...] = ()
    marks: tuple[Mark, ...] = ()
    ecc_sbe: float | None = None
    ecc_sbe_grew: int = 0
    ecc_dbe: float | None = None
    remapped_rows: float | None = None
    sm_clock_top: float | None = None
    """The highest clock that was ever observed or reported."""
    interval_s: float | None = None
    """The distance of its samples; None if it is not known yet."""
    heard: int = 0
    """The end of the last window in which its clock was wrong; 0 while it is right."""


def step(
    memory: Memory | None, window: Window, thresholds: Thresholds
) -> tuple[Memory, list[Finding]]:
    """Apply the next window of a GPU; an older window changes nothing."""
    if memory is not None and window.window_end <= memory.seen:
        return memory, []
    codes = _xid_changes(memory, window)
    times = _xid_times(memory, window, len(codes))
    recent = _recent(memory, window, thresholds)
    sbe, grew, marks = _corrected(memory, window)
    after = Memory(
        seen=window.window_end if memory is None or window.is_sampled else memory.seen,
        hostname=window.hostname,
        model=window.model,
        namespace=window.namespace,
        xid=_held_xid(memory, window),
        xid_times=times,
        recent=recent,
        marks=marks,
        ecc_sbe=sbe,
        ecc_sbe_grew=grew,
        ecc_dbe=_latest(window.ecc_dbe_last, memory.ecc_dbe if memory else None),
        remapped_rows=_latest(window.remapped_rows_last, memory.remapped_rows if memory else None),
        sm_clock_top=_highest(window.sm_clock_top, memory.sm_clock_top if memory else None),
        interval_s=_latest(window.interval_s, memory.interval_s if memory else None),
    )
    found = [_xid_finding(window, code) for code in codes]
    if codes and len(times) >= thresholds.repeat_offender_xids:
        found.append(_repeat_offender(window, len(times)))
    found += _ecc(memory, after, window, thresholds)
    if _is_starved(recent, window, thresholds):
        found.append(_starved(window))
    return after, found


def report(window: Window, name: Name, value: float, detail: str, **details: object) -> Finding:
    """Return a finding about a window, with the catalogue's severity unless another is given."""
    entry = CATALOGUE[name]
    return Finding(
        window.window_start,
        window.window_end,
        window.gpu_id,
        window.hostname,
        window.model,
        window.namespace,
        name.value,
        str(details.get("severity", entry.severity.value)),
        value,
        str(details.get("unit", entry.unit)),
        window.seconds,
        None,
        detail,
    )


def _latest(sampled: float | None, known: float | None) -> float | None:
    return known if sampled is None else sampled


def _highest(sampled: float | None, known: float | None) -> float | None:
    return max((each for each in (sampled, known) if each is not None), default=None)


# XIDs


def _xid_changes(memory: Memory | None, window: Window) -> list[int]:
    """Return the new codes.

    A new card may have a code of last month: then only a code that asks for a drain is new.
    """
    codes = window.xids or []
    if memory is None:
        return [code for code in codes[:1] if xid(code).severity is Severity.CRITICAL] + codes[1:]
    return codes[1:] if codes and codes[0] == memory.xid else codes


def _held_xid(memory: Memory | None, window: Window) -> int:
    if window.xids is None:
        return memory.xid if memory else 0
    return window.xids[-1] if window.xids else 0


def _xid_times(memory: Memory | None, window: Window, changes: int) -> tuple[int, ...]:
    before = memory.xid_times if memory else ()
    if not before and not changes:
        return ()
    since = window.window_end - DAY_US
    kept = tuple(at for at in before if at > since)
    return (kept + (window.window_end,) * changes)[-XIDS_REMEMBERED:]


def _xid_finding(window: Window, code: int) -> Finding:
    known = xid(code)
    detail = f"XID {code}: {known.meaning}; {known.action}"
    return report(window, Name.XID, code, detail, severity=known.severity.value)


def _repeat_offender(window: Window, count: int) -> Finding:
    return report(window, Name.REPEAT_OFFENDER, count, f"{count} XIDs within a day")


# ECC errors and row remaps


def _corrected(memory: Memory | None, window: Window) -> tuple[float | None, int, tuple[Mark, ...]]:
    """Return the counter, when it last grew, and its marks of the last hour."""
    known = memory.ecc_sbe if memory else None
    grew = memory.ecc_sbe_grew if memory else 0
    marks = memory.marks if memory else ()
    errors = window.ecc_sbe_last
    if errors is None:
        return known, grew, marks
    if known is None or errors < known:
        return errors, 0, (Mark(window.window_end, errors),)
    if errors > known:
        grew = window.window_end
    if marks and window.window_end - marks[-1].at < MARK_EVERY_US:
        return errors, grew, marks
    since = window.window_end - HOUR_US
    return (
        errors,
        grew,
        (*(mark for mark in marks if mark.at > since), Mark(window.window_end, errors)),
    )


def _ecc(
    before: Memory | None, after: Memory, window: Window, thresholds: Thresholds
) -> list[Finding]:
    """Return at most one finding, the most severe."""
    if before is None:
        return []
    uncorrected = _growth(before.ecc_dbe, after.ecc_dbe)
    if uncorrected > 0:
        detail = f"{uncorrected:.0f} uncorrectable ECC errors"
        return [report(window, Name.ECC_TREND, uncorrected, detail, severity=Severity.CRITICAL)]
    remapped = _growth(before.remapped_rows, after.remapped_rows)
    if remapped > 0:
        detail = f"{remapped:.0f} more rows remapped"
        return [report(window, Name.ECC_TREND, remapped, detail, unit="rows")]
    if after.ecc_sbe is None or not after.marks:
        return []
    errors = after.ecc_sbe - after.marks[0].errors
    is_live = window.window_end - after.ecc_sbe_grew < us(thresholds.ecc_quiet_after_s)
    if not is_live or errors < thresholds.ecc_sbe_per_hour:
        return []
    return [report(window, Name.ECC_TREND, errors, f"{errors:.0f} corrected ECC errors in an hour")]


def _growth(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None else after - before


# Starved jobs


def _recent(memory: Memory | None, window: Window, thresholds: Thresholds) -> tuple[Activity, ...]:
    """Return the recent windows, including this one; work without stalls starts again.

    There are none if samples are too far apart to show stalls.
    """
    limit_s = thresholds.coarse_above_s(Name.STARVED)
    is_coarse = limit_s is not None and (window.interval_s or 0.0) > limit_s
    if window.util_idle_share is None or is_coarse:
        return ()
    now = _activity(window, window.util_idle_share, thresholds)
    if memory is None or now.idle_share < thresholds.starved_idle_share:
        return (now,)
    since = window.window_end - us(thresholds.starved_over_s)
    return (*(each for each in memory.recent if each.window_start >= since), now)


def _activity(window: Window, idle_share: float, thresholds: Thresholds) -> Activity:
    holds = (window.fb_used_p50 or 0.0) >= thresholds.held_memory_mib
    # A job that waits for a link also works and stalls in turns: then the link is the cause.
    can_starve = holds and (window.link_share or 0.0) < thresholds.link_bound_share
    is_mixed = can_starve and thresholds.starved_idle_share <= idle_share < 1
    falls = window.util_falls or 0 if can_starve else 0
    busy_share = window.util_busy_share or 0.0
    return Activity(window.window_start, idle_share, busy_share, falls, is_mixed)


def _is_starved(recent: tuple[Activity, ...], window: Window, thresholds: Thresholds) -> bool:
    """Whether work and stalls alternated more than once.

    Samples at 10 Hz show several falls in one window. At 1 Hz most are missed: then the pattern is
    that the card was idle for a large part of the recent windows, and either fell more than once or
    was neither idle nor busy for several windows in a row.
    """
    if not recent or not recent[-1].is_mixed or recent[-1].idle_share >= thresholds.idle_share:
        return False
    if recent[-1].falls >= thresholds.starved_falls:
        return True
    if sum(each.busy_share for each in recent) < thresholds.starved_busy_share * len(recent):
        return False
    idles = sum(each.idle_share for each in recent) >= thresholds.starved_idle_share * len(recent)
    falls = sum(each.falls for each in recent) >= thresholds.starved_falls
    return idles and (falls or _stays_mixed(recent, window, thresholds))


def _stays_mixed(recent: tuple[Activity, ...], window: Window, thresholds: Thresholds) -> bool:
    last = recent[-thresholds.starved_windows :]
    span_us = window.window_end - last[0].window_start
    in_a_row = span_us == (window.window_end - window.window_start) * thresholds.starved_windows
    return in_a_row and all(each.is_mixed for each in last)


def _starved(window: Window) -> Finding:
    idle_pct = 100 * (window.util_idle_share or 0.0)
    detail = f"work and stalls take turns, idle {idle_pct:.0f}% of the window with memory held"
    return report(window, Name.STARVED, idle_pct, detail)
