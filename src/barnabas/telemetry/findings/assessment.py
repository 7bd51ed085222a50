"""Assesses a batch of closed windows: findings, alerts, and the state for the next batch.

A pure function of the state after the previous batch and the rows of this one, in the order of
event time. A batch may have one window (live) or an hour of them (catching up); the result does not
depend on how the stream was divided into batches.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.telemetry.findings import alert_groups, alerts, fleet
from barnabas.telemetry.findings.alert_groups import Groups
from barnabas.telemetry.findings.alerts import Alert, Key, Standing
from barnabas.telemetry.findings.finding import Finding, Window
from barnabas.telemetry.findings.fleet import Fleet
from barnabas.telemetry.findings.skew import Skew
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.findings.throttling import with_lost_clock

Row = TypeVar("Row", Window, Finding, Skew)


@dataclass(frozen=True)
class FleetState:
    """The state from batch to batch."""

    fleet: Fleet = field(default_factory=lambda: Fleet({}))
    standing: Mapping[Key, Standing] = field(default_factory=dict)
    groups: Groups = field(default_factory=dict)


@dataclass(frozen=True)
class Assessment:
    """The result of a batch."""

    state: FleetState
    findings: list[Finding]
    alerts: list[Alert]


def assess(
    state: FleetState,
    windows: Iterable[Window],
    found: Iterable[Finding],
    thresholds: Thresholds,
    skews: Iterable[Skew] = (),
) -> Assessment:
    """Assess windows, the findings of rules in them (`found`), and wrong clocks."""
    findings: list[Finding] = []
    announced: list[Alert] = []
    found_by_end, skews_by_end = _by_end(found), _by_end(skews)
    for end, rows in sorted(_by_end(windows).items()):
        inventory, remembered = fleet.advance(
            state.fleet, rows, thresholds, skews_by_end.get(end, [])
        )
        ruled = with_lost_clock(found_by_end.get(end, []), rows, inventory.gpus)
        now = ruled + remembered
        subjects = fleet.alerted(inventory, now)
        standing, news = alerts.step(
            state.standing, subjects, inventory.seen, thresholds, inventory.interval_s
        )
        groups, messages = alert_groups.step(state.groups, news, end, thresholds)
        state = FleetState(inventory, standing, groups)
        findings += now
        announced += messages
    return Assessment(state, findings, announced)


def _by_end(rows: Iterable[Row]) -> dict[int, list[Row]]:
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.window_end].append(row)
    return grouped
