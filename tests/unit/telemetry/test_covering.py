"""Tests that a sample counts until the next one: time, energy and rows between windows."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.windows.covering import NOTHING, Lasts, cover, rollup
from barnabas.telemetry.windows.rollups import GOLD, by_gpu

START = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
THRESHOLDS = Thresholds()
RATES_S = (0.1, 1.0, 10.0, 30.0)


def silver(rows: list[dict[str, Any]]) -> pa.Table:
    full = [
        {"gpu_id": "a", "hostname": "h", **row, "timestamp": START + timedelta(seconds=row["at"])}
        for row in rows
    ]
    for row in full:
        del row["at"]
    return pa.Table.from_pylist(full, schema=arrow_schema(lake_tables.SILVER))


def gold(rows: list[dict[str, Any]], width_s: int = 10) -> list[dict[str, Any]]:
    whole = rollup(silver(rows), width_s, THRESHOLDS)
    cards = whole.filter(pc.equal(whole["level"], "gpu")).sort_by(
        [("gpu_id", "ascending"), ("window_start", "ascending")]
    )
    found: list[dict[str, Any]] = cards.to_pylist()
    return found


def every(
    interval_s: float, seconds: float, first_s: float = 0.0, **row: Any
) -> list[dict[str, Any]]:
    times = np.arange(first_s, seconds, interval_s)
    return [{"at": round(float(at), 3), **row} for at in times]


def clock(hours: float = 0.2) -> list[dict[str, Any]]:
    """Return a card that is sampled every second: windows close continuously."""
    return every(1, hours * 3600, gpu_id="clock")


def of(found: list[dict[str, Any]], gpu: str = "a") -> list[dict[str, Any]]:
    return [row for row in found if row["gpu_id"] == gpu]


def second(row: dict[str, Any]) -> float:
    return float((row["window_start"] - START).total_seconds())


def test_a_window_without_samples_repeats_the_last_one() -> None:
    rows = of(gold(every(30, 100, 3, gpu_util=40, power_usage=100, ecc_sbe=7, xid=13)))
    assert [second(row) for row in rows] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert [row["samples"] for row in rows] == [1, 0, 0, 1, 0, 0, 1, 0, 0, 1]
    assert [row["covered_seconds"] for row in rows] == pytest.approx([7] + [10] * 9)
    assert [row["energy_joules"] for row in rows] == pytest.approx([700] + [1000] * 9)
    held = rows[1]
    assert (held["gpu_util_mean"], held["gpu_util_p95"], held["ecc_sbe_last"]) == (40, 40, 7)
    assert (held["hostname"], held["util_falls"], held["xids"]) == ("h", 0, None)
    assert [row["interval_s"] for row in rows[3:]] == pytest.approx([30] * 7)


def test_the_sample_before_says_what_the_beginning_of_a_window_was() -> None:
    busy_then_idle = [
        {"at": 0, "gpu_util": 100, "clock_reasons": 4},
        {"at": 8, "gpu_util": 100, "clock_reasons": 4},
        {"at": 16, "gpu_util": 0, "clock_reasons": 0},
    ]
    first, row = gold(busy_then_idle)
    assert (first["util_busy_share"], first["power_capped_share"]) == (1, 1)
    assert row["util_busy_share"] == pytest.approx(0.6)
    assert row["util_idle_share"] == pytest.approx(0.4)
    assert row["power_capped_share"] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("interval_s", "stands_s"), [(1, 10), (5, 10), (10, 20), (30, 60), (120, 240), (290, 300)]
)
def test_a_silent_card_counts_for_two_intervals_and_no_longer(
    interval_s: float, stands_s: float
) -> None:
    last_s = 2 * interval_s
    rows = of(gold([*every(interval_s, last_s + 0.5, gpu_util=0, power_usage=70), *clock(0.5)]))
    unknown_s = max(0, interval_s - 60)  # the first sample of a card counts for a minute
    covered_s = sum(row["covered_seconds"] for row in rows)
    assert covered_s == pytest.approx(last_s - unknown_s + stands_s)
    assert second(rows[-1]) < last_s + stands_s


def test_a_card_seen_once_counts_until_it_is_missing() -> None:
    rows = of(gold([{"at": 3, "gpu_util": 0}, *clock()]))
    assert sum(row["covered_seconds"] for row in rows) == pytest.approx(60)


def test_one_lost_scrape_is_bridged_and_an_outage_is_not() -> None:
    lost = [row for row in every(30, 600, gpu_util=0) if row["at"] != 300]
    away = [row for row in every(30, 600, gpu_util=0) if not 200 < row["at"] < 400]
    for rows, covered_s in ((lost, 600), (away, 600 - (420 - 180) + 60)):
        found = of(gold([*rows, *clock(600 / 3600)]))
        assert sum(row["covered_seconds"] for row in found) == pytest.approx(covered_s)


def test_a_pause_within_a_minute_counts_for_ten_seconds() -> None:
    rows = [row for row in every(1, 60, gpu_util=0) if not 10 < row["at"] < 50]
    (row,) = gold(rows, width_s=60)
    assert row["covered_seconds"] == pytest.approx(10 + 10 + 10)


def test_hosts_and_models_have_the_time_of_their_cards() -> None:
    rows = [*every(30, 60, 3, gpu_id="a", gpu_util=0), *every(1, 60, gpu_id="b", gpu_util=100)]
    whole = rollup(silver(rows), 10, THRESHOLDS).to_pylist()
    (host,) = (r for r in whole if r["level"] == "host" and second(r) == 20)
    assert (host["gpus"], host["samples"], host["interval_s"]) == (2, 10, None)
    assert host["covered_seconds"] == pytest.approx(20)
    assert host["gpu_util_max"] == 100


# The same card at every rate


def story(at: float) -> tuple[float, float]:
    """Return utilisation and power of a card that works, idles for ten minutes, and works."""
    return (0.0, 75.0) if 600 <= at < 1200 else (97.0, 550.0 + 100 * np.sin(at / 3))


def joules_until(at: float) -> float:
    fine = np.arange(0, at, 0.05)
    return float(sum(story(float(each))[1] for each in fine) * 0.05)


def watched(interval_s: float, *, counter: bool, first_s: float = 0.0) -> list[dict[str, Any]]:
    fine = np.arange(0, 1800, 0.05)
    sums = np.concatenate(([0.0], np.cumsum([story(float(at))[1] * 0.05 for at in fine])))
    rows = []
    for row in every(interval_s, 1800, first_s):
        util, watts = story(row["at"])
        energy = {"energy": 1e3 * sums[round(row["at"] / 0.05)]} if counter else {}
        rows.append({**row, "gpu_util": util, "power_usage": watts, **energy})
    return rows


@pytest.mark.parametrize("width_s", [10, 60])
@pytest.mark.parametrize("interval_s", RATES_S)
def test_hours_do_not_depend_on_the_rate(interval_s: float, width_s: int) -> None:
    rows = of(gold([*watched(interval_s, counter=False), *clock(0.5)], width_s))
    assert sum(row["covered_seconds"] for row in rows) == pytest.approx(1800, abs=0.1)
    idle_s = sum(row["covered_seconds"] * row["util_idle_share"] for row in rows)
    # One edge each way, at most an interval; the samples of a window have the same weight.
    assert idle_s == pytest.approx(600, abs=2 * interval_s + 1)


@pytest.mark.parametrize("interval_s", RATES_S)
def test_energy_by_the_counter_does_not_depend_on_the_rate(interval_s: float) -> None:
    rows = of(gold([*watched(interval_s, counter=True), *clock(0.5)]))
    energies = [row["energy_joules"] for row in rows]
    assert min(energies) >= 0
    true = joules_until(1800)
    # After the last reading, the power of the last sample counts.
    assert sum(energies) == pytest.approx(true, abs=interval_s * 650)
    until_last = [e for row, e in zip(rows, energies, strict=True) if second(row) < 1700]
    assert sum(until_last) == pytest.approx(joules_until(1700), rel=0.02)


@pytest.mark.parametrize("interval_s", RATES_S)
def test_energy_by_power_is_near_at_every_rate(interval_s: float) -> None:
    rows = of(gold([*watched(interval_s, counter=False), *clock(0.5)]))
    assert sum(row["energy_joules"] for row in rows) == pytest.approx(joules_until(1800), rel=0.06)


def test_what_was_given_beyond_the_counter_is_taken_off_what_follows() -> None:
    rows: list[dict[str, Any]] = [
        {"at": 0, "power_usage": 600, "energy": 0},
        {"at": 30, "power_usage": 100, "energy": 1e3 * 3_000},  # it fell to 100 W at once
        {"at": 60, "power_usage": 100, "energy": 1e3 * 6_000},
        {"at": 90, "power_usage": 100, "energy": 1e3 * 9_000},
        {"at": 120, "power_usage": 100, "energy": 1e3 * 12_000},
        {"at": 150, "power_usage": 100, "energy": 1e3 * 15_000},
        {"at": 180, "power_usage": 100, "energy": 1e3 * 18_000},
        {"at": 210, "power_usage": 100, "energy": 1e3 * 21_000},
    ]
    energies = [row["energy_joules"] for row in gold(rows)]
    assert energies[:3] == pytest.approx([6000] * 3)
    assert energies[3:17] == pytest.approx([0] * 14)
    assert sum(energies) == pytest.approx(21_000 + 1_000)


def test_a_counter_that_was_reset_leaves_it_to_power() -> None:
    rows = [{"at": at, "power_usage": 100, "energy": 1e9 - at} for at in (0, 30, 60)]
    assert [row["energy_joules"] for row in gold(rows)] == pytest.approx([1000] * 7)


def test_a_counter_alone_gives_energy_too() -> None:
    rows = [{"at": at, "energy": 1e3 * 200 * at} for at in (0, 30, 60, 90)]
    energies = [row["energy_joules"] for row in gold(rows)]
    assert energies[1:3] == [None, None], "no value is known yet"
    assert sum(each or 0 for each in energies) == pytest.approx(200 * 100)


# Batches


def in_batches(table: pa.Table, cuts: list[int], width_s: int) -> pa.Table:
    """Cover windows in batches that end at the given times, as Spark would close them."""
    closed = by_gpu(table, width_s, THRESHOLDS)
    ends = closed["window_end"].cast(pa.int64()).to_numpy() // 1_000_000 - int(START.timestamp())
    lasts: Lasts = NOTHING
    found = []
    edges = [0, *sorted(cuts), 10**9]
    for low, high in pairwise(edges):
        part = closed.filter(pa.array((ends > low) & (ends <= high)))
        rows, lasts = cover(lasts, part, width_s, THRESHOLDS)
        found.append(rows.select(GOLD.names))
    order = [("gpu_id", "ascending"), ("window_start", "ascending")]
    return pa.concat_tables(found).sort_by(order)


@settings(deadline=None)
@given(
    cuts=st.lists(st.integers(1, 60).map(lambda n: n * 10), max_size=8),
    intervals=st.lists(st.sampled_from([1.0, 4.0, 7.5, 10.0, 30.0, 45.0]), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    width_s=st.sampled_from([10, 60]),
)
def test_how_batches_are_cut_does_not_show(
    cuts: list[int], intervals: list[float], seed: int, width_s: int
) -> None:
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for number, interval_s in enumerate(intervals):
        energy = 0.0
        for row in every(interval_s, 600, float(draw.uniform(0, 5))):
            watts = float(draw.choice([75.0, 300.0, 690.0]))
            energy += float(draw.uniform(0, 700)) * interval_s
            if draw.random() < 0.9:
                known = {"gpu_util": float(draw.choice([0, 30, 100])), "power_usage": watts}
                rows.append({**row, "gpu_id": f"g{number}", **known, "energy": 1e3 * energy})
    if not rows:
        return
    cuts = [cut for cut in cuts if cut % width_s == 0]
    whole = in_batches(silver(rows), [], width_s)
    assert in_batches(silver(rows), cuts, width_s).equals(whole)
    assert pc.min(whole["energy_joules"]).as_py() >= 0
