"""Tests metrics without a column: kept in a map, refused only if they cannot be metrics."""

import json

import numpy as np
import pyarrow as pa
import pytest

from barnabas.telemetry.samples import documents, other_metrics
from barnabas.telemetry.samples.metrics import BY_NAME
from barnabas.telemetry.windows import instants

TIME = "2026-11-15T07:00:00Z"
EXPORTER_FIELDS = """
SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER
GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL XID_ERRORS POWER_VIOLATION THERMAL_VIOLATION
SYNC_BOOST_VIOLATION BOARD_LIMIT_VIOLATION LOW_UTIL_VIOLATION RELIABILITY_VIOLATION FB_FREE FB_USED
FB_RESERVED ECC_SBE_VOL_TOTAL ECC_DBE_VOL_TOTAL ECC_SBE_AGG_TOTAL ECC_DBE_AGG_TOTAL RETIRED_SBE
RETIRED_DBE RETIRED_PENDING NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
NVLINK_REPLAY_ERROR_COUNT_TOTAL NVLINK_RECOVERY_ERROR_COUNT_TOTAL NVLINK_BANDWIDTH_TOTAL
NVLINK_BANDWIDTH_L0 VGPU_LICENSE_STATUS UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS
ROW_REMAP_FAILURE
"""
PROFILING_FIELDS = """
GR_ENGINE_ACTIVE SM_ACTIVE SM_OCCUPANCY PIPE_TENSOR_ACTIVE DRAM_ACTIVE PIPE_FP64_ACTIVE
PIPE_FP32_ACTIVE PIPE_FP16_ACTIVE PCIE_TX_BYTES PCIE_RX_BYTES NVLINK_TX_BYTES NVLINK_RX_BYTES
"""
OWN_METRICS = "CLOCK_EVENTS_COUNT XID_ERRORS_COUNT GPU_HEALTH_STATUS P2P_STATUS"
EXPORTER_COUNTERS = [
    *(f"DCGM_FI_DEV_{name}" for name in EXPORTER_FIELDS.split()),
    *(f"DCGM_FI_PROF_{name}" for name in PROFILING_FIELDS.split()),
    *(f"DCGM_EXP_{name}" for name in OWN_METRICS.split()),
]
"""The metrics of dcgm-exporter 4's own lists of counters, including disabled ones."""


def read(*metrics: dict[str, object]) -> documents.Readings:
    bodies = [{"timestamp": TIME, "gpu_id": "GPU-1", "metrics": each} for each in metrics]
    return documents.read([json.dumps(each).encode() for each in bodies], 65_536)


def reasons(found: documents.Readings) -> dict[int, list[str]]:
    return {m: [fault.reason.value for fault in faults] for m, faults in found.faults.items()}


@pytest.mark.parametrize("layout", ["snapshot", "sample"])
def test_no_counter_of_the_exporter_is_refused(layout: str) -> None:
    snapshot: dict[str, object] = dict.fromkeys(EXPORTER_COUNTERS, 1)
    given = [snapshot] if layout == "snapshot" else [{name: snapshot[name]} for name in snapshot]
    found = read(*given)
    assert found.faults == {}
    others = [name for row in found.other.to_pylist() for name, _ in row or ()]
    assert others == [name for name in EXPORTER_COUNTERS if name not in BY_NAME]
    assert "DCGM_FI_DEV_ROW_REMAP_FAILURE" in others


def test_an_unknown_field_is_kept_and_what_is_no_field_is_refused() -> None:
    found = read({"DCGM_FI_DEV_NEW_IN_5": 2.5, "GPU_TEMPERATURE": 1, "DCGM_FI_dev": 3})
    assert found.other.to_pylist() == [[("DCGM_FI_DEV_NEW_IN_5", 2.5)]]
    assert reasons(found) == {0: ["unknown-metric", "unknown-metric"]}


def test_names_are_bounded_in_number_and_length() -> None:
    names = [f"DCGM_FI_DEV_{number:03}" for number in range(other_metrics.NAMES_MAX + 2)]
    found = read(dict.fromkeys(names, 1), {f"DCGM_FI_{'X' * 100}": 1})
    assert [len(row) for row in found.other.to_pylist()] == [other_metrics.NAMES_MAX]
    assert reasons(found) == {0: ["unknown-metric"] * 2, 1: ["unknown-metric"]}


@pytest.mark.parametrize("mark", [9223372036854775794, 2147483632, 140737488355328])
def test_marks_for_no_value_are_refused(mark: int) -> None:
    found = read({"DCGM_FI_DEV_FB_RESERVED": mark, "DCGM_FI_DEV_GPU_UTIL": 1})
    assert found.other.to_pylist() == [None]
    assert reasons(found) == {0: ["no-value"]}


def test_text_in_place_of_a_number_is_refused() -> None:
    found = read({"DCGM_FI_DEV_FB_RESERVED": "x", "DCGM_FI_DEV_RETIRED_DBE": 4})
    assert found.other.to_pylist() == [[("DCGM_FI_DEV_RETIRED_DBE", 4)]]
    assert reasons(found) == {0: ["wrong-type"]}


def test_rows_that_are_left_out_take_their_metrics_with_them() -> None:
    found = read({"DCGM_FI_DEV_A": 1}, {"DCGM_FI_DEV_B": 2}, {"DCGM_FI_DEV_C": 3})
    kept = documents.taken(found, np.array([True, False, True]))
    assert kept.other.to_pylist() == [[("DCGM_FI_DEV_A", 1)], [("DCGM_FI_DEV_C", 3)]]


def test_the_names_of_a_row_have_a_number() -> None:
    found = read({"DCGM_FI_DEV_A": 1}, {"DCGM_FI_DEV_GPU_UTIL": 2}, {"DCGM_FI_DEV_B": 1},
                 {"DCGM_FI_DEV_B": 3}, {"DCGM_FI_DEV_A": 1, "DCGM_FI_DEV_B": 1})  # fmt: skip
    a, none, b, b_again, both = other_metrics.name_numbers(found.other).tolist()
    assert none == 0
    assert b == b_again
    assert len({a, none, b, both}) == 4


def test_metrics_of_an_instant_are_joined() -> None:
    found = read({"DCGM_FI_DEV_A": 1}, {"DCGM_FI_DEV_B": 2}, {"DCGM_FI_DEV_A": 3})
    rows = pa.table({"gpu_id": ["a", "a", "b"], "other": found.other})
    whole, firsts = instants.joined(rows, np.array([1, 1, 2]), np.array([5, 5, 5]))
    assert firsts.tolist() == [0, 2]
    assert whole["other"].to_pylist() == [
        [("DCGM_FI_DEV_A", 1), ("DCGM_FI_DEV_B", 2)],
        [("DCGM_FI_DEV_A", 3)],
    ]
