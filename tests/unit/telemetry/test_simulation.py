"""Tests simulated fleets: the same seed gives the same bytes, and the labels are true."""

import itertools
from collections import defaultdict
from statistics import median

import pytest

from barnabas.telemetry.samples.metrics import BY_NAME
from barnabas.telemetry.samples.sample_messages import (
    Layout,
    Sample,
    Snapshot,
    content_type,
    decode,
    parse_time,
)
from barnabas.telemetry.simulation import Fault, FleetSettings, Simulation, Truth, simulate
from barnabas.telemetry.simulation.signals import SIMULATED, XIDS_TO_DRAIN
from barnabas.telemetry.simulation.truth import FINDING, STATE

SETTINGS = FleetSettings(gpus=200, seed=7, duration_ms=200_000, interval_ms=1_000)
UTIL = "DCGM_FI_DEV_GPU_UTIL"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
CLOCK = "DCGM_FI_DEV_SM_CLOCK"
REASONS = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
USED = "DCGM_FI_DEV_FB_USED"
TOTAL = "DCGM_FI_DEV_FB_TOTAL"
SBE = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
XID = "DCGM_FI_DEV_XID_ERRORS"
PCIE_TX = "DCGM_FI_PROF_PCIE_TX_BYTES"
PCIE_RX = "DCGM_FI_PROF_PCIE_RX_BYTES"


class Watched:
    """A fleet and all of its messages."""

    def __init__(self, fleet: Simulation) -> None:
        self.fleet = fleet
        self.by_gpu: dict[str, list[Snapshot]] = defaultdict(list)
        for message in fleet.messages():
            found = decode(message.value, content_type(message.headers))
            assert isinstance(found, Snapshot)
            assert message.key == found.gpu_id.encode()
            self.by_gpu[found.gpu_id].append(found)

    def findings(self, fault: Fault) -> list[Truth]:
        found = [
            each
            for each in self.fleet.truth
            if each.kind == FINDING and each.name == fault and not each.optional
        ]
        assert found, f"no card has {fault}"
        return found

    def during(self, truth: Truth) -> list[Snapshot]:
        return [
            each
            for each in self.by_gpu[truth.gpu_id]
            if truth.start_ms <= each.timestamp_ms < truth.end_ms
        ]

    def peers(self, truth: Truth) -> list[Snapshot]:
        own = self.by_gpu[truth.gpu_id][0]
        return [
            each
            for gpu_id, snapshots in self.by_gpu.items()
            if gpu_id != truth.gpu_id and snapshots[0].labels.get("pod") == own.labels.get("pod")
            for each in snapshots
            if truth.start_ms <= each.timestamp_ms < truth.end_ms
        ]


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched(simulate(SETTINGS))


def values(snapshots: list[Snapshot], metric: str) -> list[float]:
    return [each.metrics[metric] for each in snapshots]


def share(flags: list[bool]) -> float:
    return sum(flags) / len(flags)


def test_the_same_settings_give_the_same_bytes() -> None:
    small = FleetSettings(gpus=20, duration_ms=10_000, seed=3)
    first, second = simulate(small), simulate(small)
    assert list(first.messages()) == list(second.messages())
    assert list(first.messages()) == list(first.messages())
    assert first.truth == second.truth
    other = simulate(FleetSettings(gpus=20, duration_ms=10_000, seed=4))
    assert list(other.messages()) != list(first.messages())


def test_every_value_is_plausible(watched: Watched) -> None:
    for snapshots in watched.by_gpu.values():
        for snapshot in snapshots[::20]:
            assert set(snapshot.metrics) == {each.dcgm for each in SIMULATED}
            for name, value in snapshot.metrics.items():
                assert BY_NAME[name].low <= value <= BY_NAME[name].high, (name, value)


def test_layouts_carry_the_same_values() -> None:
    snapshots = simulate(FleetSettings(gpus=9, duration_ms=3_000)).messages()
    samples = simulate(FleetSettings(gpus=9, duration_ms=3_000, layout=Layout.SAMPLE)).messages()
    expected = []
    for message in snapshots:
        whole = decode(message.value, content_type(message.headers))
        assert isinstance(whole, Snapshot)
        expected += list(whole.samples())
    found = [decode(each.value, content_type(each.headers)) for each in samples]
    assert all(isinstance(each, Sample) for each in found)
    assert found == expected


def test_all_faults_are_there_and_healthy_cards_have_none(watched: Watched) -> None:
    named = {each.name for each in watched.fleet.truth if each.kind == FINDING}
    assert named == set(Fault)
    sick = {each.gpu_id for fault in Fault for each in watched.findings(fault)}
    assert 0.1 * SETTINGS.gpus < len(sick) < 0.35 * SETTINGS.gpus
    for gpu_id, snapshots in watched.by_gpu.items():
        if gpu_id in sick:
            continue
        assert median(values(snapshots, UTIL)) > 80
        assert share([each.metrics[REASONS] == 0 for each in snapshots]) > 0.9
        assert {each.metrics[XID] for each in snapshots} == {0}
        assert len(set(values(snapshots, SBE))) == 1
        assert len(snapshots) == SETTINGS.ticks


def test_every_card_has_a_state_at_every_time(watched: Watched) -> None:
    spans: dict[str, list[Truth]] = defaultdict(list)
    for each in watched.fleet.truth:
        if each.kind == STATE:
            spans[each.gpu_id].append(each)
    assert len(spans) == SETTINGS.gpus
    for states in spans.values():
        assert states[-1].end_ms - states[0].start_ms == SETTINGS.duration_ms
        assert all(a.end_ms == b.start_ms for a, b in itertools.pairwise(states))


def test_idle_and_parked_cards_do_nothing(watched: Watched) -> None:
    for truth in watched.findings(Fault.IDLE):
        assert share([util <= 2 for util in values(watched.during(truth), UTIL)]) > 0.9
    for truth in watched.findings(Fault.PARKED_MEMORY):
        inside = watched.during(truth)
        assert share([util <= 2 for util in values(inside, UTIL)]) > 0.9
        assert min(each.metrics[USED] / each.metrics[TOTAL] for each in inside) > 0.3


def test_starved_jobs_stop_and_go_while_they_hold_memory(watched: Watched) -> None:
    for truth in watched.findings(Fault.STARVED):
        inside = values(watched.during(truth), UTIL)
        assert share([util <= 2 for util in inside]) > 0.4
        assert share([util >= 50 for util in inside]) > 0.05


def test_launch_bound_jobs_look_busy_without_power(watched: Watched) -> None:
    for truth in watched.findings(Fault.LAUNCH_BOUND):
        inside = watched.during(truth)
        assert median(values(inside, UTIL)) > 30
        assert max(each.metrics[POWER] / each.metrics[LIMIT] for each in inside) < 0.25


def test_jobs_wait_for_memory_pcie_or_nvlink_and_look_it(watched: Watched) -> None:
    for truth in watched.findings(Fault.MEMORY_BOUND):
        inside = watched.during(truth)
        assert 0.5 < median(values(inside, "DCGM_FI_PROF_DRAM_ACTIVE")) < 0.9
    for truth in watched.findings(Fault.PCIE_BOUND):
        inside = watched.during(truth)
        moved = [each.metrics[PCIE_TX] + each.metrics[PCIE_RX] for each in inside]
        assert 40e9 < median(moved) < 64e9
        assert max(values(inside, "DCGM_FI_PROF_SM_ACTIVE")) < 0.1
    for truth in watched.findings(Fault.NVLINK_BOUND):
        inside = watched.during(truth)
        assert 250e9 < median(values(inside, "DCGM_FI_PROF_NVLINK_TX_BYTES")) < 450e9
        assert max(values(inside, "DCGM_FI_PROF_SM_ACTIVE")) < 0.3


def test_some_healthy_jobs_keep_a_link_busy_while_they_compute(watched: Watched) -> None:
    sick = {each.gpu_id for fault in Fault for each in watched.findings(fault)}
    healthy = [each for gpu, each in watched.by_gpu.items() if gpu not in sick]
    busy = [each for each in healthy if median(values(each, PCIE_RX)) > 25e9]
    assert 0 < len(busy) < len(healthy) / 2
    for snapshots in busy:
        assert median(values(snapshots, "DCGM_FI_PROF_SM_ACTIVE")) > 0.6


def test_capped_and_hot_cards_say_so(watched: Watched) -> None:
    for truth in watched.findings(Fault.POWER_CAPPED):
        assert share([int(flags) & 4 > 0 for flags in values(watched.during(truth), REASONS)]) > 0.6
    for truth in watched.findings(Fault.THERMAL_THROTTLED):
        inside = watched.during(truth)
        assert all(int(flags) & 0x60 for flags in values(inside, REASONS))
        assert median(values(inside, "DCGM_FI_DEV_GPU_TEMP")) > 75
        peers = median(values(watched.peers(truth), CLOCK))
        assert median(values(inside, CLOCK)) < 0.8 * peers


def test_stragglers_lag_behind_the_peers_of_their_pod(watched: Watched) -> None:
    for truth in watched.findings(Fault.STRAGGLER):
        peers = watched.peers(truth)
        assert len({each.gpu_id for each in peers}) >= 4
        for metric in (UTIL, POWER, CLOCK):
            inside = median(values(watched.during(truth), metric))
            assert inside < 0.8 * median(values(peers, metric)), metric


def test_xids_change_when_the_labels_say(watched: Watched) -> None:
    changes = set()
    for gpu_id, snapshots in watched.by_gpu.items():
        before = 0.0
        for each in snapshots:
            if each.metrics[XID] != before:
                before = each.metrics[XID]
                changes.add((gpu_id, each.timestamp_ms, before))
    labels = watched.findings(Fault.XID)
    assert {(each.gpu_id, each.start_ms, each.detail["xid"]) for each in labels} == changes
    assert all(each.detail["drain"] == (each.detail["xid"] in XIDS_TO_DRAIN) for each in labels)
    for offender in watched.findings(Fault.REPEAT_OFFENDER):
        own = [each for each in labels if each.gpu_id == offender.gpu_id]
        assert len(own) >= 3
        assert offender.start_ms == sorted(each.start_ms for each in own)[2]


def test_errors_grow_where_the_labels_say(watched: Watched) -> None:
    for truth in watched.findings(Fault.ECC_TREND):
        inside = values(watched.during(truth), SBE)
        hours = (truth.end_ms - truth.start_ms) / 3_600_000
        assert (inside[-1] - inside[0]) / hours > 100


def test_missing_cards_are_silent_and_others_are_not(watched: Watched) -> None:
    for truth in watched.findings(Fault.MISSING):
        assert watched.during(truth) == []
        seen = watched.by_gpu[truth.gpu_id]
        assert seen[0].timestamp_ms < truth.start_ms
        last_ms = seen[-1].timestamp_ms
        assert last_ms < truth.start_ms or last_ms >= truth.end_ms


def test_one_host_arrives_late_and_the_others_in_order(watched: Watched) -> None:
    late = {each.gpu_id for each in watched.fleet.truth if each.name == "late_host"}
    assert len(late) == 8
    newest_ms, behind_ms = 0, []
    for message in watched.fleet.messages():
        found = decode(message.value, content_type(message.headers))
        if isinstance(found, Snapshot) and found.gpu_id in late:
            behind_ms.append(newest_ms - found.timestamp_ms)
        else:
            assert found.timestamp_ms >= newest_ms
            newest_ms = found.timestamp_ms
    assert median(behind_ms) == pytest.approx(30_000, abs=1_000)


@pytest.mark.parametrize("gpus", [1, 2, 7, 8, 9, 24, 65])
def test_fleets_of_any_size(gpus: int) -> None:
    fleet = simulate(FleetSettings(gpus=gpus, duration_ms=30_000, interval_ms=10_000))
    keys = {message.key for message in fleet.messages()}
    assert len(keys) == gpus
    sick = {e.gpu_id for e in fleet.truth if e.kind == FINDING and not e.optional}
    assert len(sick) <= (gpus + 1) // 2


def test_a_fleet_without_faults_has_none() -> None:
    fleet = simulate(FleetSettings(gpus=40, duration_ms=5_000, fault_share=0))
    assert [each for each in fleet.truth if each.kind == FINDING and not each.optional] == []


def test_times_begin_where_the_caller_says() -> None:
    start_ms = parse_time("2026-01-01T00:00:00Z")
    fleet = simulate(FleetSettings(gpus=8, duration_ms=5_000, start_ms=start_ms))
    times = [decode(m.value, content_type(m.headers)).timestamp_ms for m in fleet.messages()]
    assert start_ms <= times[0] < start_ms + 1_000
    assert times[-1] == fleet.last_ms


def test_settings_that_make_no_fleet_are_refused() -> None:
    with pytest.raises(ValueError, match="gpus must be at least 1"):
        FleetSettings(gpus=0)
    with pytest.raises(ValueError, match="fault_share"):
        FleetSettings(fault_share=2)
