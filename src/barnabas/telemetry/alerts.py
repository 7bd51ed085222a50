"""From findings to alerts: a state machine for each GPU and finding.

    step(standing, findings, seen, thresholds) -> standing', alerts

    (nothing) --finding--> pending --lasts long enough--> raised --gone long enough--> cleared
                              |                           |    |
                              +--gone--> (nothing)        +still+  every still_every_s

Critical findings and events of weight are raised with their first window. A finding that grows
graver, or an event with another code, is told at once. Findings of level info about events (an XID
that is the job's own fault) never alert.

Time is the subject's own: a card that stops reporting neither clears nor repeats what it said
before; that it is missing is an alert of its own. Nothing here depends on the clock of a machine,
so that a batch that runs again tells the same alerts with the same ids.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from barnabas.telemetry.catalogue import CATALOGUE, Name
from barnabas.telemetry.finding import Finding, us
from barnabas.telemetry.severity import Severity
from barnabas.telemetry.thresholds import Thresholds
from barnabas.telemetry.xids import xid

Key = tuple[str, str]
"""A GPU and the name of a finding."""


class State(StrEnum):
    """What an alert says."""

    RAISED = "raised"
    STILL = "still"
    CLEARED = "cleared"


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


@dataclass(frozen=True, slots=True)
class Standing:
    """A finding that lasts: pending until it is raised."""

    latest: Finding
    first_seen: int
    severity: str
    """The gravest so far."""
    told_at: int | None = None
    """When it was last told; None while it is pending."""


def step(
    standing: Mapping[Key, Standing],
    findings: Iterable[Finding],
    seen: Callable[[str], int | None],
    thresholds: Thresholds,
) -> tuple[dict[Key, Standing], list[Alert]]:
    """Take in the findings of one window; `seen` says when a GPU last reported."""
    after = dict(standing)
    alerts: list[Alert] = []
    for finding in _gravest(findings):
        key = (finding.gpu_id, finding.finding)
        after[key], alert = _found(standing.get(key), finding, thresholds)
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


def _gravest(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Return one finding for each GPU and name: of several XIDs in a window, the gravest."""
    chosen: dict[Key, Finding] = {}
    for finding in findings:
        key = (finding.gpu_id, finding.finding)
        other = chosen.get(key)
        if other is None or _rank(finding.severity) >= _rank(other.severity):
            chosen[key] = finding
    return chosen.values()


def _found(
    before: Standing | None, finding: Finding, thresholds: Thresholds
) -> tuple[Standing, Alert | None]:
    if before is None:
        now = Standing(finding, finding.window_start, finding.severity)
    elif _is_event(finding) and _rank(finding.severity) < _rank(before.severity):
        return before, None
    else:
        gravest = max(before.severity, finding.severity, key=_rank)
        now = replace(before, latest=finding, severity=gravest)
    state = _news(before, now, thresholds)
    if state is None:
        return now, None
    now = replace(now, told_at=finding.window_end)
    return now, _tell(now, state)


def _news(before: Standing | None, now: Standing, thresholds: Thresholds) -> State | None:
    """Return what is to be told about a finding that was seen, if anything."""
    finding = now.latest
    if before is None or before.told_at is None:
        return State.RAISED if _lasted(now, thresholds) else None
    if now.severity != before.severity:
        return State.RAISED
    is_other_event = _is_event(finding) and finding.value != before.latest.value
    is_due = finding.window_end - before.told_at >= us(thresholds.still_every_s)
    return State.STILL if is_other_event or is_due else None


def _lasted(standing: Standing, thresholds: Thresholds) -> bool:
    finding = standing.latest
    if _is_event(finding):
        return standing.severity != Severity.INFO
    lasted = finding.window_end - standing.first_seen
    if finding.finding == Name.MISSING:
        # The cards of a host fall silent within a window of each other: wait for all of them.
        return lasted >= us(thresholds.raise_warning_after_s)
    after_s = {
        Severity.CRITICAL: 0.0,
        Severity.WARNING: thresholds.raise_warning_after_s,
        Severity.INFO: thresholds.raise_info_after_s,
    }
    return lasted >= us(after_s[Severity(standing.severity)])


def _not_found(
    before: Standing, seen: int | None, thresholds: Thresholds
) -> tuple[Standing | None, Alert | None]:
    """Return what is left of an alert in a window without its finding."""
    last_seen = before.latest.window_end
    is_event = _is_event(before.latest)
    after_s = thresholds.event_clear_after_s if is_event else thresholds.clear_after_s
    if seen is None or seen - last_seen >= us(after_s):
        return None, None if before.told_at is None else _tell(before, State.CLEARED)
    if before.told_at is None or seen - before.told_at < us(thresholds.still_every_s):
        return before, None
    now = replace(before, told_at=seen)
    return now, _tell(now, State.STILL)


def _rank(severity: str) -> int:
    return Severity(severity).rank


def _is_event(finding: Finding) -> bool:
    return CATALOGUE[Name(finding.finding)].is_event


def _tell(standing: Standing, state: State) -> Alert:
    finding = standing.latest
    where = f" on {finding.hostname}" if finding.hostname else ""
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
        f"{finding.gpu_id}{where}: {finding.detail}",
        _action(finding),
    )


def _alert_id(finding: Finding, first_seen: int) -> str:
    text = f"{finding.gpu_id}/{finding.finding}/{first_seen}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _action(finding: Finding) -> str:
    if finding.finding == Name.XID and finding.value is not None:
        return xid(int(finding.value)).action
    return CATALOGUE[Name(finding.finding)].action
