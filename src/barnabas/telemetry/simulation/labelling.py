"""Derives the labels of a plan: the true findings and states of each card over time."""

from collections.abc import Iterator
from typing import Any

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.simulation.fleet_plan import Affliction, Plan
from barnabas.telemetry.simulation.fleet_settings import JOB_FAULTS, Fault, FleetSettings
from barnabas.telemetry.simulation.signals import XIDS_TO_DRAIN, Signals
from barnabas.telemetry.simulation.truth import FINDING, NOTE, STATE, Truth

IMPLIED = {
    Fault.PARKED_MEMORY: (Fault.IDLE,),
    Fault.STARVED: (Fault.IDLE, Fault.PARKED_MEMORY),
    Fault.THERMAL_THROTTLED: (Fault.STRAGGLER,),
}
"""Additional findings of a fault: hot cards fall behind, starved ones are idle at times."""
LATE_HOST = "late_host"
AFTER_MS = 3_600_000


class Labels:
    """Computes the labels of a fleet."""

    def __init__(self, plan: Plan, settings: FleetSettings, signals: Signals) -> None:
        self._plan = plan
        self._settings = settings
        self._signals = signals

    def truths(self) -> Iterator[Truth]:
        """Return all labels, findings first."""
        for affliction in self._plan.afflictions:
            yield from self._finding(affliction)
        yield from self._xids()
        for card in range(len(self._plan.cards)):
            yield from self._states(card)
        yield from self._late()
        yield from self._after()

    def _finding(self, affliction: Affliction) -> Iterator[Truth]:
        if affliction.fault in {Fault.XID, Fault.REPEAT_OFFENDER}:
            return
        span = (affliction.begin, affliction.end)
        yield self._truth(affliction.card, FINDING, affliction.fault, span, affliction.detail)
        implied_too = IMPLIED.get(affliction.fault, ())
        if affliction.detail.get("phase") == "oscillating":  # it stops and goes
            implied_too = (*implied_too, Fault.STARVED)
        for implied in implied_too:
            detail: dict[str, Any] = {"follows_from": affliction.fault.value}
            yield self._truth(affliction.card, FINDING, implied, span, detail, optional=True)

    def _xids(self) -> Iterator[Truth]:
        seen: dict[int, int] = {}
        for tick, card, code in self._signals.xids:
            detail: dict[str, Any] = {"xid": code, "drain": code in XIDS_TO_DRAIN}
            yield self._truth(card, FINDING, Fault.XID, (tick, tick + 1), detail)
            seen[card] = seen.get(card, 0) + 1
            if seen[card] == Thresholds().repeat_offender_xids:
                span = (tick, self._settings.ticks)
                yield self._truth(card, FINDING, Fault.REPEAT_OFFENDER, span, {})

    def _states(self, card: int) -> Iterator[Truth]:
        at, usual = 0, self._signals.phase_of(card, None)
        spans = [a for a in self._plan.afflictions if a.card == card and a.fault in JOB_FAULTS]
        for affliction in spans:
            if affliction.begin > at:
                yield self._truth(card, STATE, usual, (at, affliction.begin), {})
            phase = self._signals.phase_of(card, affliction)
            yield self._truth(card, STATE, phase, (affliction.begin, affliction.end), {})
            at = affliction.end
        if at < self._settings.ticks:
            yield self._truth(card, STATE, usual, (at, self._settings.ticks), {})

    def _late(self) -> Iterator[Truth]:
        for card, each in enumerate(self._plan.cards):
            if each.host == self._plan.late_host:
                yield self._truth(card, NOTE, LATE_HOST, (0, self._settings.ticks), {})

    def _after(self) -> Iterator[Truth]:
        """Yield the labels of a tick after the end, when no card reports."""
        span = (self._settings.ticks, self._settings.ticks + AFTER_MS // self._settings.interval_ms)
        detail = {"follows_from": "the end of the run"}
        for card in range(len(self._plan.cards)):
            yield self._truth(card, FINDING, Fault.MISSING, span, detail, optional=True)

    def _truth(
        self,
        card: int,
        kind: str,
        name: str,
        span: tuple[int, int],
        detail: dict[str, Any],
        *,
        optional: bool = False,
    ) -> Truth:
        each = self._plan.cards[card]
        origin_ms = self._settings.start_ms + self._plan.host_offsets_ms[each.host]
        begin, end = (origin_ms + tick * self._settings.interval_ms for tick in span)
        return Truth(
            gpu_id=each.gpu_id,
            kind=kind,
            name=str(name),
            start_ms=begin,
            end_ms=end,
            optional=optional,
            detail=detail,
        )
