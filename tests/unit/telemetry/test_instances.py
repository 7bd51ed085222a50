"""Tests windows of cards that are split into MIG instances: a card counts once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.windows.covering import rollup

START = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
CARD = {"gpu_id": "GPU-1", "hostname": "h", "model": "NVIDIA H100", "power_usage": 300.0}


def instance(number: int, second: float, **values: Any) -> dict[str, Any]:
    named = {"instance": str(number), "profile": "1g.10gb", "pod": f"pod-{number}"}
    return {**CARD, **named, "timestamp": START + timedelta(seconds=second), **values}


def rolled(rows: list[dict[str, Any]], width_s: int = 10) -> dict[str, list[dict[str, Any]]]:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(lake_tables.SILVER))
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rollup(table, width_s, Thresholds()).to_pylist():
        found.setdefault(row["level"], []).append(row)
    return found


def seven(**of_first: Any) -> list[dict[str, Any]]:
    """Ten seconds of a card with seven instances, the first of which may differ."""
    idle = {"gr_engine_active": 0.0, "fb_used": 100.0, "fb_free": 9900.0}
    return [
        instance(number, second, **(idle | of_first if number == 0 else idle))
        for second in range(10)
        for number in range(7)
    ]


def test_seven_instances_of_a_card_draw_its_power_once() -> None:
    found = rolled(seven())
    [gpu], [host], [model] = found["gpu"], found["host"], found["model"]
    for row in (gpu, host, model):
        assert row["energy_joules"] == pytest.approx(3000)
        assert row["covered_seconds"] == pytest.approx(10)
        assert row["gpus"] == 1
        assert row["samples"] == 10
    assert [row["energy_joules"] for row in found["instance"]] == [None] * 7
    assert [row["power_usage_mean"] for row in found["instance"]] == [None] * 7
    assert sum(row["gpus"] for row in found["instance"]) == 0


def test_the_energy_counter_of_a_card_counts_once() -> None:
    rows = [
        instance(number, second, energy=1e9 + 300_000.0 * second)
        for second in range(20)
        for number in range(7)
    ]
    windows = rolled(rows)["gpu"]
    assert sum(row["energy_joules"] for row in windows) == pytest.approx(6000)


def test_a_card_with_one_busy_instance_is_not_idle() -> None:
    found = rolled(seven(gr_engine_active=0.9))
    [gpu] = found["gpu"]
    assert gpu["gpu_util_mean"] == pytest.approx(90 / 7)
    assert gpu["util_idle_share"] == 0
    assert gpu["instances"] == 7
    assert gpu["idle_instances"] == [f"{number} (1g.10gb)" for number in range(1, 7)]
    busy, *idle = found["instance"]
    assert (busy["gpu_id"], busy["instance"], busy["profile"]) == ("GPU-1", "0", "1g.10gb")
    assert (busy["gpu_util_mean"], busy["util_idle_share"]) == (90, 0)
    assert [row["util_idle_share"] for row in idle] == [1] * 6


def test_a_card_with_one_instance_that_hardly_works_is_not_idle() -> None:
    [gpu] = rolled(seven(gr_engine_active=0.05))["gpu"]
    assert gpu["util_idle_share"] == 0
    assert gpu["gpu_util_mean"] == pytest.approx(2)


def test_a_card_whose_instances_all_idle_is_idle() -> None:
    [gpu] = rolled(seven())["gpu"]
    assert gpu["util_idle_share"] == 1
    assert len(gpu["idle_instances"]) == 7


def test_memory_and_pods_are_those_of_the_instances() -> None:
    found = rolled(seven(fb_used=5000.0, fb_free=5000.0))
    [gpu] = found["gpu"]
    assert gpu["fb_used_mean"] == 5600
    assert gpu["fb_total"] == 70_000
    assert gpu["pod"] is None
    assert [row["pod"] for row in found["instance"]] == [f"pod-{number}" for number in range(7)]
    assert [row["fb_used_mean"] for row in found["instance"]] == [5000] + [100] * 6


def test_instances_count_by_their_slices() -> None:
    rows = [
        instance(1, 0, profile="3g.40gb", gr_engine_active=1.0),
        instance(2, 0, profile="1g.10gb", gr_engine_active=0.0),
    ]
    [gpu] = rolled(rows)["gpu"]
    assert gpu["gpu_util_mean"] == pytest.approx(300 / 7)
    rows = [{**row, "profile": None} for row in rows]
    [gpu] = rolled(rows)["gpu"]
    assert gpu["gpu_util_mean"] == pytest.approx(50)


def test_a_row_of_the_whole_card_wins() -> None:
    whole = {"instance": None, "profile": None, "pod": None, "gr_engine_active": 0.4}
    rows = seven(gr_engine_active=0.9) + [instance(0, second, **whole) for second in range(10)]
    found = rolled(rows)
    [gpu] = found["gpu"]
    assert gpu["gpu_util_mean"] == pytest.approx(40)
    assert gpu["energy_joules"] == pytest.approx(3000)
    assert len(found["instance"]) == 7


def test_samples_of_single_metrics_come_to_the_same() -> None:
    rows = []
    for row in seven(gr_engine_active=0.9):
        metrics = {name: row.pop(name) for name in ("gr_engine_active", "fb_used", "fb_free")}
        rows += [{**row, name: value} for name, value in metrics.items()]
    assert rolled(rows) == rolled(seven(gr_engine_active=0.9))


def test_cards_that_are_not_split_stay_as_they_are() -> None:
    other = {"gpu_id": "GPU-2", "instance": None, "profile": None, "pod": "p", "gpu_util": 70.0}
    rows = seven() + [instance(0, second, **other) for second in range(10)]
    found = rolled(rows)
    split, plain = found["gpu"]
    assert (split["gpu_id"], plain["gpu_id"]) == ("GPU-1", "GPU-2")
    assert (plain["gpu_util_mean"], plain["pod"], plain["instances"]) == (70, "p", None)
    assert found["host"][0]["energy_joules"] == pytest.approx(6000)
    assert found["host"][0]["gpus"] == 2


def test_the_graphics_engine_replaces_utilisation() -> None:
    row = {**CARD, "timestamp": START, "gr_engine_active": 0.25}
    assert rolled([row])["gpu"][0]["gpu_util_mean"] == 25
    assert rolled([{**row, "gpu_util": 80.0}])["gpu"][0]["gpu_util_mean"] == 80


def test_rare_samples_of_instances_stand_until_the_next() -> None:
    rows = [instance(number, second) for second in (0, 30) for number in range(7)]
    found = rolled(rows)
    windows = sorted(found["gpu"], key=lambda row: row["window_start"])
    assert [row["samples"] for row in windows] == [1, 0, 0, 1]
    assert sum(row["energy_joules"] for row in found["gpu"]) == pytest.approx(300 * 40)
    assert len(found["instance"]) == 28
