"""A batch of closed windows, assessed: findings, alerts, and what to remember for the next batch.

A pure function of the state after the batch before and the rows of this one, in the order of
event time. A batch may hold one window (live) or an hour of them (catching up); how the stream was
cut into batches does not show in what comes out.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.telemetry import alerts, fleet
from barnabas.telemetry.alerts import Alert, Key, Standing
from barnabas.telemetry.finding import Finding, Window
from barnabas.telemetry.fleet import Fleet
from barnabas.telemetry.thresholds import Thresholds
from barnabas.telemetry.throttling import with_lost_clock

Row = TypeVar("Row", Window, Finding)


@dataclass(frozen=True)
class FleetState:
    """All that is carried from batch to batch."""

    fleet: Fleet = field(default_factory=lambda: Fleet({}))
    standing: Mapping[Key, Standing] = field(default_factory=dict)


@dataclass(frozen=True)
class Assessment:
    """What a batch comes to."""

    state: FleetState
    findings: list[Finding]
    alerts: list[Alert]


def assess(
    state: FleetState,
    windows: Iterable[Window],
    found: Iterable[Finding],
    thresholds: Thresholds,
) -> Assessment:
    """Assess windows and what the rules `found` in them."""
    findings: list[Finding] = []
    told: list[Alert] = []
    found_by_end = _by_end(found)
    for end, rows in sorted(_by_end(windows).items()):
        inventory, remembered = fleet.advance(state.fleet, rows, thresholds)
        ruled = with_lost_clock(found_by_end.get(end, []), rows, inventory.gpus)
        now = ruled + remembered
        subjects = fleet.alerted(inventory, now)
        standing, news = alerts.step(state.standing, subjects, inventory.seen, thresholds)
        state = FleetState(inventory, standing)
        findings += now
        told += news
    return Assessment(state, findings, told)


def _by_end(rows: Iterable[Row]) -> dict[int, list[Row]]:
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.window_end].append(row)
    return grouped
