"""Windows of silver rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from barnabas.telemetry import tables
from barnabas.telemetry.lake import arrow_schema
from barnabas.telemetry.rollups import rollup
from barnabas.telemetry.thresholds import Thresholds

START = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)


def rolled(*rows: dict[str, Any], width_s: int = 10) -> list[dict[str, Any]]:
    """Roll rows up; a number for timestamp is seconds from the start."""
    full = [
        {"gpu_id": "a", "hostname": "h", "model": "m", **row, "timestamp": at(row["timestamp"])}
        for row in rows
    ]
    table = pa.Table.from_pylist(full, schema=arrow_schema(tables.SILVER))
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


def test_a_lone_sample_stands_for_the_window() -> None:
    assert rolled({"timestamp": 3, "power_usage": 100})[0]["energy_joules"] == 1000


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
