"""Tests windows of silver rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from barnabas.telemetry.findings.thresholds import Thresholds
from barnabas.telemetry.lake import lake_tables
from barnabas.telemetry.lake.lake import arrow_schema
from barnabas.telemetry.windows.covering import rollup

START = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)


def rolled(*rows: dict[str, Any], width_s: int = 10) -> list[dict[str, Any]]:
    """Roll rows up; a number as timestamp is seconds from the start."""
    full = [
        {"gpu_id": "a", "hostname": "h", "model": "m", **row, "timestamp": at(row["timestamp"])}
        for row in rows
    ]
    table = pa.Table.from_pylist(full, schema=arrow_schema(lake_tables.SILVER))
    found: list[dict[str, Any]] = rollup(table, width_s, Thresholds()).to_pylist()
    return found


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def series(metric: str, *values: float | None) -> list[dict[str, Any]]:
    return [{"timestamp": second, metric: value} for second, value in enumerate(values)]


def test_statistics_of_a_gpu() -> None:
    gpu, host, model = rolled(*series("gpu_util", 0, 10, 20, 30, 100))
    assert (gpu["window_start"], gpu["window_end"]) == (at(0), at(10))
    assert (gpu["level"], host["level"], model["level"]) == ("gpu", "host", "model")
    for row in (gpu, host, model):
        assert row["samples"] == 5
        assert row["gpus"] == 1
        assert row["gpu_util_mean"] == 32
        assert row["gpu_util_p50"] == 20
        assert row["gpu_util_p95"] == pytest.approx(86)
        assert row["gpu_util_max"] == 100
        assert row["power_usage_mean"] is None


def test_hosts_and_models_take_all_samples() -> None:
    rows: list[dict[str, Any]] = [
        {"timestamp": 1, "gpu_id": "a", "hostname": "h1", "gpu_util": 10},
        {"timestamp": 1, "gpu_id": "b", "hostname": "h1", "gpu_util": 20},
        {"timestamp": 1, "gpu_id": "c", "hostname": "h2", "gpu_util": 90},
        {"timestamp": 1, "gpu_id": "d", "hostname": None, "model": None, "gpu_util": 50},
    ]
    found = rolled(*rows)
    hosts = [r for r in found if r["level"] == "host"]
    assert [(r["hostname"], r["gpus"], r["gpu_util_p50"]) for r in hosts] == [
        ("h1", 2, 15),
        ("h2", 1, 90),
    ]
    [model] = [r for r in found if r["level"] == "model"]
    assert (model["model"], model["gpus"], model["gpu_util_p50"]) == ("m", 3, 20)
    assert model["hostname"] is None
    assert len(found) == 7


def test_windows_are_apart() -> None:
    found = rolled(*series("gpu_util", *range(25)))
    gpus = [r for r in found if r["level"] == "gpu"]
    assert [(r["window_start"], r["samples"], r["gpu_util_max"]) for r in gpus] == [
        (at(0), 10, 9),
        (at(10), 10, 19),
        (at(20), 5, 24),
    ]


def test_shares_and_falls() -> None:
    [gpu, *_] = rolled(*series("gpu_util", 100, 0, 90, None, 1, 30, 0))
    assert gpu["util_idle_share"] == pytest.approx(3 / 6)
    assert gpu["util_busy_share"] == pytest.approx(2 / 6)
    assert gpu["util_falls"] == 2


def test_throttling_by_reasons() -> None:
    [gpu, *_] = rolled(*series("clock_reasons", 0, 4, 0x80, 0x20, 1))
    assert gpu["power_capped_share"] == pytest.approx(2 / 5)
    assert gpu["thermal_share"] == pytest.approx(1 / 5)


def test_throttling_by_power_where_reasons_are_missing() -> None:
    rows: list[dict[str, Any]] = [
        {"timestamp": n, "power_usage": w, "power_limit": 700} for n, w in enumerate((699, 100))
    ]
    [gpu, *_] = rolled(*rows)
    assert gpu["power_capped_share"] == 0.5
    assert gpu["thermal_share"] is None


def test_energy_by_counter_over_the_window() -> None:
    found = rolled(*series("energy", *(1000.0 * 300 * n for n in range(10))))
    assert [row["energy_joules"] for row in found] == pytest.approx([3000] * 3)


def test_energy_by_power_where_the_counter_was_reset() -> None:
    rows = [{"timestamp": n, "energy": 100 - n, "power_usage": 200} for n in range(10)]
    assert rolled(*rows)[0]["energy_joules"] == pytest.approx(2000)


def test_a_single_sample_counts_from_its_time_on() -> None:
    assert rolled({"timestamp": 3, "power_usage": 100})[0]["energy_joules"] == 700


def test_energy_of_part_of_a_window() -> None:
    rows = [{"timestamp": n, "power_usage": 100} for n in (6, 7, 8, 9)]
    assert rolled(*rows)[0]["energy_joules"] == pytest.approx(400)


def test_xids_are_changes() -> None:
    [gpu, *_] = rolled(*series("xid", 13, 13, 0, 79, None, 79, 13))
    assert gpu["xids"] == [
        {"timestamp": at(0), "xid": 13},
        {"timestamp": at(3), "xid": 79},
        {"timestamp": at(6), "xid": 13},
    ]


def test_no_xids_is_an_empty_list() -> None:
    assert rolled(*series("xid", 0, 0))[0]["xids"] == []


def test_last_values_and_tops() -> None:
    rows: list[dict[str, Any]] = [
        {"timestamp": 0, "ecc_sbe": 3, "fb_used": 10, "fb_free": 90, "sm_clock": 1500},
        {"timestamp": 1, "ecc_sbe": 5, "sm_clock": 1400},
        {"timestamp": 2, "ecc_sbe": None},
    ]
    [gpu, *_] = rolled(*rows)
    assert (gpu["ecc_sbe_last"], gpu["fb_total"], gpu["sm_clock_top"]) == (5, 100, 1500)


def test_rows_of_one_instant_are_one_sample() -> None:
    whole = {"timestamp": 1, "gpu_util": 80, "power_usage": 700, "power_limit": 700}
    apart: list[dict[str, Any]] = [
        {"timestamp": 1, "power_limit": 700, "hostname": None},
        {"timestamp": 1, "gpu_util": 80, "hostname": "h"},
        {"timestamp": 1, "power_usage": 700},
    ]
    assert rolled(*apart) == rolled(whole)


def test_order_of_rows_does_not_matter() -> None:
    rows: list[dict[str, Any]] = [
        {
            "timestamp": n / 3,
            "gpu_id": f"g{n % 4}",
            "hostname": f"h{n % 2}",
            "gpu_util": n * 7 % 100,
        }
        for n in range(60)
    ]
    assert rolled(*rows) == rolled(*reversed(rows))


def test_traffic_of_links_and_what_they_can_move() -> None:
    rows: list[dict[str, Any]] = [
        {"timestamp": 0, "pcie_tx": 30e9, "pcie_rx": 25e9, "nvlink_tx": 200e9, "nvlink_rx": 240e9},
        {"timestamp": 1, "pcie_tx": 34e9, "pcie_rx": 27e9, "nvlink_tx": 220e9, "nvlink_rx": 260e9},
        {"timestamp": 2, "pcie_tx": None, "dram_active": 0.5, "tensor_active": 0.25},
    ]
    found = rolled(*({"model": "NVIDIA H200", **row} for row in rows))[0]
    assert found["pcie_traffic"] == pytest.approx(58e9)
    assert found["pcie_capacity"] == pytest.approx(63e9, rel=0.01)
    assert found["nvlink_traffic"] == pytest.approx(250e9)
    assert found["nvlink_capacity"] == 450e9
    assert (found["dram_active_mean"], found["tensor_active_mean"]) == (0.5, 0.25)


def test_the_link_that_was_sampled_counts_and_not_that_of_the_model() -> None:
    narrow = {"timestamp": 0, "pcie_link_gen": 4, "pcie_link_width": 8, "pcie_rx": 1e9}
    found = rolled({"model": "NVIDIA H200", **narrow})[0]
    assert found["pcie_capacity"] == pytest.approx(15.75e9, rel=0.001)
    assert found["pcie_traffic"] == 1e9


def test_links_of_unknown_models_have_no_capacity() -> None:
    found = rolled({"timestamp": 0, "model": "Voodoo 2", "pcie_tx": 1e9})[0]
    assert (found["pcie_capacity"], found["nvlink_capacity"]) == (None, None)
    assert (found["nvlink_traffic"], found["dram_active_mean"]) == (None, None)


def test_rows_of_an_earlier_release_lack_columns() -> None:
    schema = arrow_schema(lake_tables.SILVER)
    row = {"gpu_id": "a", "model": "NVIDIA H200", "timestamp": at(1), "gpu_util": 5.0}
    table = pa.Table.from_pylist([row], schema=schema).drop_columns(["pcie_tx", "dram_active"])
    found = rollup(table, 10, Thresholds()).to_pylist()[0]
    assert (found["gpu_util_mean"], found["pcie_traffic"], found["dram_active_mean"]) == (
        5.0,
        None,
        None,
    )


def test_traffic_stands_in_windows_without_samples() -> None:
    rows = [
        {"timestamp": second, "model": "NVIDIA H200", "pcie_rx": 57e9, "dram_active": 0.02}
        for second in (0, 30, 60)
    ]
    found = [row for row in rolled(*rows) if row["level"] == "gpu"]
    assert [row["samples"] for row in found].count(0) >= 4
    assert {(row["pcie_traffic"], row["dram_active_mean"]) for row in found} == {(57e9, 0.02)}
    assert {row["pcie_capacity"] for row in found} == {found[0]["pcie_capacity"]}
