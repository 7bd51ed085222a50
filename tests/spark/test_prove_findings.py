"""The rules name what binds a GPU in recordings of tools/record_gpu.py.

`recordings/` has two recordings of an H200, made after the thresholds were set. The other
recordings are made up in the same layout.
"""

import csv
import gzip
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs pip install 'barnabas[spark]'")

from barnabas.telemetry.samples.metrics import BY_NAME
from tests.support.pipelines.phase_findings import PhaseRow, phase_rows, read_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOOLS = Path(__file__).parents[2] / "tools"
RECORDER = (TOOLS / "record_gpu.py").read_text()
RECORDINGS = Path(__file__).parent / "recordings"
METRICS = list(dict.fromkeys(re.findall(r'"(DCGM_FI_\w+)"', RECORDER)))
START_S = 1_794_725_690.0
USUAL = {
    "DCGM_FI_DEV_FB_TOTAL": 143_771.0,
    "DCGM_FI_DEV_FB_USED": 40_000.0,
    "DCGM_FI_DEV_FB_FREE": 103_771.0,
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": 700.0,
    "DCGM_FI_DEV_SM_CLOCK": 1980.0,
    "DCGM_FI_DEV_MAX_SM_CLOCK": 1980.0,
}


def shown(util: float, watts: float, sm: float, dram: float, pcie: float = 0.0) -> dict[str, float]:
    return {
        "DCGM_FI_DEV_GPU_UTIL": util,
        "DCGM_FI_DEV_MEM_COPY_UTIL": min(100.0, dram * 200),
        "DCGM_FI_DEV_POWER_USAGE": watts,
        "DCGM_FI_PROF_SM_ACTIVE": sm,
        "DCGM_FI_PROF_DRAM_ACTIVE": dram,
        "DCGM_FI_PROF_PCIE_RX_BYTES": pcie,
    }


PHASES = {
    "idle": ("idle", shown(0, 78, 0, 0) | {"DCGM_FI_DEV_FB_USED": 500.0}),
    "convolution": (
        "compute",
        shown(100, 650, 0.95, 0.21) | {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.7},
    ),
    "gather": ("memory", shown(100, 450, 0.9, 0.51)),
    "offloaded": (
        "pcie",
        shown(40, 160, 0.05, 0.03, 28e9) | {"DCGM_FI_PROF_PCIE_TX_BYTES": 29e9},
    ),
    "upload": ("pcie", shown(0, 130, 0.0, 0.02, 57e9)),
    "launches_many": ("launches", shown(38, 126, 0.02, 0.0)),
    "held": ("idle", shown(0, 120, 0, 0)),
}
"""By phase: its bottleneck, and the values of a card."""


def write_folder(folder: Path, phases: dict[str, tuple[str, dict[str, float]]]) -> Path:
    """Write a folder as the tool does."""
    folder.mkdir()
    now_s = START_S
    with (
        (folder / "metrics.csv").open("w", newline="") as metrics_file,
        (folder / "phases.csv").open("w", newline="") as phases_file,
    ):
        rows = csv.DictWriter(metrics_file, ["timestamp", "uuid", "modelName", *METRICS])
        rows.writeheader()
        names = csv.writer(phases_file)
        names.writerow(["phase", "bound", "start_unix", "end_unix", "steps"])
        for name, (bound, values) in phases.items():
            full = dict.fromkeys(METRICS, 0.0) | USUAL | values
            text = {metric: f"{value:.12g}" for metric, value in full.items()}
            card = {"uuid": "GPU-1", "modelName": "NVIDIA H200", **text}
            rows.writerows({"timestamp": f"{now_s + n / 10:.3f}", **card} for n in range(250))
            names.writerow([name, bound, f"{now_s:.3f}", f"{now_s + 25:.3f}", 1])
            now_s += 25
    return folder


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prove_findings", TOOLS / "prove_findings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_layout_of_the_recorder_is_the_one_that_is_read(tmp_path: Path) -> None:
    assert '["timestamp", "uuid", "modelName", *first]' in RECORDER
    assert '["phase", "bound", "start_unix", "end_unix", "steps"]' in RECORDER
    assert [name for name in METRICS if name not in BY_NAME] == []
    found = read_folder(write_folder(tmp_path / "f", PHASES))
    assert len(found) == 250 * len(PHASES)
    assert {tuple(each.metrics) for each in found} == {tuple(METRICS)}
    assert found[0].timestamp_ms == round(START_S * 1000)


def test_a_folder_becomes_a_table_of_phases_and_findings(
    spark: "SparkSession", tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "proof", PHASES)
    assert tool.prove(spark, [folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(folder)
    assert lines[1].split()[:3] == ["PHASE", "BOUND", "WINDOWS"]
    assert [line.split()[0] for line in lines[2:]] == list(PHASES)
    assert all(line.endswith("  right") for line in lines[2:])


def test_a_phase_that_is_not_understood_is_named(
    spark: "SparkSession", tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = {"gather": ("memory", PHASES["launches_many"][1])}
    folder = write_folder(tmp_path / "proof", strange)
    (row,) = phase_rows(spark, folder)
    assert row == PhaseRow("gather", "memory", 15, ("memory_bound",), {"launch_bound": 15})
    assert tool.prove(spark, [folder]) == 1
    assert "misses memory_bound in 0 of 15; wrongly launch_bound in 15" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("h200-proof", {"memory_bound": 3, "pcie_bound": 2, "launch_bound": 1}),
        pytest.param(
            "h200-tune",
            {"memory_bound": 3, "pcie_bound": 3, "launch_bound": 1},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_each_phase_of_a_real_gpu_has_its_findings_and_no_others(
    spark: "SparkSession", tmp_path: Path, name: str, found: dict[str, int]
) -> None:
    packed = RECORDINGS / name
    (tmp_path / "metrics.csv").write_bytes(
        gzip.decompress((packed / "metrics.csv.gz").read_bytes())
    )
    (tmp_path / "phases.csv").write_text((packed / "phases.csv").read_text())
    rows = phase_rows(spark, tmp_path)
    assert [(row.phase, row.problems) for row in rows if row.problems] == []
    phases = {
        finding: sum(0 < row.windows == row.found.get(finding) for row in rows) for finding in found
    }
    assert phases == found, "phases in which every window has the finding"
