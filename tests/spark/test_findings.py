"""Tests the rules on gold rows: of the H200 recording, of variants of it, of peers, of waste."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

import pyarrow as pa

from barnabas.telemetry.findings import rules
from barnabas.telemetry.findings.assessment import FleetState, assess
from barnabas.telemetry.findings.evaluation import PHASES
from barnabas.telemetry.findings.finding import Finding
from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.findings.waste import waste
from barnabas.telemetry.jobs.alerting import reduced
from barnabas.telemetry.lake import arrow, lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from tests.support.pipelines.recorded_gold import (
    WINDOW_US,
    Span,
    gold_rows,
    rearranged,
    recorded_phases,
    recorded_samples,
    training_window,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THRESHOLDS = Thresholds()
GOLD = arrow_schema(lake_tables.GOLD)
START = datetime(2026, 11, 15, tzinfo=UTC)


def frame(spark: "SparkSession", rows: Iterable[dict[str, Any]]) -> "DataFrame":
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), GOLD))


def assessed(spark: "SparkSession", rows: list[dict[str, Any]]) -> list[Finding]:
    """Return all findings about gold rows, as the job would."""
    batch = reduced(frame(spark, rows), THRESHOLDS).toArrow()
    windows, found = arrow.windows_from(batch), arrow.found_in(batch)
    return assess(FleetState(), windows, found, THRESHOLDS).findings


@dataclass(frozen=True)
class LabelledWindow:
    """The findings in one window that lies completely in one phase."""

    recording: str
    phase: str
    into: int
    """How many windows of the phase were before it."""
    findings: frozenset[str]


def variants() -> dict[str, tuple[Any, list[Span]]]:
    """Return the recording and variants of it, each a card on its own host."""
    samples, phases = recorded_samples(), recorded_phases()
    found = {"10Hz": (samples, phases)}
    for offset in range(0, 10, 3):
        found[f"1Hz+{offset}"] = (samples.iloc[offset::10], phases)
    draw = random.Random(20261115)
    names = list(PHASES)
    for number in range(16):
        # Long enough for complete windows wherever the edges are.
        plan = [(draw.choice(names), draw.uniform(20, 120)) for _ in range(8)]
        every, start = (1, 10)[number % 2], 1_800_000_000_000_000 + draw.randrange(WINDOW_US)
        rate = "10Hz" if every == 1 else "1Hz"
        found[f"{rate} variant {number}"] = rearranged(samples, plan, every=every, start=start)
    return found


@pytest.fixture(scope="module")
def labelled_windows(spark: "SparkSession") -> list[LabelledWindow]:
    rows: list[dict[str, Any]] = []
    spans: dict[str, list[Span]] = {}
    for name, (samples, phases) in variants().items():
        spans[name] = phases
        rows += gold_rows(samples.assign(gpu_id=name, hostname=name), THRESHOLDS)
    findings: dict[tuple[str, int], set[str]] = {}
    for each in assessed(spark, rows):
        if each.finding != "missing":
            findings.setdefault((each.gpu_id, each.window_start), set()).add(each.finding)
    return [
        LabelledWindow(name, span.phase, number, frozenset(findings.get((name, start), ())))
        for name, phases in spans.items()
        for span in phases
        for number, start in enumerate(whole_windows(span))
    ]


def whole_windows(span: Span) -> range:
    first = -(-span.start // WINDOW_US) * WINDOW_US
    return range(first, span.end - WINDOW_US + 1, WINDOW_US)


@pytest.mark.parametrize("phase", [each for each in PHASES if each != "train_starved"])
def test_every_window_of_a_phase_says_what_the_phase_is(
    labelled_windows: list[LabelledWindow], phase: str
) -> None:
    windows = [each for each in labelled_windows if each.phase == phase]
    assert len(windows) > 10
    assert [each for each in windows if each.findings != frozenset(PHASES[phase])] == []


def test_starved_training_is_seen_in_every_window_at_10_hz(
    labelled_windows: list[LabelledWindow],
) -> None:
    windows = [
        e for e in labelled_windows if e.phase == "train_starved" and e.recording.startswith("10Hz")
    ]
    assert len(windows) > 10
    assert {each.findings for each in windows} == {frozenset({"starved"})}


def test_starved_training_is_seen_at_1_hz_once_it_lasts(
    labelled_windows: list[LabelledWindow],
) -> None:
    """One sample a second misses stalls: a window may show none, or nothing else."""
    windows = [
        e for e in labelled_windows if e.phase == "train_starved" and e.recording.startswith("1Hz")
    ]
    settled = [each.findings for each in windows if each.into >= 2]
    assert len(settled) > 10
    assert settled.count(frozenset({"starved"})) >= 0.8 * len(settled)
    assert set(settled) <= {frozenset({"starved"}), frozenset({"idle"}), frozenset()}


def test_nothing_but_the_two_phases_of_a_window_is_found_at_an_edge(spark: "SparkSession") -> None:
    samples, phases = recorded_samples(), recorded_phases()
    rows: list[dict[str, Any]] = []
    for seconds in range(10):
        moved = samples.assign(
            at=samples["at"] + seconds * 1_000_000, gpu_id=str(seconds), hostname=str(seconds)
        )
        rows += gold_rows(moved, THRESHOLDS)
    for each in assessed(spark, rows):
        start = each.window_start - int(each.gpu_id) * 1_000_000
        near = [p for p in phases if p.start < start + 2 * WINDOW_US and start < p.end]
        expected = {name for phase in near for name in PHASES[phase.phase]}
        assert each.finding in expected, (each, near)


# Single rules, on rows made by hand


def card(number: int = 0, gpu: str = "GPU-1", **metrics: Any) -> dict[str, Any]:
    """Return a window of a healthy training card."""
    healthy = {
        "hostname": "node-1",
        "model": "H200",
        "namespace": "ml",
        "power_capped_share": 0.0,
        "thermal_share": 0.0,
        "sm_clock_mean": 1900.0,
        "sm_clock_top": 1980.0,
        "energy_joules": 6000.0,
    }
    start = START + timedelta(seconds=10 * number)
    return training_window(start, gpu, **{**healthy, **metrics})


IDLE: dict[str, Any] = {
    "gpu_util_mean": 0.0,
    "gpu_util_p50": 0.0,
    "util_idle_share": 1.0,
    "util_busy_share": 0.0,
    "power_usage_mean": 80.0,
    "energy_joules": 800.0,
    "fb_used_p50": 500.0,
}


def test_each_rule_reports_what_it_costs(spark: "SparkSession") -> None:
    rows = [
        card(gpu="healthy"),
        card(gpu="idle", **{**IDLE, "util_idle_share": 0.95}),
        card(gpu="parked", **{**IDLE, "fb_used_p50": 70_000.0}),
        card(gpu="capped", power_capped_share=0.8, sm_clock_mean=1485.0),
        card(gpu="hot", thermal_share=0.5, sm_clock_mean=990.0),
        card(gpu="launches", power_usage_p95=130.0),
        card(level="host", **IDLE),
    ]
    columns = ["gpu_id", "finding", "severity", "value", "unit", "seconds", "joules"]
    found = rules.findings(frame(spark, rows), THRESHOLDS).select(*columns).collect()
    expected: list[tuple[Any, ...]] = [
        ("capped", "power_capped", "info", None, "% clock", 8.0, None),
        ("hot", "thermal_throttled", "warning", None, "% clock", 5.0, None),
        ("idle", "idle", "info", 80.0, "W", 9.5, 760.0),
        ("launches", "launch_bound", "info", 96.0, "% util", 10.0, None),
        ("parked", "idle", "info", 80.0, "W", 10.0, 800.0),
        ("parked", "parked_memory", "warning", 70_000.0, "MiB", 10.0, None),
    ]
    assert sorted(tuple(each) for each in found) == expected


def test_findings_have_the_columns_of_their_table(spark: "SparkSession") -> None:
    found = rules.findings(frame(spark, [card()]), THRESHOLDS)
    assert found.dtypes == [(each.name, each.type) for each in lake_tables.FINDINGS]


def test_metrics_that_are_not_sampled_find_nothing(spark: "SparkSession") -> None:
    context = ("window_start", "window_end", "level", "gpu_id")
    bare = {name: value for name, value in card().items() if name in context}
    rows = [bare | {"gpu_id": "bare"}]
    rows += [card(gpu=name) | {name: None} for name in set(card()) - set(context)]
    assert assessed(spark, rows) == []


def test_a_cap_without_clocks_is_found_without_a_value(spark: "SparkSession") -> None:
    rows = [card(power_capped_share=1.0, sm_clock_mean=None)]
    (found,) = assessed(spark, rows)
    assert (found.finding, found.value, found.detail) == (
        "power_capped",
        None,
        "under the power cap 100% of the window",
    )


def test_occupied_multiprocessors_are_work_even_with_little_power(spark: "SparkSession") -> None:
    frugal = card(gpu="frugal", hostname="a", power_usage_p95=130.0, sm_active_mean=0.9)
    launches = card(gpu="launches", hostname="b", power_usage_p95=130.0, sm_active_mean=0.05)
    assert [each.gpu_id for each in assessed(spark, [frugal, launches])] == ["launches"]


def stragglers(spark: "SparkSession", rows: list[dict[str, Any]]) -> dict[str, str]:
    return {e.gpu_id: e.detail for e in assessed(spark, rows) if e.finding == "straggler"}


def host(name: str, **last: Any) -> list[dict[str, Any]]:
    """Return eight cards of a job, with slightly different values, the last one as given."""
    rows = [
        card(
            gpu=f"{name}-{n}", hostname=name, power_usage_mean=600.0 + n, gpu_util_mean=96 - n / 10
        )
        for n in range(7)
    ]
    return [*rows, card(**{"gpu": f"{name}-7", "hostname": name, **last})]


def test_a_card_that_falls_behind_its_peers_is_a_straggler(spark: "SparkSession") -> None:
    rows = host("slow", sm_clock_mean=1300.0, power_usage_mean=420.0)
    rows += host("waits", gpu_util_mean=60.0)
    assert stragglers(spark, rows) == {
        "slow-7": "SM clock 32% below its peers",
        "waits-7": "utilisation 37% below its peers",
    }


def test_a_card_that_differs_for_good_reason_is_no_straggler(spark: "SparkSession") -> None:
    rows = host("healthy")
    rows += host("a little thriftier", power_usage_mean=570.0)
    rows += host("ahead", power_usage_mean=690.0)
    rows += host("works harder", power_usage_mean=690.0, sm_clock_mean=1485.0)
    rows += host("empty", **IDLE)
    rows += host("parked", **{**IDLE, "fb_used_p50": 90_000.0})
    rows += host("of another job", sm_clock_mean=1300.0, namespace="other")
    rows += host("three cards have no peers", sm_clock_mean=1300.0)[5:]
    rows += [
        card(gpu=str(watts), hostname="different things", power_usage_mean=watts)
        for watts in (690.0, 400.0, 125.0, 590.0, 250.0, 690.5, 400.5)
    ]
    rows.append(card(gpu="x", hostname="different things", sm_clock_mean=1300.0))
    assert stragglers(spark, rows) == {}


def test_waste_is_summed_in_energy_and_money_apart(spark: "SparkSession") -> None:
    hours = [card(number, "GPU-1", **IDLE) for number in range(360)]
    hours += [card(number, "GPU-2", **{**IDLE, "fb_used_p50": 102_400.0}) for number in range(360)]
    hours += [card(number, "GPU-3", namespace="other") for number in range(360)]
    found = rules.findings(frame(spark, hours), THRESHOLDS)
    (row,) = waste(found, "namespace", THRESHOLDS).collect()
    assert (row.namespace, row.gpus, row.idle_hours) == ("ml", 2, 2.0)
    assert row.idle_kwh == pytest.approx(0.16)
    assert row.energy_price == pytest.approx(0.024)
    assert row.card_price == pytest.approx(5.0)
    assert row.parked_gib_hours == pytest.approx(100.0)
    assert waste(found, "gpu_id", THRESHOLDS).count() == 2
    with pytest.raises(ValueError, match="hostname, namespace, gpu_id"):
        waste(found, "rack", THRESHOLDS)
