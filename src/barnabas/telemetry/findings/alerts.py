"""Derives alerts from findings, with a state machine for each GPU and finding.

    step(standing, findings, seen, thresholds) -> standing', alerts

    (nothing) --finding--> pending --lasts long enough--> raised --gone long enough--> cleared
                              |                           |    |
                              +--gone--> (nothing)        +still+  every still_every_s

An alert that would be raised for the `flap_raises`-th time within `flap_within_s` is announced as
flapping instead. A flapping alert stays active until its finding was gone for `flap_calm_s`: a load
that starts and stops all day is one alert, not hundreds.

Critical findings and important events are raised with their first window. A finding that grows more
severe, or an event with another code, is announced at once. Findings of level info about events (an
XID that is the job's own fault) never alert.

Time is the event time of the card: the alerts of a card that stops reporting are neither cleared
nor repeated; a separate alert says that it is missing. Nothing here depends on the clock of a
machine, so that a repeated batch returns the same alerts with the same ids.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from barnabas.telemetry.findings.finding import Finding, us
from barnabas.telemetry.findings.severity import Severity
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.findings.xids import xid
from barnabas.telemetry.samples.catalogue import CATALOGUE, Name

Key = tuple[str, str]
"""A GPU and the name of a finding."""


class State(StrEnum):
    """The states of an announced alert."""

    RAISED = "raised"
    STILL = "still"
    CLEARED = "cleared"
    FLAPPING = "flapping"
    """Raised and cleared repeatedly: one alert replaces all of them."""


class Phase(StrEnum):
    """The phases of a finding of a GPU."""

    PENDING = "pending"
    """Found, but not yet for long enough."""
    RAISED = "raised"
    FLAPPING = "flapping"
    RESTING = "resting"
    """Cleared; kept for as long as its raises count towards flapping."""


OPEN = (Phase.RAISED, Phase.FLAPPING)


class Alert(NamedTuple):
    """A row of the table `alerts`, in the order of its columns."""

    alert_id: str
    state: str
    finding: str
    severity: str
    gpu_id: str
    hostname: str | None
    model: str | None
    namespace: str | None
    first_seen: int
    last_seen: int
    value: float | None
    unit: str
    message: str
    action: str
    gpus: tuple[str, ...] = ()
    """All cards of the alert; `gpu_id` is the one that was raised first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a finding of a GPU."""

    latest: Finding
    first_seen: int
    severity: str
    """The highest severity so far."""
    announced_at: int | None = None
    """When it was last announced; None while it is pending or resting."""
    phase: Phase = Phase.PENDING
    raises: tuple[int, ...] = ()
    """The times of recent raises, oldest first, including the present one."""


def step(
    standing: Mapping[Key, Standing],
    findings: Iterable[Finding],
    seen: Callable[[str], int | None],
    thresholds: Thresholds,
    interval_s: Callable[[str], float] = lambda _: 0.0,
) -> tuple[dict[Key, Standing], list[Alert]]:
    """Apply the findings of one window.

    `seen` has the time of a GPU's last report, `interval_s` the distance of its samples: a state
    must last longer than one sample is valid.
    """
    after = dict(standing)
    alerts: list[Alert] = []
    for finding in _most_severe(findings):
        key = (finding.gpu_id, finding.finding)
        after[key], alert = _found(standing.get(key), finding, interval_s, thresholds)
        alerts += [alert] if alert else []
    for key, before in standing.items():
        if after[key] is before:
            remaining, alert = _not_found(before, seen(key[0]), thresholds)
            alerts += [alert] if alert else []
            if remaining is None:
                del after[key]
            else:
                after[key] = remaining
    return after, alerts


def key_of(alert: Alert) -> str:
    """Return the key of an alert's record."""
    return f"{alert.gpu_id}/{alert.finding}"


def _most_severe(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Return one finding for each GPU and name: of several XIDs in a window, the most severe."""
    chosen: dict[Key, Finding] = {}
    for finding in findings:
        key = (finding.gpu_id, finding.finding)
        other = chosen.get(key)
        if other is None or _rank(finding.severity) >= _rank(other.severity):
            chosen[key] = finding
    return chosen.values()


def _found(
    before: Standing | None,
    finding: Finding,
    interval_s: Callable[[str], float],
    thresholds: Thresholds,
) -> tuple[Standing, Alert | None]:
    if before is None or before.phase is Phase.RESTING:
        raises = before.raises if before else ()
        now = Standing(finding, finding.window_start, finding.severity, raises=raises)
    elif is_event(finding.finding) and _rank(finding.severity) < _rank(before.severity):
        return before, None
    else:
        most_severe = max(before.severity, finding.severity, key=_rank)
        now = replace(before, latest=finding, severity=most_severe)
    state = _news(before, now, interval_s, thresholds)
    if state is None:
        return now, None
    if now.phase is Phase.PENDING:
        now, state = _raised(now, thresholds)
    now = replace(now, announced_at=finding.window_end)
    return now, _tell(now, state)


def _raised(pending: Standing, thresholds: Thresholds) -> tuple[Standing, State]:
    """Return the state of a finding that lasted, and the state to announce."""
    at = pending.latest.window_end
    raises = (*_recent(pending.raises, at, thresholds), at)
    if len(raises) >= thresholds.flap_raises > 1:
        return replace(pending, phase=Phase.FLAPPING, raises=raises), State.FLAPPING
    return replace(pending, phase=Phase.RAISED, raises=raises), State.RAISED


def _recent(raises: tuple[int, ...], at: int, thresholds: Thresholds) -> tuple[int, ...]:
    """Return the raises that count towards flapping."""
    since = at - us(thresholds.flap_within_s)
    return tuple(each for each in raises if each > since)[-thresholds.flap_raises :]


def _news(
    before: Standing | None,
    now: Standing,
    interval_s: Callable[[str], float],
    thresholds: Thresholds,
) -> State | None:
    """Return the alert to announce about a finding, None if there is nothing to announce."""
    finding = now.latest
    if before is None or before.announced_at is None:
        return State.RAISED if _lasted(now, interval_s(finding.gpu_id), thresholds) else None
    if now.severity != before.severity:
        return State.RAISED
    is_other_event = is_event(finding.finding) and finding.value != before.latest.value
    is_due = finding.window_end - before.announced_at >= _repeat_us(now, thresholds)
    return State.STILL if is_other_event or is_due else None


def _repeat_us(standing: Standing, thresholds: Thresholds) -> int:
    is_flapping = standing.phase is Phase.FLAPPING
    return us(thresholds.flap_still_every_s if is_flapping else thresholds.still_every_s)


def _lasted(standing: Standing, interval_s: float, thresholds: Thresholds) -> bool:
    finding = standing.latest
    if is_event(finding.finding):
        return standing.severity != Severity.INFO
    lasted = finding.window_end - standing.first_seen
    if finding.finding == Name.MISSING:
        # The cards of a host become silent within one window of each other: wait for all of them.
        return lasted >= us(thresholds.raise_warning_after_s)
    after_s = {
        Severity.CRITICAL: 0.0,
        Severity.WARNING: thresholds.raise_warning_after_s,
        Severity.INFO: thresholds.raise_info_after_s,
    }
    needed_s = after_s[Severity(standing.severity)]
    return lasted >= us(needed_s) and (needed_s == 0 or lasted > us(interval_s))


def _not_found(
    before: Standing, seen: int | None, thresholds: Thresholds
) -> tuple[Standing | None, Alert | None]:
    """Return the state of an alert after a window without its finding."""
    if before.phase is Phase.RESTING:
        keep = seen is not None and _recent(before.raises, seen, thresholds)
        return (before if keep else None), None
    if seen is None or seen - before.latest.window_end >= _clear_us(before, thresholds):
        cleared = None if before.announced_at is None else _tell(before, State.CLEARED)
        return _gone(before, seen), cleared
    if before.announced_at is None or seen - before.announced_at < _repeat_us(before, thresholds):
        return before, None
    now = replace(before, announced_at=seen)
    return now, _tell(now, State.STILL)


def _gone(before: Standing, seen: int | None) -> Standing | None:
    """Return the state of a finding that ended; a flapping one no longer flaps."""
    if seen is None or not before.raises or before.phase is Phase.FLAPPING:
        return None
    return replace(before, phase=Phase.RESTING, announced_at=None)


def _clear_us(standing: Standing, thresholds: Thresholds) -> int:
    if standing.phase is Phase.FLAPPING:
        return us(thresholds.flap_calm_s)
    happens = is_event(standing.latest.finding)
    return us(thresholds.event_clear_after_s if happens else thresholds.clear_after_s)


def _rank(severity: str) -> int:
    return Severity(severity).rank


def is_event(name: str) -> bool:
    """Return whether a finding is an event, which has no observable end."""
    return CATALOGUE[Name(name)].is_event


def _tell(standing: Standing, state: State) -> Alert:
    finding = standing.latest
    where = f" on {finding.hostname}" if finding.hostname else ""
    often = f"flapping: raised {len(standing.raises)} times; " * (standing.phase is Phase.FLAPPING)
    return Alert(
        _alert_id(finding, standing.first_seen),
        state.value,
        finding.finding,
        standing.severity,
        finding.gpu_id,
        finding.hostname,
        finding.model,
        finding.namespace,
        standing.first_seen,
        finding.window_end,
        finding.value,
        finding.unit,
        f"{finding.gpu_id}{where}: {often}{finding.detail}",
        _action(finding),
        (finding.gpu_id,),
    )


def _alert_id(finding: Finding, first_seen: int) -> str:
    text = f"{finding.gpu_id}/{finding.finding}/{first_seen}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _action(finding: Finding) -> str:
    if finding.finding == Name.XID and finding.value is not None:
        return xid(int(finding.value)).action
    return CATALOGUE[Name(finding.finding)].action
