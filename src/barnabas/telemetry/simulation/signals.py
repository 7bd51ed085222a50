"""Computes the metric values of every card at every tick, as arrays.

The values of a card are a row of the traces: the phase selects the rows, the offset of the job the
present one, so that the cards of a job are in lockstep. Noise and properties of the card (a little
hotter, a little more efficient) make peers differ like real ones. Then faults change the arrays.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from barnabas.telemetry.samples.metrics import METRICS
from barnabas.telemetry.simulation import traces as at
from barnabas.telemetry.simulation.counters import Counters
from barnabas.telemetry.simulation.fleet_plan import Affliction, Plan
from barnabas.telemetry.simulation.fleet_settings import Fault, FleetSettings
from barnabas.telemetry.simulation.traces import STEP_MS, Traces

Array = Any
PHASE_BY_FAULT = {
    Fault.IDLE: "idle",
    Fault.PARKED_MEMORY: "memory_held_idle",
    Fault.POWER_CAPPED: "matmul_bf16",
    Fault.STARVED: "train_starved",
    Fault.LAUNCH_BOUND: "launch_bound",
    Fault.MEMORY_BOUND: "memory_copy",
    Fault.PCIE_BOUND: "pcie_bound",
    Fault.NVLINK_BOUND: "nvlink_bound",
}
SOFTWARE_THERMAL = 0x20
HARDWARE_THERMAL = 0x40
IDLE_PHASES = {"idle", "idle_end"}
XIDS_TO_NOTE = (13, 31, 43, 45, 63, 68, 92, 109)
XIDS_TO_DRAIN = (46, 48, 64, 74, 94, 95, 119)
REPEATS = 4
STATIC_POWER = 0.11
"""The share of the power limit that an idle card draws: slower work does not reduce it."""
NOT_SIMULATED = {"gr_engine_active", "sm_occupancy", "pcie_link_gen", "pcie_link_width"}
"""Columns that simulated cards do not report, since no finding needs them."""
SIMULATED = tuple(each for each in METRICS if each.column not in NOT_SIMULATED)
CHANNEL = {each.column: index for index, each in enumerate(SIMULATED)}


class Signals:
    """Computes the values, tick by tick."""

    def __init__(self, plan: Plan, settings: FleetSettings, traces: Traces) -> None:
        """Create one array for each quantity, with one element for each card."""
        self._plan = plan
        self._settings = settings
        self._traces = traces
        self._rng = np.random.default_rng([settings.seed, 2])
        self._count = len(plan.cards)
        self._counters = Counters(plan, settings)
        self._draw_characters()
        self._set_phases()
        self.xids = xid_events(plan, settings)
        """(tick, card, code) of each XID, in order."""

    def phase_of(self, card: int, affliction: Affliction | None) -> str:
        """Return the phase of a card, healthy or under a fault."""
        if affliction is None:
            return self._plan.jobs[self._plan.cards[card].job].phase
        named = affliction.detail.get("phase")
        return str(named) if named else PHASE_BY_FAULT[affliction.fault]

    def ticks(self) -> Iterator[tuple[Array, Array]]:
        """Return for each tick the values (card by column) and the reporting cards."""
        changes = self._changes()
        events = {tick: [e for e in self.xids if e[0] == tick] for tick, _, _ in self.xids}
        for tick in range(self._settings.ticks):
            for affliction, begins in changes.get(tick, ()):
                self._change(affliction, begins=begins)
            for _, card, code in events.get(tick, ()):
                self._xid[card] = code
            yield self._values(tick), self._reports

    def _draw_characters(self) -> None:
        rng, cards, count = self._rng, self._plan.cards, self._count
        jobs = [self._plan.jobs[card.job] for card in cards]
        self._offset = np.array([job.trace_offset for job in jobs])
        self._job_memory = np.array([job.memory_share for job in jobs])
        self._limit_w = np.array([card.model.power_limit_w for card in cards])
        self._memory_mib = np.array([card.model.memory_mib for card in cards])
        self._max_clock = np.array([card.model.max_sm_clock_mhz for card in cards])
        self._mem_clock = np.array([card.model.mem_clock_mhz for card in cards])
        self._warmth = rng.normal(0, 1.5, count)
        self._thirst = rng.normal(1, 0.01, count)
        self._energy_mj = np.floor(rng.uniform(1e12, 1e14, count))
        self._sbe = rng.integers(0, 3, count).astype(float)
        self._replays = rng.integers(0, 5, count).astype(float)
        self._dbe, self._remapped, self._xid = (np.zeros(count) for _ in range(3))
        self._sbe_per_tick, self._sbe_grown = np.zeros(count), np.zeros(count)
        self._speed, self._clock_factor = np.ones(count), np.ones(count)
        self._heat, self._reasons = np.zeros(count), np.zeros(count)
        self._reports = np.ones(count, dtype=bool)

    def _set_phases(self) -> None:
        count = self._count
        self._start, self._length = (np.zeros(count, dtype=np.int64) for _ in range(2))
        self._sm, self._tensor, self._dram, self._gain = (np.ones(count) for _ in range(4))
        self._pcie_tx, self._pcie_rx, self._nvlink = (np.zeros(count) for _ in range(3))
        self._held = np.zeros(count)
        for card in range(count):
            self._enter(card, self.phase_of(card, None))

    def _enter(self, card: int, phase: str, gain: float = 1.0) -> None:
        traces = self._traces
        self._start[card], self._length[card] = traces.start[phase], traces.length[phase]
        job = self._plan.cards[card].job
        activity = self._counters.activity(phase, job)
        self._sm[card], self._tensor[card] = activity.sm, activity.tensor
        self._dram[card] = activity.dram
        traffic = self._counters.traffic(phase, job)
        self._pcie_tx[card], self._pcie_rx[card] = traffic.pcie_tx, traffic.pcie_rx
        self._nvlink[card] = traffic.nvlink
        self._gain[card] = gain
        self._held[card] = 0.0 if phase in IDLE_PHASES else self._job_memory[card]

    def _changes(self) -> dict[int, list[tuple[Affliction, bool]]]:
        found: dict[int, list[tuple[Affliction, bool]]] = {}
        for affliction in self._plan.afflictions:
            found.setdefault(affliction.begin, []).append((affliction, True))
            found.setdefault(affliction.end, []).append((affliction, False))
        return found

    def _change(self, affliction: Affliction, *, begins: bool) -> None:
        card, detail = affliction.card, affliction.detail
        match affliction.fault:
            case Fault.THERMAL_THROTTLED:
                flag = HARDWARE_THERMAL if detail["hardware"] else SOFTWARE_THERMAL
                self._clock_factor[card] = detail["clock_factor"] if begins else 1.0
                self._heat[card], self._reasons[card] = (34.0, flag) if begins else (0.0, 0.0)
            case Fault.STRAGGLER:
                self._speed[card] = detail["factor"] if begins else 1.0
            case Fault.MISSING:
                self._reports[card] = not begins
            case Fault.ECC_TREND:
                self._change_errors(affliction, begins=begins)
            case Fault.XID | Fault.REPEAT_OFFENDER:
                pass
            case _:
                gain = detail.get("util_gain", 1.0) if begins else 1.0
                phase = self.phase_of(card, affliction if begins else None)
                self._enter(card, phase, gain)

    def _change_errors(self, affliction: Affliction, *, begins: bool) -> None:
        card, detail = affliction.card, affliction.detail
        per_tick = detail["per_hour"] * self._settings.interval_ms / 3_600_000
        self._sbe_per_tick[card] = per_tick if begins else 0.0
        if begins and detail["double_bit"]:
            self._dbe[card] += 1
            self._remapped[card] += 1

    def _values(self, tick: int) -> Array:
        step = tick * self._settings.interval_ms // STEP_MS
        base = self._traces.rows[self._start + (self._offset + step) % self._length]
        noise = self._rng.standard_normal((4, self._count))
        values = np.zeros((self._count, len(SIMULATED)))
        busy = base[:, at.UTIL] > 2
        util = base[:, at.UTIL] * self._gain * self._speed + busy * noise[0] * 0.7
        util = np.clip(util, 0, 100)
        slowed = np.where(busy, self._speed * self._clock_factor, 1)
        working = np.maximum(base[:, at.POWER] - STATIC_POWER, 0) * slowed
        share = np.minimum(base[:, at.POWER], STATIC_POWER) + working
        watts = share * self._limit_w * self._thirst * (1 + 0.01 * noise[1])
        self._set_work(values, base, util, noise)
        self._set_links(values, noise)
        self._set_body(values, base, watts, noise)
        self._set_counters(values, watts)
        return values

    def _set_work(self, values: Array, base: Array, util: Array, noise: Array) -> None:
        _put(values, "gpu_util", np.rint(util))
        _put(values, "mem_copy_util", np.rint(base[:, at.MEMORY_UTIL] * self._speed))
        used = np.where(self._held > 0, self._held, base[:, at.MEMORY]) * self._memory_mib
        used = np.rint(used)
        _put(values, "fb_used", used)
        _put(values, "fb_free", self._memory_mib - used)
        _put(values, "fb_total", self._memory_mib)
        wobble = np.clip(1 + 0.01 * noise[2], 0.9, 1.02)
        _put(values, "sm_active", np.clip(util / 100 * self._sm * wobble, 0, 1))
        _put(values, "tensor_active", np.clip(util / 100 * self._tensor * wobble, 0, 1))
        _put(values, "dram_active", base[:, at.MEMORY_UTIL] / 100 * self._dram * self._speed)
        _put(values, "nvlink_bandwidth", np.rint(util * 1_000 * self._tensor))

    def _set_links(self, values: Array, noise: Array) -> None:
        """Set the traffic, which varies, and is lower for a card that works slowly."""
        pace = self._speed * np.clip(1 + 0.03 * noise[2], 0.8, 1.02)
        pcie = self._counters.pcie_capacity * pace
        nvlink = np.rint(self._counters.nvlink_capacity * pace * self._nvlink)
        _put(values, "pcie_tx", np.rint(pcie * self._pcie_tx))
        _put(values, "pcie_rx", np.rint(pcie * self._pcie_rx))
        _put(values, "nvlink_tx", nvlink)
        _put(values, "nvlink_rx", nvlink)

    def _set_body(self, values: Array, base: Array, watts: Array, noise: Array) -> None:
        warmth = self._warmth + 0.3 * noise[3] + self._heat
        _put(values, "gpu_temp", np.rint(base[:, at.TEMPERATURE] + warmth))
        _put(values, "memory_temp", np.rint(base[:, at.MEMORY_TEMPERATURE] + warmth))
        _put(values, "power_usage", watts)
        _put(values, "power_limit", self._limit_w)
        clock = base[:, at.CLOCK] * self._speed * self._clock_factor * self._max_clock
        _put(values, "sm_clock", np.rint(clock / 15) * 15)
        _put(values, "max_sm_clock", self._max_clock)
        _put(values, "mem_clock", self._mem_clock)
        reasons = base[:, at.REASONS]
        _put(values, "clock_reasons", np.where(self._reasons > 0, self._reasons, reasons))

    def _set_counters(self, values: Array, watts: Array) -> None:
        self._energy_mj += np.rint(watts * self._settings.interval_ms)
        self._sbe_grown += self._sbe_per_tick
        _put(values, "energy", self._energy_mj)
        _put(values, "xid", self._xid)
        _put(values, "ecc_sbe", self._sbe + np.floor(self._sbe_grown))
        _put(values, "ecc_dbe", self._dbe)
        _put(values, "remapped_rows", self._remapped)
        _put(values, "pcie_replay", self._replays)


def xid_events(plan: Plan, settings: FleetSettings) -> list[tuple[int, int, int]]:
    """Draw the XIDs of cards: (tick, card, code), in order."""
    rng = np.random.default_rng([settings.seed, 3])
    found = []
    for affliction in plan.afflictions:
        if affliction.fault is Fault.XID:
            codes = XIDS_TO_NOTE if rng.random() < 0.5 else XIDS_TO_DRAIN
            found.append((affliction.begin, affliction.card, int(rng.choice(codes))))
        elif affliction.fault is Fault.REPEAT_OFFENDER:
            drawn = rng.choice(XIDS_TO_NOTE + XIDS_TO_DRAIN, REPEATS, replace=False)
            apart = max(1, (affliction.end - affliction.begin) // REPEATS)
            moments = (affliction.begin + apart * turn for turn in range(REPEATS))
            found += [
                (moment, affliction.card, int(code))
                for moment, code in zip(moments, drawn, strict=True)
                if moment < settings.ticks
            ]
    return sorted(found)


def _put(values: Array, column: str, quantity: Array) -> None:
    values[:, CHANNEL[column]] = quantity
